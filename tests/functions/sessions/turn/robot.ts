/**
 * A stateful session that runs scripts: programs drawn at random, which read clocks and dice, race reads of the store
 * against each other, wait, write, ask outside servers and throw. What it gives out links: each answer names the one
 * before by its digest, so that whoever collects them sees a fork.
 */
import { type From, Session } from "../../../../functions/class/session.ts";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { decodeOutsideAnswer, encodeOutside } from "../../../../functions/sessions/turn/call_bytes.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { map, type TrackedMap } from "../../../../functions/tracked/mod.ts";
import type { TurnLoop } from "../../../../functions/sessions/turn/turn_loop.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import type { WhenThrown } from "../../../../functions/class/when_thrown.ts";
import { packKey } from "../../../../store/model/key.ts";

/** One step of a script. */
export type Step =
  | { readonly op: "clock" | "busy" | "draw" | "microtasks" | "throw" | "balk" | "list" | "reset" }
  | { readonly op: "sleep" | "later"; readonly ms: number }
  | { readonly op: "race"; readonly keys: readonly number[] }
  | { readonly op: "put" | "checked" | "stray"; readonly key: number }
  | { readonly op: "ask" | "post"; readonly path: number }
  | { readonly op: "timer"; readonly name: string; readonly ms: number }
  | { readonly op: "unset"; readonly name: string };

/** What every output says. */
export interface Link {
  /** How many came before it. */
  readonly n: number;
  /** Digests of all up to the one before, and up to this one. */
  readonly before: number;
  readonly after: number;
  /** What it saw and did. */
  readonly trace: readonly (readonly [op: string, ...values: (string | number | null)[]])[];
}

type Trace = (readonly [string, ...(string | number | null)[]])[];

/** Whose turn it is: set by whoever runs loops, one at a time. */
export const stage: { loop: TurnLoop | undefined } = { loop: undefined };

function here(): Program {
  const program = stage.loop?.current;
  if (program === undefined) throw new Error("a robot acted outside of a turn");
  return program;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => here().setLocal(ms, resolve));
const key = (n: number) => packKey(["row", n]);
const utf8 = new TextEncoder();
const text = new TextDecoder();

/** An outside request, as `fetch` would make it; the answer is text. */
function outside(method: "GET" | "POST", path: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = encodeCall({
      kind: "fetch",
      method,
      url: `http://outside/${path}`,
      headers: [],
      body: null,
    });
    here().call({
      kind: "fetch",
      bytes: encodeOutside({ redirect: "follow", call }),
      name: `fetch ${path}`,
      done: (bytes) => resolve(text.decode(decodeOutsideAnswer(bytes).answer)),
      failed: (code) => reject(new Error(code)),
    }, method === "POST");
  });
}

/** A digest, of 32 bits: not the executor's. */
export function digest(value: unknown): number {
  let hash = 5381;
  for (const byte of utf8.encode(JSON.stringify(value))) hash = (Math.imul(hash, 33) ^ byte) >>> 0;
  return hash;
}

export class Robot extends Session<ProgramStore> {
  /** Of the run. */
  static whenThrown: WhenThrown = "reject";
  chain = 0;
  handled = 0;
  /** Plain state that two fields share: a checkpoint makes two of it. */
  shared = { count: 0 };
  other = this.shared;
  seen: TrackedMap<string, number> = map<string, number>();
  born: number = here().now();
  luck: number = here().random();

  async run(script: readonly Step[]): Promise<Link> {
    const trace: Trace = [];
    for (const step of script) await this.#step(step, trace);
    return this.#link(trace);
  }

  /** All of the state, for one who compares. */
  state(): unknown {
    const { chain, handled, shared, other, born, luck } = this;
    return { chain, handled, shared, other, born, luck, seen: [...this.seen] };
  }

