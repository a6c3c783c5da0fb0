import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";

import type { Pod, ProcessObservation } from "../../src/core/cluster.ts";
import { PROBE_COMMAND } from "../../src/core/process-probe.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { readPod } from "../../src/kubernetes/read-objects.ts";
import { aFailure, anAnswer, answerWith, channel, SUCCESS } from "./exec-answers.ts";
import { StubApiServer, type SeenCall, type StubAnswer } from "./stub-api-server.ts";

const never = new AbortController().signal;
const PODS = "/api/v1/namespaces/iac/pods";
const EXEC = `${PODS}/app-workspace-0/exec`;

let server: StubApiServer;
let cluster: ClusterSource;
beforeEach(async () => {
  server = new StubApiServer();
  await server.start();
  setPod(aPodObject());
  server.exec = answerWith(anAnswer());
  cluster = server.open();
});
afterEach(async () => {
  await cluster.close();
  await server.stop();
});

interface PodWords {
  readonly uid?: string;
  readonly ids?: Readonly<Record<string, string>>;
  readonly ephemeral?: string;
}

/** A pod with two running containers, one that has ended, and one that waits. */
function aPodObject({ uid = "uid-1", ids = {}, ephemeral }: PodWords = {}): object {
  const running = (name: string): object => ({
    name,
    containerID: ids[name] ?? `containerd://${name}`,
    state: { running: { startedAt: "2026-03-01T00:00:10Z" } },
  });
  const debug = ephemeral === undefined ? [] : [ephemeral];
  return {
    metadata: { name: "app-workspace-0", namespace: "iac", uid, creationTimestamp: "2026-03-01T00:00:00Z" },
    spec: {
      nodeName: "node-1",
      containers: [{ name: "pulumi" }, { name: "exporter" }],
      initContainers: [{ name: "proxy", restartPolicy: "Always" }, { name: "fetch" }],
      ephemeralContainers: debug.map((name) => ({ name })),
    },
    status: {
      phase: "Running",
      containerStatuses: [running("pulumi"), { name: "exporter", state: { waiting: { reason: "CrashLoopBackOff" } } }],
      initContainerStatuses: [running("proxy"), { name: "fetch", state: { terminated: { exitCode: 0 } } }],
      ephemeralContainerStatuses: debug.map(running),
    },
  };
}

function setPod(pod: object): void {
  server.objects.set(PODS, [pod]);
}

async function probe(pod: Pod = readPod(aPodObject()), signal = never): Promise<ProcessObservation> {
  if (cluster.probe === undefined) throw new Error("the cluster cannot probe");
  return await cluster.probe(pod, signal);
}

/** A container whose shell is this machine's. */
function runHere(call: SeenCall, socket: WebSocket): void {
  const [command = "", ...words] = call.query.getAll("command");
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "ignore"] });
  child.stdout.on("data", (data: Buffer) => socket.send(Buffer.concat([Buffer.from([1]), data])));
  child.on("close", (code) => {
    socket.send(code === 0 ? SUCCESS : aFailure("NonZeroExitCode", "failed", code ?? 1));
    socket.close();
  });
}

function execCalls(): readonly SeenCall[] {
  return server.calls.filter(({ path }) => path === EXEC);
}

describe("a look at the processes of a pod", () => {
  it("is one command in each running container, and one more look at the pod", async () => {
    expect(await probe()).toMatchObject({
      kind: "looked",
      containers: [
        { container: "pulumi", containerId: "containerd://pulumi", processes: [{ pid: 1 }, { pid: 9 }] },
        { container: "proxy", containerId: "containerd://proxy", processes: [{ pid: 1 }, { pid: 9 }] },
      ],
    });
    expect(server.calls.map(({ path, query }) => `${path} ${query.get("container") ?? query.get("fieldSelector") ?? ""}`)).toEqual([
      `${EXEC} pulumi`,
      `${EXEC} proxy`,
      `${PODS} metadata.name=app-workspace-0`,
    ]);
    const [call] = execCalls();
    expect(call?.query.getAll("command")).toEqual(PROBE_COMMAND);
    expect(call?.query.get("stdin")).toBeNull();
    expect(call?.headers["sec-websocket-protocol"]?.split(", ")[0]).toBe("v5.channel.k8s.io");
    expect(call?.headers.authorization).toBe("Bearer first-token");
  });

  it.runIf(process.platform === "linux")("by a real shell, this test's own process among others", async () => {
    server.exec = runHere;
    const observation = await probe();
    expect(observation).toMatchObject({
      kind: "looked",
      containers: [{ processes: expect.arrayContaining([expect.objectContaining({ pid: process.pid })]) }, {}],
    });
  });

  it("into an ephemeral container, too (1.4)", async () => {
    const object = aPodObject({ ephemeral: "debug" });
    setPod(object);
    expect(await probe(readPod(object))).toMatchObject({ kind: "looked", containers: [{}, {}, { container: "debug" }] });
  });

  it("a server that knows the older protocol only will do", async () => {
    server.chooseProtocol = (offered) => offered.find((name) => name === "v4.channel.k8s.io");
    expect((await probe()).kind).toBe("looked");
  });

  it("what the shell writes to stderr is not part of the answer", async () => {
    server.exec = (call, socket) => {
      socket.send(channel(2, "sh: can't open '/proc/7/status'\n"));
      answerWith(anAnswer())(call, socket);
    };
    expect((await probe()).kind).toBe("looked");
  });

  it("leaves no connection behind, however the other side behaves", async () => {
    server.exec = (_, socket) => {
      socket.send(channel(1, anAnswer()));
      socket.send(SUCCESS);
    };
    expect((await probe()).kind).toBe("looked");
    await cluster.close();
    await expect.poll(() => server.connections).toBe(0);
  });
});

