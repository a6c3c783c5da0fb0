import type { Backend } from "./backends/backend.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { CheckItem, CheckReport } from "./core/check-report.ts";
import type { ClusterObservation } from "./core/cluster.ts";
import { STACKS_FOLDER } from "./core/key.ts";
import { matchOwners, type OwnerPattern } from "./core/owner.ts";
import { escapeUntrusted, formatCount, joinSome, quoteUntrusted } from "./core/text.ts";
import { describeStacks, type Discovery } from "./discover-backends.ts";
import { describeWithHint, JanitorError } from "./errors.ts";
import type { ClusterSource, StackRight } from "./kubernetes/cluster-source.ts";
import type { AuditLog } from "./output/audit-log.ts";
import type { AfterUnlockSettings } from "./tell-stacks.ts";

/** What is checked. */
export interface CheckParts {
  readonly backends: readonly { readonly name: string; readonly backend: Backend | JanitorError; readonly audit?: AuditLog }[];
  readonly clusters: readonly ClusterSource[];
  readonly owners: readonly OwnerPattern[];
  /** With `--probe-processes`: whether commands may be run in the pods in question is asked, too. */
  readonly probe?: boolean;
  /** What is to follow a removal, so that the rights to it are asked for, too. */
  readonly afterUnlock?: AfterUnlockSettings;
  /** With `--discover`: what the Stacks gave; its backends are among the others. */
  readonly discovery?: Discovery;
  readonly signal: AbortSignal;
}

/** Tries, without writing anything, what a sweep needs: rights in each backend and cluster, and so which proofs there can be. */
export async function check({ backends, clusters, owners, probe = false, afterUnlock, discovery, signal }: CheckParts): Promise<CheckReport> {
  const items: CheckItem[] = discovery === undefined ? [] : [...describeDiscovery(discovery)];
  for (const { name, backend, audit } of backends) {
    if (backend instanceof JanitorError) items.push({ area: "backend", subject: name, name: "open", status: "denied", message: describeWithHint(backend) });
    else {
      items.push(...(await checkBackend(backend, audit, signal)));
      if (afterUnlock?.checkPending === true) items.push(await checkCheckpoints(backend, signal));
    }
  }
  for (const cluster of clusters) {
    items.push(...(await checkCluster(cluster, owners, signal)));
    if (probe) items.push(...(await checkProbe(cluster, owners, signal)));
    if (afterUnlock?.requeueStacks === true) items.push(await checkRight(cluster, "requeue Stacks", "patch stacks.pulumi.com", signal));
    if (afterUnlock?.stackEvents === true) items.push(await checkRight(cluster, "write Events", "create events", signal));
  }
  return { version: 1, items, exitCode: items.some(({ status }) => status === "denied") ? 1 : 0 };
}

/** Which backends the Stacks add, and which they do not. */
function describeDiscovery({ stackLists, backends, notes, refusals }: Discovery): readonly CheckItem[] {
  const item = (name: string, status: CheckItem["status"], message: string): CheckItem => ({ area: "discovery", subject: "--discover", name, status, message });
  return [
    ...stackLists.flatMap(({ cluster, list }) =>
      list.kind === "unlisted" ? [item("list Stacks", "denied", `cluster ${quoteUntrusted(cluster)}: ${escapeUntrusted(list.problem)}`)] : [],
    ),
    ...backends.map(({ url, stacks }) => item("added", "ok", `${url} of ${describeStacks(stacks)}`)),
    ...notes.map((note) => item("not added", "unknown", note)),
    ...refusals.map((refusal) => item("too many", "denied", refusal)),
  ];
}

