// Mistakes that somebody might make in good faith. Each must be found by the model or by the tests of the rules.

/** One change: what is to be found, exactly once, and what stands there instead. */
interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly name: string;
  /** The model of `watch` is asked in place of the sweep's. */
  readonly ofWatch?: boolean;
  readonly edits: readonly Edit[];
}

function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name, edits: [{ file: `src/${file}`, find, replace }] };
}

function watchMutant(name: string, file: string, find: string, replace: string): Mutant {
  return { ...mutant(name, file, find, replace), ofWatch: true };
}

const WATCH_MUTANTS: readonly Mutant[] = [
  {
    name: "watch: an event condemns without a fresh request",
    ofWatch: true,
    edits: [
      {
        file: "src/watch.ts",
        find: '      case "pod":\n',
        replace: '      case "pod":\n        GONE.add(sign.hostname);\n',
      },
      {
        file: "src/watch.ts",
        find: "{ ...parts, ...opened, now,",
        replace: "{ ...parts, clusters: parts.clusters.map(withoutGone), ...opened, now,",
      },
      {
        file: "src/watch.ts",
        find: "class Watch {",
        replace: `const GONE = new Set<string>();
const withoutGone = (cluster: ClusterSource): ClusterSource => ({
  name: cluster.name,
  kind: cluster.kind,
  observe: async (hostnames, signal) => {
    const seen = await cluster.observe(hostnames, signal);
    return { ...seen, pods: { ...seen.pods, pods: seen.pods.pods.filter(({ name }) => !GONE.has(name)) } };
  },
  findNamesakes: async (hostname, signal) => (GONE.has(hostname) ? [] : await cluster.findNamesakes(hostname, signal)),
  listStacks: (signal) => cluster.listStacks(signal),
  whoAmI: (signal) => cluster.whoAmI(signal),
  listHostnames: (signal) => cluster.listHostnames(signal),
  close: () => cluster.close(),
});

class Watch {`,
      },
      {
        file: "src/watch.ts",
        find: "import type { ClusterSign }",
        replace: "import type { ClusterSign, ClusterSource }",
      },
    ],
  },
  watchMutant("watch: lost changes are taken as none", "watch.ts", "        this.#hasten(this.#losses.note(now));\n", ""),
  watchMutant("watch: lost changes are looked for at once, again and again", "watch.ts", "this.#hasten(this.#losses.note(now));", "this.#hasten(now);"),
  watchMutant(
    "watch: each refused attempt to follow has every lock looked at",
    "watch.ts",
    '      case "unfollowed":\n',
    '      case "unfollowed":\n        this.#hasten(now);\n',
  ),
  watchMutant("watch: a pod's end is waited out until the interval ends", "watch.ts", ".length > 0) this.#hasten(now);", ".length > 0) this.#wake.abort();"),
  watchMutant(
    "watch: the valve's window is forgotten",
    "watch.ts",
    "this.#removals = this.#removals.filter(({ at }) => at > begunAt - VALVE_WINDOW);",
    "this.#removals = [];",
  ),
  watchMutant(
    "watch: the valve counts what went long ago",
    "watch.ts",
    "this.#removals = this.#removals.filter(({ at }) => at > begunAt - VALVE_WINDOW);",
    "this.#removals = this.#removals.filter(({ at }) => at <= begunAt);",
  ),
  watchMutant(
    "watch: a sign that comes during a sweep is forgotten",
    "watch.ts",
    "    this.#remember(report, now());",
    "    if (whole) this.#dueAt = begunAt + fromMilliseconds(this.#settings.interval);\n    this.#remember(report, now());",
  ),
  watchMutant("watch: a look at some locks tells the others as released", "core/watch-event.ts", "      !whole ||\n", ""),
  watchMutant(
    "watch: a lock that a Stack names waits for the interval",
    "watch.ts",
    "const wanted = this.#named.size > 0 ? here : this.#dueAt;",
    "const wanted = this.#dueAt;",
  ),
  watchMutant("watch: two sweeps may follow each other at once", "watch.ts", "this.#begunAt + SHORTEST_GAP", "this.#begunAt"),
  watchMutant(
    "watch: a clock that was set back makes it wait for that long",
    "watch.ts",
    "      this.#dueAt = earlier(this.#dueAt, here + fromMilliseconds(this.#settings.interval));\n",
    "",
  ),
  watchMutant(
    "watch: changes are told as lost before they come again",
    "kubernetes/follow-objects.ts",
    "if (place.version === undefined) place.lostBy = error.message;",
    "if (place.version === undefined) follower.onLost(error.message);",
  ),
  watchMutant(
    "watch: a version that is too old is kept",
    "kubernetes/follow-objects.ts",
    "    place.version = undefined;\n    throw new Outdated(problem);",
    "    throw new Outdated(problem);",
  ),
  watchMutant(
    "watch: bookmarks are not kept",
    "kubernetes/follow-objects.ts",
    "      place.version = object.metadata?.resourceVersion ?? place.version;",
    '      if (type !== "BOOKMARK") place.version = object.metadata?.resourceVersion ?? place.version;',
  ),
  watchMutant(
    "watch: credentials that were refused twice are never read again",
    "kubernetes/api-client.ts",
    "if (!accepted && now() - this.#renewedAt < RENEWAL_PAUSE) return answer;",
    "if (!accepted) return answer;",
  ),
];

