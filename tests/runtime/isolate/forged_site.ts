/** A site's ends of isolates whose processes are a forger: real stores, sockets and runs, and whatever he sends. */
import { callMaker } from "../../functions/sessions/serve/call_maker.ts";
import type { Home, OpenedSession as OpenedHome } from "../../../functions/sessions/home/mod.ts";
import type { Parked } from "../../../functions/sessions/turn/mod.ts";
import { appSpace, RequestStore } from "../../../runtime/gateway/session_store.ts";
import { PendingCall } from "../../../runtime/isolate/call.ts";
import { HostEgress } from "../../../runtime/isolate/egress.ts";
import { EgressRules } from "../../../runtime/isolate/egress_rules.ts";
import { Isolate } from "../../../runtime/isolate/isolate.ts";
import { DEFAULT_ISOLATE_LIMITS } from "../../../runtime/isolate/limits.ts";
import type { IsolateProcess } from "../../../runtime/isolate/process.ts";
import { StatefulIsolate } from "../../../runtime/isolate/stateful_isolate.ts";
import { SystemClock, SystemRandom } from "../../../runtime/site/system_ports.ts";
import { sessionRows } from "../../../runtime/stateful/session_rows.ts";
import { OwnStore } from "../../../functions/sessions/serve/own_store.ts";
import { toldTexts } from "../../../functions/sessions/serve/reason.ts";
import { ParkedTable } from "../../../runtime/stateful/parked_table.ts";
import { NO_HEAD } from "../../../functions/sessions/serve/pieces.ts";
import type { RunListener, RunOver } from "../../../functions/sessions/serve/run_over.ts";
import { ClockLead, RunVersions } from "../../../functions/sessions/serve/run_versions.ts";
import { SessionRun } from "../../../functions/sessions/serve/session_run.ts";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { Replica } from "../../../store/api/api.ts";
import { packKey } from "../../../store/model/key.ts";
import { openReplica } from "../../../store/replica.ts";
import { encode, type Field, type Form } from "./frame_forms.ts";