async function checkBackend(backend: Backend, audit: AuditLog | undefined, signal: AbortSignal): Promise<readonly CheckItem[]> {
  const subject = formatIdentity(backend.identity);
  const item = (name: string, status: CheckItem["status"], message: string): CheckItem => ({ area: "backend", subject, name, status, message });
  const items: CheckItem[] = [item("credential", "ok", backend.credential)];
  const keys: string[] = [];
  try {
    for await (const page of backend.listLocks(signal)) keys.push(...page.map(({ key }) => key));
    items.push(item("list locks", "ok", `${keys.length} found`));
  } catch (error) {
    return [...items, item("list locks", "denied", describeWithHint(error))];
  }
  const [key] = keys;
  if (key === undefined) items.push(item("read locks", "unknown", "there is no lock to try it on"));
  else items.push(await tryTo("read locks", subject, async () => describeRead(await backend.readLock(key, signal))));
  for (const { action, kind, note } of await backend.checkWrites()) items.push(item(action, kind === "allowed" ? "ok" : kind, note));
  if (audit !== undefined)
    items.push(
      await tryTo("list records", subject, async () => {
        const { intents, unreadable } = await audit.readOpen(signal);
        const message = `${intents.length} without an outcome in ${audit.place}`;
        if (unreadable.length === 0) return { status: "ok", message };
        return { status: "unknown", message: `${message}, and ${unreadable.length} that cannot be read: 'audit list' names them` };
      }),
    );
  const offset = backend.clockOffset();
  if (offset !== undefined)
    items.push(
      item(
        "clock",
        offset > 5_000_000_000n || offset < -5_000_000_000n ? "denied" : "ok",
        `the store's clock is ${Number(offset / 1_000_000n) / 1_000} s ahead of this one`,
      ),
    );
  return items;
}

/** Whether a checkpoint may be read: one that is not there tells it, and nobody's state is looked at. */
async function checkCheckpoints(backend: Backend, signal: AbortSignal): Promise<CheckItem> {
  return await tryTo("read checkpoints", formatIdentity(backend.identity), async () => {
    await backend.readState(`${STACKS_FOLDER}check-of-pulumi-lock-janitor.json`, 1, signal);
    return { status: "ok", message: "tried on one that is not there" };
  });
}

async function checkRight(cluster: ClusterSource, name: string, right: StackRight, signal: AbortSignal): Promise<CheckItem> {
  const item = (status: CheckItem["status"], message: string): CheckItem => ({
    area: "cluster",
    subject: escapeUntrusted(cluster.name),
    name,
    status,
    message,
  });
  const missing = await cluster.findMissingRight?.(right, signal);
  if (missing === undefined) return item("unknown", cluster.kind === "live" ? "the API server does not tell" : "no Stack of a file can be told anything");
  const [verb = "", resource = ""] = right.split(" ");
  return missing.length === 0 ? item("ok", right) : item("denied", `the verb "${verb}" on ${resource} is not allowed in ${joinSome(missing)}`);
}

function describeRead(read: Awaited<ReturnType<Backend["readLock"]>>): Pick<CheckItem, "status" | "message"> {
  if (read.kind === "found" && read.content.kind === "unread") return { status: "denied", message: read.content.problem };
  return { status: "ok", message: "tried on one" };
}

async function tryTo(name: string, subject: string, attempt: () => Promise<Pick<CheckItem, "status" | "message">>): Promise<CheckItem> {
  try {
    return { area: "backend", subject, name, ...(await attempt()) };
  } catch (error) {
    return { area: "backend", subject, name, status: "denied", message: describeWithHint(error) };
  }
}