export const MUTANTS: readonly Mutant[] = [
  ...WATCH_MUTANTS,
  {
    name: "pods are listed once, so before the locks of the second look",
    edits: [
      {
        file: "src/judge-locks.ts",
        find: "clusters.map((cluster) => cluster.observe(left, signal))",
        replace:
          "clusters.map(async (cluster) => { const seen = LISTED.get(cluster) ?? await cluster.observe(left, signal); LISTED.set(cluster, seen); return seen; })",
      },
      {
        file: "src/judge-locks.ts",
        find: "const LOOKUPS_AT_ONCE = 8;",
        replace: "const LOOKUPS_AT_ONCE = 8;\nconst LISTED = new WeakMap<ClusterSource, ClusterObservation>();",
      },
    ],
  },
  mutant(
    "the newest container instead of every one",
    "core/finding.ts",
    "relevant.some((container) => !isProvablyLater",
    "relevant.every((container) => !isProvablyLater",
  ),
  mutant(
    "the store's clock is not asked",
    "core/finding.ts",
    "if (!isYoungerThanLock(suspect) || storedAt === undefined || storedAt < pod.createdAt - skew) return undefined;",
    "if (!isYoungerThanLock(suspect) || storedAt === undefined || storedAt > 0n) return undefined;",
  ),
  mutant("the name instead of the hostname", "core/hostname.ts", 'pod.hostname !== undefined && pod.hostname !== "" ? pod.hostname : pod.name', "pod.name"),
  mutant("a hostname is not cut to 63 characters", "core/hostname.ts", ".slice(0, LONGEST_HOSTNAME)", ".slice(0)"),
  mutant(
    "the first candidate instead of all",
    "core/decide.ts",
    "judgeCandidates(owner, lock, cluster, circumstances)).toSorted(byEvidence)",
    "judgeCandidates(owner, lock, cluster, circumstances)).toSorted(byEvidence).slice(0, 1)",
  ),
  {
    name: "a cheap look by name may condemn",
    edits: [
      {
        file: "src/core/decide.ts",
        find: 'if (outcome.verdict.verdict !== "held") return undefined;',
        replace: 'if (outcome.verdict.verdict === "undetermined") return undefined;',
      },
      {
        file: "src/judge-locks.ts",
        find: 'pods: { kind: "incomplete", problem, pods, total: pods.length }',
        replace: 'pods: { kind: "complete", pods, total: pods.length + 1 }',
      },
      { file: "src/judge-locks.ts", find: 'nodes: { kind: "unlisted", problem }', replace: 'nodes: { kind: "listed", nodes: [] }' },
    ],
  },
  mutant("a cheap look may conclude anything", "core/decide.ts", 'if (outcome.verdict.verdict !== "held") return undefined;', ""),
  mutant(
    "403 is an empty list",
    "kubernetes/list-objects.ts",
    'if (answer.kind === "refused" && answer.status === 404)',
    'if (answer.kind === "refused" && answer.status === 403) return { kind: "complete" };\n    if (answer.kind === "refused" && answer.status === 404)',
  ),
  mutant(
    "the rule of nodes is for absence only, not for successors",
    "core/decide.ts",
    'if (unseenHere || rests.some(({ rest }) => rest.kind === "absence"))',
    "if (unseenHere)",
  ),
  mutant(
    "a pod elsewhere says that there is none here",
    "core/decide.ts",
    "findings.every(({ evidence }) => evidence.cluster !== cluster.name)",
    "findings.length === 0",
  ),
  mutant(
    "whatever version is there is deleted",
    "remove-lock.ts",
    "await backend.deleteLock(lock.key, lock.version)",
    'await backend.deleteLock(lock.key, await backend.readLock(lock.key, new AbortController().signal).then((read) => (read.kind === "found" ? read.version : lock.version)))',
  ),
  {
    name: "the record is written after the delete",
    edits: [
      {
        file: "src/remove-lock.ts",
        find: "  const intent = composeIntent(",
        replace: "  const early = await tryDelete(backend, lock);\n  const intent = composeIntent(",
      },
      {
        file: "src/remove-lock.ts",
        find: "const { unknown, ...removal } = await tryDelete(backend, lock);",
        replace: "const { unknown, ...removal } = early;",
      },
    ],
  },
  mutant("no second look", "sweep.ts", "if (planned().length > 0) await this.#lookAgain(work);", ""),
  mutant(
    "the skew is ignored where a container started after the lock",
    "core/finding.ts",
    "if (state.startedAt > owner.lockedAt + skew) return true;",
    "if (state.startedAt > owner.lockedAt) return true;",
  ),
  mutant(
    "the skew is ignored where a pod was made after the lock",
    "core/finding.ts",
    "return pod.createdAt > owner.lockedAt + skew &&",
    "return pod.createdAt > owner.lockedAt &&",
  ),
  mutant("--settle is ignored", "core/finding.ts", "suspect.pod.createdAt <= suspect.seenAt - suspect.settle", "suspect.pod.createdAt <= suspect.seenAt"),
  mutant("--min-age is ignored", "core/decide.ts", "if (age >= minAge)", "if (age >= 0n)"),
  mutant("a list cut short is taken as whole", "core/decide.ts", 'if (pods.kind === "incomplete")\n', 'if (pods.kind === "incomplete" && pods.total === 0)\n'),
  mutant("an ephemeral container does not count", "core/finding.ts", 'kind === "ephemeral" || named.includes(name)', "named.includes(name)"),
  mutant(
    "any container's last run proves that the lock is an earlier run's",
    "core/finding.ts",
    "wasWrittenBefore(container, state.startedAt, owner.lockedAt)",
    "pod.containers.some((other) => wasWrittenBefore(other, state.startedAt ?? 0n, owner.lockedAt))",
  ),
  mutant("Ready False is fine", "core/node-trust.ts", 'node.ready === "True" ? doubtReturn', 'node.ready !== "Unknown" ? doubtReturn'),
  mutant(
    "a node that came back just now is fine",
    "core/node-trust.ts",
    'if (readySince === undefined) return "does not say since when it is Ready";',
    'if (readySince !== undefined || reportedAt !== undefined) return readySince === undefined ? "does not say" : undefined;',
  ),
  mutant(
    "how long a node has been back is told by the janitor's clock alone",
    "core/node-trust.ts",
    "reportedAt - readySince < RETURNED_NODE_DOUBT ?",
    "reportedAt - readySince < 0n ?",
  ),
  mutant("the loss that a node tells of itself is believed to the second", "core/node-trust.ts", "earliest: latest - REPORTED_WITHIN", "earliest: readySince"),
  mutant(
    "a runtime that hangs is noticed as soon as silence",
    "core/node-trust.ts",
    'node.ready === "False" ? HANG_NOTICED : SILENCE_NOTICED',
    "SILENCE_NOTICED",
  ),
  mutant("the loss of a node that came back and was lost again counts at once", "core/node-trust.ts", " && lost.latest <= now - RETURNED_NODE_DOUBT", ""),
  {
    name: "the valve is looked at after the removals",
    edits: [
      {
        file: "src/sweep.ts",
        find: "    this.#refuse(work);\n    if (planned().length > 0 && this.#settings.afterUnlock",
        replace: "    if (planned().length > 0 && this.#settings.afterUnlock",
      },
      {
        file: "src/sweep.ts",
        find: "    this.#refuse(work);\n    if (this.#settings.delete) {\n      await this.#remove(work);",
        replace: "    if (this.#settings.delete) {\n      await this.#remove(work);\n      this.#refuse(work);",
      },
    ],
  },
  mutant("a zombie is alive", "core/processes.ts", ".filter(({ zombie }) => !zombie)", ".filter(() => true)"),
  mutant(
    "another pulumi process is no veto",
    "core/processes.ts",
    "if (called && !isHelper(process.name) && process.startedAt <= owner.lockedAt + skew)",
    "if (called && !isHelper(process.name) && process.startedAt < 0n)",
  ),
  mutant("a language host that was left behind is a veto", "core/processes.ts", "if (called && !isHelper(process.name) && process", "if (called && process"),
  mutant(
    "a look by name keeps a lock from being probed",
    "judge-locks.ts",
    "held === undefined || awaitsProbe(lock, held, now(), rules.probe)",
    "held === undefined",
  ),
  mutant(
    "a process younger than the lock is another, whatever it is called",
    "core/processes.ts",
    "(called || process.startedAt <= owner.lockedAt + skew)",
    "process.startedAt <= owner.lockedAt + skew",
  ),
  mutant(
    "a nested PID namespace is not looked for",
    "core/processes.ts",
    "if (process.innerPids.includes(owner.pid))",
    "if (process.innerPids.length > 1_000)",
  ),
  mutant("containers that were not looked at are believed empty", "core/processes.ts", "if (unseen !== undefined)", "if (unseen?.name === '')"),
  mutant("the host's pattern is not checked", "core/decide.ts", "if (matching.length > 0)", "if (matching.length >= 0)"),
  mutant(
    "a restart count is proof",
    "core/finding.ts",
    "if (state.startedAt > owner.lockedAt + skew) return true;",
    "if ((container.restartCount ?? 0) > 0) return true;",
  ),
  mutant(
    "age is proof",
    "core/finding.ts",
    "?? describeHolder(suspect);",
    '?? (suspect.seenAt - suspect.owner.lockedAt > 20n * MINUTE ? { kind: "gone", reason: "pod-ended", message: "old", rest: findRest(suspect) } : describeHolder(suspect));',
  ),
  mutant(
    "a status of a silent node is believed",
    "core/finding.ts",
    '    case "ready":\n    case "unscheduled":',
    '    case "ready":\n    case "not-ready":\n    case "unscheduled":',
  ),
  mutant(
    "a status is believed for a lock that is younger",
    "core/finding.ts",
    "latestTimeOf(owner, storedAt) < OLDEST_STATUS)",
    "latestTimeOf(owner, storedAt) < 0n)",
  ),
  mutant(
    "a pod of which nothing is told is proof after a minute, whatever the store knows",
    "core/finding.ts",
    "if (told || (dated && !young)",
    "if (told || !young",
  ),
  mutant(
    "a rest is believed of a lock whose age only its writer tells",
    "core/finding.ts",
    "if (!resting || isDatedByStore(suspect))",
    "if (!resting || seenAt > 0n)",
  ),
  mutant(
    "a guest's clock is the node's",
    "core/finding.ts",
    "if (pod.runtimeClassName === undefined || starts.every(",
    "if (pod.runtimeClassName !== '' || starts.every(",
  ),
  mutant(
    "a start that was noted late makes a pod another",
    "core/finding.ts",
    "start <= owner.lockedAt + skew))) return undefined;",
    "start < 0n))) return undefined;",
  ),
  mutant(
    "a Failed of pod GC is the kubelet's",
    "core/finding.ts",
    'pod.disruption === "DeletionByPodGC" || node.kind === "deleted"',
    'node.kind === "deleted"',
  ),
  mutant("a lock that a person put back is judged like any", "core/decide.ts", "if (!restored.has(key))", "if (restored.size >= 0)"),
  mutant("records of a run that crashed are left open", "sweep.ts", "if (this.#settings.delete) await this.#complete(backend, audit);", ""),
];