  /** One that is called u… is not let in, unless the time is right. */
  override onOpen(from: From): void {
    this.#tell([["open", from.id]]);
    if (from.id.startsWith("u")) this.#balk();
  }

  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    const { k, script } = JSON.parse(String(message)) as { k: number; script: readonly Step[] };
    const trace: Trace = [["said", from.id, k]];
    for (const step of script) await this.#step(step, trace);
    this.#tell(trace);
  }

  override onClose(from: From): void {
    this.#tell([["close", from.id]]);
    if (from.id.startsWith("c")) this.#balk();
  }

  /** One that is called x… throws, unless the time is right. */
  override async onTimer(name: string): Promise<void> {
    if (name.startsWith("x")) {
      if (here().now() % 2 === 0) await outside("POST", 9);
      if (here().now() % 3 > 0) {
        this.chain = -1;
        throw new Error("not yet");
      }
    }
    this.#tell([["timer", name, here().now()]]);
  }

  /** Throws, unless the time is right. */
  #balk(): void {
    if (here().now() % 3 > 0) return;
    this.chain = -1;
    throw new Error("not now");
  }

  /** Says it to all that are here, and who they are. */
  #tell(trace: Trace): void {
    const { clients } = this;
    trace.push(["to", ...clients.map(({ id }) => id)]);
    const link = JSON.stringify(this.#link(trace));
    for (const client of clients) client.send(link);
  }

  #link(trace: Trace): Link {
    const before = this.chain;
    this.shared.count++;
    trace.push(["state", this.shared.count, this.other.count, this.luck, this.seen.size]);
    this.chain = digest([before, trace]);
    return { n: this.handled++, before, after: this.chain, trace };
  }

  async #step(step: Step, trace: Trace): Promise<void> {
    const store = this.env;
    switch (step.op) {
      case "clock": {
        const first = here().now();
        await null;
        trace.push(["clock", first, here().now()]);
        return;
      }
      case "busy": {
        const first = here().now();
        for (let i = 0; i < 9000; i++) here().now();
        trace.push(["busy", first, here().now()]);
        return;
      }
      case "draw":
        trace.push(["draw", here().random()]);
        return;
      case "sleep":
        await sleep(step.ms);
        trace.push(["slept", here().now()]);
        return;
      case "later":
        here().setLocal(step.ms, () => this.#tell([["later", here().now()]]));
        return;
      case "race": {
        const order: string[] = [];
        await Promise.all(step.keys.map(async (n) => {
          const [row] = await store.get([key(n)], "session");
          order.push(`${n}:${row === null || row === undefined ? "-" : text.decode(row.value)}`);
        }));
        trace.push(["race", order.join()]);
        this.seen.set(order[0] ?? "", this.handled);
        return;
      }
      case "stray":
        // Nobody waits for it: it comes while another handler runs, or none.
        store.get([key(step.key)], "session").then(([row]) => {
          const value = row === null || row === undefined ? "-" : text.decode(row.value);
          this.#tell([["stray", step.key, value, here().now()]]);
        });
        return;
      case "list": {
        const { rows } = await store.list({
          start: key(0),
          end: key(99),
          limit: 100,
          reverse: false,
          level: "session",
        });
        trace.push(["list", rows.map((row) => text.decode(row.value)).join()]);
        return;
      }
      case "put": {
        const value = `${step.key}=${this.handled}.${trace.length}`;
        const put = await store.commit([], [{ kind: "set", key: key(step.key), value: utf8.encode(value) }]);
        const [row] = await store.get([key(step.key)], "session");
        const version = put.ok ? put.versionstamp : null;
        trace.push([
          "put",
          step.key,
          value,
          version,
          row === null || row === undefined ? null : text.decode(row.value),
        ]);
        return;
      }
      case "checked": {
        const value = utf8.encode(`${step.key}=${this.handled}!`);
        const [row] = await store.get([key(step.key)], "session");
        const done = await store.commit(
          [{ key: key(step.key), versionstamp: row?.versionstamp ?? null }],
          [{ kind: "set", key: key(step.key), value }],
        );
        trace.push(["checked", done.ok ? done.versionstamp : null]);
        return;
      }
      case "ask":
        trace.push(["ask", await outside("GET", step.path)]);
        return;
      case "post":
        trace.push(["post", await outside("POST", step.path)]);
        return;
      case "timer":
        this.setTimer(step.name, step.ms);
        trace.push(["set", step.name, here().now() + step.ms]);
        return;
      case "unset":
        this.clearTimer(step.name);
        trace.push(["unset", step.name]);
        return;
      case "microtasks": {
        const order: string[] = [];
        const walk = async (name: string, steps: number) => {
          for (let i = 0; i < steps; i++) {
            await Promise.resolve();
            order.push(name);
          }
        };
        await Promise.all([walk("a", 3), walk("b", 2), walk("c", 4)]);
        trace.push(["microtasks", order.join("")]);
        return;
      }
      case "reset":
        this.seen.clear();
        return;
      case "balk":
        return this.#balk();
      case "throw":
        this.chain = -1;
        throw new Error("as the script says");
    }
  }
}