describe("credentials are those of the moment", () => {
  it("a token that was written anew is sent", async () => {
    await probe();
    writeFileSync(join(server.folder, "token"), "second-token");
    await probe();
    expect(execCalls().map(({ headers }) => headers.authorization)).toEqual([...Array(2).fill("Bearer first-token"), ...Array(2).fill("Bearer second-token")]);
  });

  it("one that is no longer accepted is asked for again, once", async () => {
    await probe();
    let refusals = 0;
    server.answer = ({ path }) => (path === EXEC && (refusals += 1) === 1 ? { kind: "status", status: 401 } : undefined);
    expect((await probe()).kind).toBe("looked");
    server.answer = ({ path }) => (path === EXEC ? { kind: "status", status: 401 } : undefined);
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("credentials were not accepted (401)") });
  });
});

describe("P1: could not look, and says in which container and why", () => {
  it.each<[string, StubAnswer, RegExp]>([
    ["403", { kind: "status", status: 403 }, /^container "pulumi": .*not allowed \(403\).*"get" and "create" on pods\/exec/],
    ["404", { kind: "status", status: 404 }, /does not find it \(404\)/],
    ["400", { kind: "status", status: 400 }, /no command can be run in it \(400\)/],
    ["500, since the node cannot be reached", { kind: "status", status: 500 }, /answered 500 to the command/],
    ["a proxy that knows no WebSocket", { kind: "status", status: 200 }, /does not let a WebSocket pass/],
    ["a redirection, which would take the token elsewhere", { kind: "status", status: 302, headers: { location: "http://127.0.0.1:1/" } }, /answered 302/],
    ["a connection that is cut at once", { kind: "cut" }, /request failed/],
    ["no answer", { kind: "hang" }, /did not end within 0\.5 s/],
  ])("%s", async (_, answer, problem) => {
    server.answer = ({ path }) => (path === EXEC ? answer : undefined);
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringMatching(problem) });
    // The first container that cannot be seen is enough.
    expect(execCalls()).toHaveLength(1);
  });

  const whole = anAnswer();
  it.each<[string, StubApiServer["exec"], RegExp]>([
    [
      "no shell, as containerd and runc say it",
      answerWith("", aFailure("InternalError", 'OCI runtime exec failed: exec: "sh": executable file not found in $PATH: unknown')),
      /has no shell/,
    ],
    ["no shell, by its exit code", answerWith("", aFailure("NonZeroExitCode", "command terminated with exit code 127", 127)), /has no shell/],
    ["another exit code, behind a whole answer", answerWith(whole, aFailure("NonZeroExitCode", "command terminated", 1)), /exit code 1/],
    ["killed behind a whole answer", answerWith(whole, aFailure("NonZeroExitCode", "command terminated", 137)), /exit code 137/],
    ["another failure", answerWith(whole, aFailure("InternalError", "secret-of-the-server")), /could not be run \(InternalError\)/],
    ["Success behind half an answer", answerWith(whole.slice(0, whole.length / 2)), /cut off|belongs/],
    ["Success without an answer", answerWith(""), /answered nothing/],
    ["Success, and a word more than was asked for", answerWith(`${whole}gone\n`), /behind its end/],
    ["a Status that is none", answerWith(whole, channel(3, "{")), /Status that is none/],
    ["a Status in another case", answerWith(whole, channel(3, JSON.stringify({ status: "success" }))), /could not be run/],
    ["a whole answer without a Status", (_, socket) => socket.send(channel(1, whole), () => socket.close()), /cut before the command had ended/],
    [
      "cut in the middle",
      (_, socket) => socket.send(channel(1, whole.slice(0, 80)), () => socket.terminate()),
      /cut before the command had ended|request failed/,
    ],
    ["a whole answer, then silence", (_, socket) => socket.send(channel(1, whole)), /did not end within/],
    ["an answer as text", (_, socket) => socket.send("1text"), /belongs to no channel/],
    ["an empty message", (_, socket) => socket.send(Buffer.alloc(0)), /belongs to no channel/],
    ["a channel that is none", (_, socket) => socket.send(channel(9, whole)), /belongs to no channel/],
  ])("%s", async (_, exec, problem) => {
    server.exec = exec;
    const observation = await probe();
    expect(observation).toMatchObject({ kind: "could-not-look", problem: expect.stringMatching(problem) });
    expect(JSON.stringify(observation)).toMatch(/^.*container \\"pulumi\\": /);
    expect(JSON.stringify(observation)).not.toContain("secret-of-the-server");
  });

  it("a server that knows none of the protocols", async () => {
    server.chooseProtocol = () => undefined;
    expect((await probe()).kind).toBe("could-not-look");
  });

  it("an answer without an end is not read for ever", async () => {
    const flood = Buffer.alloc(512 * 1_024, "x");
    flood[0] = 1;
    server.exec = (_, socket) => {
      for (let round = 0; round < 20; round += 1) socket.send(flood);
    };
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("too long") });
  });

  it("in the second container only", async () => {
    server.exec = (call, socket) =>
      call.query.get("container") === "proxy"
        ? answerWith("", aFailure("InternalError", "executable file not found"))(call, socket)
        : answerWith(whole)(call, socket);
    expect(await probe()).toEqual({ kind: "could-not-look", problem: 'container "proxy": it has no shell (sh) to look with' });
  });

  it.each<[string, object, RegExp]>([
    ["another container id afterwards: it was restarted meanwhile", aPodObject({ ids: { pulumi: "containerd://another" } }), /containers changed/],
    ["another container of the pod was", aPodObject({ ids: { proxy: "containerd://another" } }), /containers changed/],
    ["a debug container was added meanwhile", aPodObject({ ephemeral: "debug" }), /containers changed/],
    ["another pod of that name", aPodObject({ uid: "uid-2" }), /another pod of its name/],
  ])("%s", async (_, afterwards, problem) => {
    setPod(afterwards);
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringMatching(problem) });
  });

  it("the pod is gone afterwards", async () => {
    server.objects.set(PODS, []);
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("gone") });
  });

  it("the pod may not be looked at again", async () => {
    server.answer = ({ path }) => (path === PODS ? { kind: "status", status: 403 } : undefined);
    expect(await probe()).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining('the verb "list" on pods is not allowed') });
  });

  it("a container without an id, or a status, is not asked", async () => {
    const pod = readPod(aPodObject());
    const nameless = pod.containers.map(({ containerId, ...rest }) => ({
      ...rest,
      ...(rest.name === "proxy" || containerId === undefined ? {} : { containerId }),
    }));
    expect(await probe({ ...pod, containers: nameless })).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining('container "proxy"') });
    const unreported = pod.containers.map((container) =>
      container.name === "exporter" ? { ...container, state: { kind: "unreported" as const } } : container,
    );
    expect(await probe({ ...pod, containers: unreported })).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining('container "exporter"') });
    expect((await probe({ ...pod, containers: [] })).kind).toBe("could-not-look");
  });

  it("a signal ends it at once", async () => {
    server.exec = () => undefined;
    const began = Date.now();
    await expect(probe(readPod(aPodObject()), AbortSignal.timeout(50))).rejects.toThrow(/timeout/);
    expect(Date.now() - began).toBeLessThan(450);
  });

  it("names of a pod that are no names do not lead anywhere else", async () => {
    const pod = { ...readPod(aPodObject()), name: "../../secrets", namespace: "a/b" };
    server.answer = () => ({ kind: "status", status: 404 });
    expect((await probe(pod)).kind).toBe("could-not-look");
    expect(server.calls[0]?.path).toBe("/api/v1/namespaces/a%2Fb/pods/..%2F..%2Fsecrets/exec");
  });
});

describe("the right to look, for check", () => {
  const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const missing = async (): Promise<readonly string[] | undefined> => await cluster.findMissingExecVerbs?.("iac", never);

  it("is asked verb by verb", async () => {
    server.answer = ({ path }, earlier) => (path === REVIEWS ? { kind: "status", status: 201, body: { status: { allowed: earlier === 0 } } } : undefined);
    expect(await missing()).toEqual(["create"]);
  });

  it("is not known where the API server does not tell", async () => {
    server.answer = ({ path }) => (path === REVIEWS ? { kind: "status", status: 403 } : undefined);
    expect(await missing()).toBeUndefined();
    server.answer = ({ path }) => (path === REVIEWS ? { kind: "body", body: { kind: "SelfSubjectAccessReview" } } : undefined);
    expect(await missing()).toBeUndefined();
  });
});
