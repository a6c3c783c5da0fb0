#!/usr/bin/env bash
# Process 1 of the node's namespaces: makes the node's view of the machine, starts every component, and ends with them.
# NODE_FOLDER: state and configuration, written by config.ts; PATH holds the programs.
set -eu
cd "$NODE_FOLDER"
export KUBECONFIG=$NODE_FOLDER/admin.kubeconfig
hostname n1
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock
# Own upper layers over /etc and /var leave the machine's as they are; containerd's root must not lie on an overlay.
for folder in etc var; do
  mkdir -p "upper/$folder" "work/$folder"
  mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$NODE_FOLDER/upper/$folder,workdir=$NODE_FOLDER/work/$folder" "/$folder"
done
mkdir -p /var/lib/kubelet /var/lib/containerd /etc/cni/net.d containerd kubelet
mount --bind containerd /var/lib/containerd
mount --bind kubelet /var/lib/kubelet
rm -f /etc/resolv.conf
: > /etc/resolv.conf
printf '127.0.0.1 localhost\n10.88.0.1 n1\n' > /etc/hosts
cp network.conflist /etc/cni/net.d/10-pods.conflist
# The kubelet wants these kernel settings: it is shown them as set, and the machine's stay as they are.
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000 vm/panic_on_oom=0; do
  file=$NODE_FOLDER/setting-$(echo "${setting%=*}" | tr / _)
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
ip link set lo up
ip link add cni0 type bridge
ip addr add 10.88.0.1/16 dev cni0
# Left alone, a bridge takes the lowest address of what is plugged into it (br_stp_recalculate_bridge_id in the kernel's net/bridge/br_stp_if.c), so with
# every pod that comes or goes it may have another one: what other pods send to the old one is lost, and a connection was seen to wait for 68 s.
ip link set cni0 address 0a:58:0a:58:00:01
ip link set cni0 up
ip route add default via 10.88.0.1

start() {
  local name=$1
  shift
  "$@" > "log/$name.log" 2>&1 &
}

start containerd containerd --config containerd.toml
start etcd kube etcd --data-dir etcd --listen-client-urls http://127.0.0.1:33790 --advertise-client-urls http://127.0.0.1:33790 \
  --listen-peer-urls http://127.0.0.1:33800 --unsafe-no-fsync
start apiserver kube kube-apiserver --etcd-servers=http://127.0.0.1:33790 --cert-dir=certs --secure-port=16443 --bind-address=0.0.0.0 \
  --advertise-address=10.88.0.1 --service-account-issuer=https://kubernetes.default.svc --service-account-key-file=sa.pub \
  --service-account-signing-key-file=sa.key --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --token-auth-file=tokens.csv \
  --service-cluster-ip-range=10.96.0.0/24 --kubelet-preferred-address-types=InternalIP --allow-privileged=true
until ctr version > /dev/null 2>&1; do sleep 0.2; done
ctr -n k8s.io images import --local pause.tar
until kube kubectl get --raw /readyz > /dev/null 2>&1; do sleep 0.3; done
start controllers kube kube-controller-manager --kubeconfig="$KUBECONFIG" --authentication-kubeconfig="$KUBECONFIG" \
  --authorization-kubeconfig="$KUBECONFIG" --service-account-private-key-file=sa.key --root-ca-file=certs/apiserver.crt \
  --use-service-account-credentials=false --secure-port=20257 --bind-address=127.0.0.1 --leader-elect=false
start scheduler kube kube-scheduler --kubeconfig="$KUBECONFIG" --authentication-kubeconfig="$KUBECONFIG" --authorization-kubeconfig="$KUBECONFIG" \
  --secure-port=20259 --bind-address=127.0.0.1 --leader-elect=false
start proxy kube kube-proxy --config=proxy.yaml --hostname-override=n1
start kubelet kube kubelet --kubeconfig=node.kubeconfig --config=kubelet.yaml --hostname-override=n1 --node-ip=10.88.0.1 \
  --root-dir=/var/lib/kubelet --v=2
echo $! > kubelet.pid
wait