async function checkCluster(cluster: ClusterSource, owners: readonly OwnerPattern[], signal: AbortSignal): Promise<readonly CheckItem[]> {
  const subject = escapeUntrusted(cluster.name);
  const observed = await cluster.observe(new Set(), signal);
  const { pods, nodes, stacks, uid } = observed;
  const user = await cluster.whoAmI(signal);
  const hostnames = await cluster.listHostnames(signal);
  const following = (await cluster.reviewFollowing?.(signal)) ?? [];
  const item = (area: CheckItem["area"], name: string, status: CheckItem["status"], message: string): CheckItem => ({ area, subject, name, status, message });
  return [
    item("cluster", "user", user === undefined ? "unknown" : "ok", user === undefined ? "the API server does not tell" : quoteUntrusted(user)),
    item(
      "cluster",
      "identity",
      uid === undefined ? "unknown" : "ok",
      uid === undefined
        ? "the namespace kube-system may not be read (verb get), so records do not name the cluster"
        : `kube-system has the UID ${escapeUntrusted(uid)}`,
    ),
    pods.kind === "complete" ? item("cluster", "list pods", "ok", `${pods.total} seen`) : item("cluster", "list pods", "denied", pods.problem),
    nodes.kind === "listed" ? item("cluster", "list nodes", "ok", `${nodes.nodes.length} seen`) : item("cluster", "list nodes", "denied", nodes.problem),
    stacks.kind === "listed"
      ? item("cluster", "list Stacks", "ok", `${stacks.stacks.length} seen`)
      : item("cluster", "list Stacks", "unknown", `${stacks.problem}; locks of the built-in patterns stay undetermined, unless --require-stack=no`),
    ...(stacks.kind === "listed" && stacks.withoutWorkspaces !== undefined
      ? [item("cluster", "list Workspaces", "unknown", `${stacks.withoutWorkspaces}; a lock that only a Workspace accounts for is foreign`)]
      : []),
    ...following.map(({ what, allowed }) => {
      const [status, message] = describeFollowing(allowed);
      return item("cluster", `watch ${what}`, status, message);
    }),
    ...describeProofs(observed).map(([name, available, message]) => item("proof", name, available ? "ok" : "denied", message)),
    ...owners.map((pattern) => {
      const matching = hostnames.filter((hostname) => matchOwners(hostname, [pattern]).length > 0);
      const found =
        matching.length === 0 ? "no pod that lives now" : `${formatCount(matching.length, "pod")} that live now: ${joinSome(matching.map(escapeUntrusted))}`;
      return item("owners", pattern.glob, matching.length === 0 ? "unknown" : "ok", `matches ${found}`);
    }),
  ];
}

/** A sweep needs no such right, and `watch` does without. */
function describeFollowing(allowed: boolean | undefined): readonly [status: CheckItem["status"], message: string] {
  switch (allowed) {
    case true:
      return ["ok", "allowed"];
    case false:
      return ["unknown", 'the verb "watch" is not allowed; the command watch then finds changes when its interval ends'];
    case undefined:
      return ["unknown", "the API server does not tell"];
  }
}

/** Whether commands may be run in the pods that live now and match a pattern, namespace by namespace: a right is given for one. */
async function checkProbe(cluster: ClusterSource, owners: readonly OwnerPattern[], signal: AbortSignal): Promise<readonly CheckItem[]> {
  const subject = escapeUntrusted(cluster.name);
  const name = "exec in pods";
  const hostnames = (await cluster.listHostnames(signal)).filter((hostname) => matchOwners(hostname, owners).length > 0);
  const { pods } = await cluster.observe(new Set(hostnames), signal);
  const namespaces = Array.from(new Set(pods.pods.map(({ namespace }) => namespace))).toSorted();
  const proof = (status: CheckItem["status"], message: string): CheckItem => ({ area: "proof", subject, name: "process-gone", status, message });
  if (namespaces.length === 0) return [proof("unknown", "no pod that matches an owner pattern lives now, so there is no namespace to ask for")];
  const items: CheckItem[] = [];
  for (const namespace of namespaces) {
    const missing = await cluster.findMissingExecVerbs?.(namespace, signal);
    const where = `namespace ${quoteUntrusted(namespace)}`;
    if (missing === undefined) items.push({ area: "cluster", subject, name, status: "unknown", message: `${where}: the API server does not tell` });
    else if (missing.length === 0) items.push({ area: "cluster", subject, name, status: "ok", message: where });
    else {
      const message = `${where}: not allowed are the verbs ${missing.join(" and ")} on pods/exec`;
      items.push({ area: "cluster", subject, name, status: "denied", message });
    }
  }
  const worst = (["denied", "unknown"] as const).find((status) => items.some((each) => each.status === status));
  return [
    ...items,
    worst === undefined
      ? proof("ok", "available where the containers have a shell")
      : proof(worst, "needs the right to run a command in every pod in question"),
  ];
}

/** Which proofs a sweep could have, with what was seen. */
function describeProofs({ pods, nodes }: ClusterObservation): readonly (readonly [name: string, available: boolean, message: string])[] {
  const whole = pods.kind === "complete" && pods.total > 0;
  const sound = nodes.kind === "listed";
  const missing = !whole ? "needs a whole list of pods" : sound ? "available" : "needs the list of nodes";
  return [
    ["pod-not-found", whole && sound, missing],
    ["pod-ended", whole && sound, missing],
    ["pod-recreated", whole && sound, missing],
    ["container-restarted", whole && sound, missing],
  ];
}
