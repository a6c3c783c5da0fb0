#!/bin/sh
# Process 1 of the test's pods, as the operator's agent is in its workspaces: runs pulumi as its child when it is told to, and when the pod is to end
# asks it to stop and waits for it. Children that ended stay zombies until it is told to reap them.
orders=/tmp/orders
children=
stop() {
  [ -z "$AGENT_LEAVES" ] || exit 0
  # The operator v1 waits for its updates to end by themselves.
  [ -n "$AGENT_WAITS" ] || [ -z "$children" ] || kill -INT $children 2> /dev/null
  # A wait is cut short by the signal, and a child may ignore it.
  wait
  exit 0
}
# An update of a stack: it goes on for as long as nobody opens its gate, a pipe that the program reads.
update() {
  folder=/tmp/projects/$1
  mkdir -p "$folder"
  rm -f "$folder/gate"
  mkfifo "$folder/gate"
  printf 'name: demo\nruntime: yaml\nvariables:\n  waited:\n    fn::readFile: %s/gate\noutputs:\n  waited: ${waited}\n' "$folder" > "$folder/Pulumi.yaml"
  cd "$folder" || exit 1
  export FIELD_STACK="$1" HOME=/tmp PULUMI_HOME="/tmp/home-$1"
  exec pulumi up --yes --skip-preview --non-interactive --stack "$1" > log 2>&1
}
# Called with an update, it is nothing else: in a nested namespace, say.
[ "$1" != update ] || update "$2"
trap stop TERM
mkfifo "$orders"
exec 3<> "$orders"
while :; do
  read -r action argument <&3 || continue
  case $action in
    update)
      update "$argument" &
      children="$children $!"
      ;;
    nested)
      # Not as process 1 of its namespace, so that its number there is none of a process here.
      unshare -p -f sh -c "sleep 1; sh /agent.sh update $argument & wait" &
      ;;
    open) echo opened > "/tmp/projects/$argument/gate" & ;;
    reap) sleep 0 ;;
    # Takes memory itself, so that the kernel's choice falls on process 1.
    hog) hoard=$(head -c 900000000 /dev/zero | tr '\0' x) ;;
    quit)
      # Whoever gave the order must have left by then.
      sleep 1
      exit 0
      ;;
  esac
done
