import type { Container, ContainerProcesses, Pod, ProcessObservation } from "../core/cluster.ts";
import { MAX_PROBE_BYTES, parseProbe, PROBE_COMMAND } from "../core/process-probe.ts";
import { quoteUntrusted } from "../core/text.ts";
import type { ApiClient } from "./api-client.ts";
import { listObjects } from "./list-objects.ts";
import { readPod } from "./read-objects.ts";
import { mayDo } from "./review-access.ts";
import type { CommandAnswer } from "./run-command.ts";

/**
 * Looks at the processes of a pod: one command in each running container, ephemeral ones too, and then at the pod again, since what was seen
 * counts only for the containers that were listed. All of it, or nothing that proves anything.
 */
export async function probeProcesses(client: ApiClient, pod: Pod, signal: AbortSignal): Promise<ProcessObservation> {
  const running = pod.containers.filter(mayRun);
  if (running.length === 0) return couldNotLook("no container of it runs");
  const seen: ContainerProcesses[] = [];
  for (const { name, containerId, state } of running) {
    const fail = (problem: string): ProcessObservation => couldNotLook(`container ${quoteUntrusted(name)}: ${problem}`);
    if (state.kind !== "running" || containerId === undefined) return fail("its status does not say whether it runs");
    const answer = await client.runCommand(pathOfCommand(pod, name), MAX_PROBE_BYTES, signal);
    if (answer.kind !== "ok") return fail(describeAnswer(answer));
    const probe = parseProbe(answer.output, state.startedAt);
    if (probe.kind !== "looked") return fail(probe.problem);
    seen.push({ container: name, containerId, processes: probe.processes });
  }
  const problem = await findChange(client, pod, signal);
  return problem === undefined ? { kind: "looked", containers: seen } : couldNotLook(problem);
}

/** Why the pod is no longer the one that was listed, if so. */
async function findChange(client: ApiClient, pod: Pod, signal: AbortSignal): Promise<string | undefined> {
  let found: Pod[] = [];
  const resource = { path: `/api/v1/namespaces/${encodeURIComponent(pod.namespace)}/pods`, name: "pods" };
  const visit = { onStart: () => (found = []), onItem: (item: unknown) => found.push(readPod(item)) };
  const result = await listObjects(client, resource, { fieldSelector: `metadata.name=${pod.name}` }, visit, signal);
  if (result.kind === "failed") return `whether its containers are still the same is not known: ${result.problem}`;
  const now = found.find(({ name }) => name === pod.name);
  if (now === undefined || now.uid !== pod.uid) return "it was gone, or another pod of its name was there, when they had been looked at";
  return describeRunning(now) === describeRunning(pod) ? undefined : "its containers changed while they were looked at";
}

function describeRunning({ containers }: Pod): string {
  const parts = containers.filter(mayRun).map(({ name, kind, state, containerId }) => [kind, name, state.kind, containerId]);
  return JSON.stringify(parts.toSorted(([, a = ""], [, b = ""]) => (a < b ? -1 : 1)));
}

function mayRun({ state }: Container): boolean {
  return state.kind === "running" || state.kind === "unreported";
}

function pathOfCommand({ namespace, name }: Pod, container: string): string {
  const query = new URLSearchParams({ container, stdout: "true", stderr: "true" });
  for (const word of PROBE_COMMAND) query.append("command", word);
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/exec?${query.toString()}`;
}

function describeAnswer(answer: Exclude<CommandAnswer, { kind: "ok" }>): string {
  if (answer.kind === "failed") return answer.problem;
  switch (answer.status) {
    case 400:
      return "the API server says that no command can be run in it (400)";
    case 401:
      return "the credentials were not accepted (401)";
    case 403:
      // Since Kubernetes 1.35 a WebSocket wants both verbs.
      return 'running a command in it is not allowed (403): it wants the verbs "get" and "create" on pods/exec';
    case 404:
      return "the API server does not find it (404)";
    default:
      return answer.status < 400
        ? `the API server answered ${answer.status}: something on the way does not let a WebSocket pass`
        : `the API server answered ${answer.status} to the command`;
  }
}

/** The verbs on pods/exec that are not allowed in a namespace; undefined where the API server does not tell. */
export async function findMissingExecVerbs(client: ApiClient, namespace: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const missing: string[] = [];
  for (const verb of ["get", "create"]) {
    const allowed = await mayDo(client, { namespace, verb, group: "", resource: "pods", subresource: "exec" }, signal);
    if (allowed === undefined) return undefined;
    if (!allowed) missing.push(verb);
  }
  return missing;
}

function couldNotLook(problem: string): ProcessObservation {
  return { kind: "could-not-look", problem };
}