const LIMITS = { keyBytes: 2048, valueBytes: 1 << 20, atomicMutations: 1000, atomicBytes: 4 << 20 };
const APP = {
  ...{ app: "evil", version: "0".repeat(64), limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
  bundle: () => Promise.resolve(new Uint8Array()),
};
const CLASS = { class: "cart", id: "a" };
const FETCH = 0x80000000;

/** A process that says what it is told to. */
class Forger implements IsolateProcess {
  readonly pid = 0;
  readonly #exited = Promise.withResolvers<{ signal: string | null; code: number; said: string }>();
  readonly exited = this.#exited.promise;
  #said: Uint8Array[] = [];
  #reading: (() => void) | null = null;
  isKilled = false;
  readonly connection = {
    read: async (into: Uint8Array) => {
      while (this.#said.length === 0 && !this.isKilled) {
        await new Promise<void>((resolve) => this.#reading = resolve);
      }
      const next = this.#said.shift();
      if (next === undefined) return null;
      into.set(next.subarray(0, into.length));
      if (next.length > into.length) this.#said.unshift(next.subarray(into.length));
      return Math.min(next.length, into.length);
    },
    write: (bytes: Uint8Array) => Promise.resolve(bytes.length),
  };

  say(bytes: Uint8Array): void {
    this.#said.push(bytes);
    this.#reading?.();
  }

  kill(): void {
    this.isKilled = true;
    this.#reading?.();
    this.#exited.resolve({ signal: "SIGKILL", code: 0, said: "" });
  }

  lastStarted = () => 0;
  lastTurn = () => ({ channel: 0, received: 0 });
  usage = () => ({ cpuMs: 0, threads: 1, addressMib: 1, residentMib: 1 });
  readonly startedGivingWay = false;
  readonly hasEnded = false;
  giveWay = () => true;
  release = () => {};
}

async function replicaOf(fatal: (error: Error) => void): Promise<Replica> {
  const replica = await openReplica({
    ...{ site: "cloud", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    ...{ random: new SystemRandom(), storage: new MemoryStorage(), fatal, note: () => {} },
    clock: {
      nowMs: Date.now,
      steadyMs: () => performance.now(),
      after: () => () => {},
      turn: () => new Promise((done) => setImmediate(done)),
    },
    network: { send: () => Promise.resolve() },
  });
  await replica.ready;
  return replica;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** See the file's header. */
export class ForgedSite {
  readonly #replica: Replica;
  readonly #faults: unknown[];
  readonly #store: RequestStore;
  readonly #clock = new SystemClock();
  readonly #parked: ParkedTable;
  #parking: Promise<void> = Promise.resolve();
  #requests: { process: Forger; isolate: Isolate } | null = null;
  #pending: PendingCall | null = null;
  #request = 0;
  #stateful: { process: Forger; isolate: StatefulIsolate } | null = null;
  #run: { run: SessionRun; channel: number } | null = null;
  /** Timers of the fake processes' watchers and of runs are ended with them. */
  readonly #onUnexpected = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    this.#faults.push(event.reason);
  };

  private constructor(replica: Replica, store: RequestStore, faults: unknown[]) {
    this.#replica = replica;
    this.#store = store;
    this.#faults = faults;
    this.#parked = new ParkedTable(replica.system, (event) => void faults.push(event));
    globalThis.addEventListener("unhandledrejection", this.#onUnexpected);
  }

  static async open(): Promise<ForgedSite> {
    const faults: unknown[] = [];
    const replica = await replicaOf((error) => void faults.push(error));
    const session = await replica.attach(null);
    const use = { storeMs: 0, step: () => {} };
    const store = new RequestStore(session, {
      space: appSpace("evil"),
      limits: LIMITS,
      nowMs: Date.now,
      use,
    });
    return new ForgedSite(replica, store, faults);
  }

  /**
   * Has the forger send frames of one kind, each on the channel it belongs to.
   *
   * @returns what came of it.
   * @throws Error where more than his isolate suffers.
   */
  async hears(forms: readonly { form: Form; fields: readonly Field[] }[]): Promise<"ended" | "goes on"> {
    const isolates = new Set<{ readonly isOver: boolean }>();
    for (const { form, fields } of forms) {
      const { isolate, process, id } = await this.#end(form.of);
      isolates.add(isolate);
      process.say(encode(form.type, id, fields));
      await turn();
    }
    await turn();
    await this.#parking;
    const [fault] = this.#faults.splice(0);
    if (fault !== undefined) {
      throw new Error(`the site stops: ${fault instanceof Error ? fault.stack : String(fault)}`);
    }
    return [...isolates].some(({ isOver }) => isOver) ? "ended" : "goes on";
  }

  /** @throws Error where another app would notice. */
  async works(): Promise<void> {
    const key = packKey(["a", "good", "kv", "x"]);
    const session = await this.#replica.attach(null);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const written = await session.write([{ kind: "set", key, value: new Uint8Array([1, 1]) }]);
    const [row] = await session.get([key]);
    if (!written.ok || row === undefined) throw new Error("another app's write is not there");
  }

  async close(): Promise<void> {
    globalThis.removeEventListener("unhandledrejection", this.#onUnexpected);
    await this.#requests?.isolate.close();
    this.#run?.run.failed(new Error("over"));
    await this.#stateful?.isolate.close();
    await turn();
    await this.#parking;
    await this.#replica.close();
  }

  async #end(of: Form["of"]): Promise<{ isolate: Isolate | StatefulIsolate; process: Forger; id: number }> {
    if (of === "session") return await this.#session();
    const requests = await this.#isolate();
    const id = of === "none" ? 0 : of === "fetch" ? FETCH + this.#request : this.#request;
    return { ...requests, id };
  }

  /** One of requests, in which one is open. */
  async #isolate(): Promise<{ process: Forger; isolate: Isolate }> {
    if (this.#requests !== null && this.#requests.isolate.isOver) {
      await this.#requests.isolate.ended;
      this.#requests = null;
    }
    if (this.#requests === null) {
      const process = new Forger();
      const egress = new HostEgress(new EgressRules({ fetchHosts: [] }));
      const owner = { freed: () => {}, ended: () => {} };
      const isolate = new Isolate(process, { app: APP, owner, egress });
      void isolate.load(new Uint8Array());
      this.#requests = { process, isolate };
      this.#pending = null;
    }
    if (this.#pending === null || this.#pending.answered || this.#requests.isolate.exchanges.size === 0) {
      const { isolate } = this.#requests;
      for (const exchange of [...isolate.exchanges.values()]) exchange.end("over");
      this.#pending = this.#call();
      isolate.start(this.#pending, performance.now());
      this.#request = isolate.begun;
    }
    return this.#requests;
  }

  /** As the gateway makes one, and takes its answer. */
  #call(): PendingCall {
    const request = new Request("http://evil.example/", { method: "POST", body: "x" });
    const pending = new PendingCall(APP, {
      request: {
        method: "POST",
        url: request.url,
        headers: [],
        body: request.body,
        bytes: () => request.bytes(),
      },
      store: this.#store,
      context: { sessionId: "s", site: "cloud", version: APP.version },
      gate: () => {},
      log: () => {},
      sessions: { call: (_target, call) => Promise.resolve(call) },
      queues: { send: () => Promise.resolve() },
    }, null);
    void pending.answer.then((answer) => {
      if (answer.kind === "upgrade") answer.socket.bridge({ message: () => {}, close: () => {} });
      if (answer.kind === "response") void answer.response.body?.cancel();
    });
    return pending;
  }

  /** One of stateful sessions, in which one is open. */
  async #session(): Promise<{ isolate: StatefulIsolate; process: Forger; id: number }> {
    if (this.#stateful !== null && this.#stateful.isolate.isOver) {
      await this.#stateful.isolate.ended;
      this.#stateful = null;
    }
    if (this.#stateful === null) {
      const process = new Forger();
      this.#stateful = { process, isolate: new StatefulIsolate(process, APP, () => {}) };
      this.#run = null;
    }
    const { process, isolate } = this.#stateful;
    if (this.#run === null || this.#run.run.isOver) this.#run = await this.#opened(isolate);
    return { isolate, process, id: this.#run.channel };
  }

  /** As a site does. */
  #park(parked: Parked): void {
    const of = { version: APP.version, site: "cloud", atMs: Date.now() };
    this.#parking = toldTexts(parked, (text) => Promise.resolve(text)).then((told) =>
      this.#parked.park({ app: "evil", ...CLASS }, { ...told, ...of })
    );
  }

  async #opened(isolate: StatefulIsolate): Promise<{ run: SessionRun; channel: number }> {
    const store = await OwnStore.open(
      {
        ...sessionRows({ limits: LIMITS, space: appSpace("evil"), writes: undefined }),
        replica: this.#replica,
        ...{ nowMs: Date.now, leftOut: () => {} },
      },
      { ...CLASS, birth: "00" },
      NO_HEAD,
      () => Promise.resolve(),
    );
    const home = homeOf();
    const peers = { noted() {}, opened() {}, released() {}, ended() {}, isPeer: () => false };
    const { replica } = this.#replica.status();
    const run = new SessionRun({
      versions: new RunVersions(
        { replica, nowMs: Date.now, tick: () => store.tick(), lead: new ClockLead(Date.now) },
        [],
      ),
      home: { checkpoint: null, log: [], start: () => home, abandon: () => {} } as unknown as OpenedHome,
      ...{ version: "v1", store, clock: this.#clock, nowMs: Date.now, isShared: false, isAdopted: false },
      ...{ applied: 0, open: 0, queues: { store: () => Promise.resolve() } },
      listener: {
        peers: { ...peers, ready: () => Promise.resolve() },
        ...{ answered() {}, unanswered() {}, done() {}, rejected() {}, ending: () => Promise.resolve() },
        over: (_: unknown, over: RunOver) => void (over.kind === "parked" && this.#park(over.parked)),
        log() {},
        failed: () => {},
      } as unknown as RunListener,
      originWay: null,
      calls: callMaker({
        ...{ store, outside: null as never, keyOf: (effect) => `key ${effect}` },
        callSession: () => Promise.resolve({ answer: new Uint8Array([1]), heard: () => {} }),
      }),
    });
    const seed = new Uint8Array(16);
    const session = {
      ...CLASS,
      epoch: 1,
      replica,
      code: "c",
      seed,
      checkpoint: null,
      entries: new Uint8Array(),
    };
    const channel = isolate.open({ ...session, out: {}, effectsApplied: 0 }, run);
    run.start(Promise.resolve({ isolate, channel })).catch(() => {});
    run.serve(null);
    await turn();
    return { run, channel };
  }
}

/** A home whose owners hold all at once. */
function homeOf(): Home {
  const home = {
    ...{ sequence: 0, epoch: 1, over: new Promise(() => {}), logBytes: 0, hosts: { asked: [] } },
    ...{ settled: () => Promise.resolve(), rest: () => Promise.resolve(), end: () => Promise.resolve() },
    ...{ checkpoint: () => Promise.resolve(), dropped() {}, received() {} },
    ask: () => ({ kind: "unknown" }),
    commit: ({ count }: { count: number }) => {
      home.sequence += count;
      return Promise.resolve();
    },
  };
  return home as unknown as Home;
}
