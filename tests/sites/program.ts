/**
 * What the stateful sessions of the simulation run: a message or a call says what it does, word by word, and all that
 * comes of it names what came before, so that whoever collects it sees a fork, a repeat or a hole. `Ledger`
 * (ledger.ts) says by itself what must come of the same inputs; nothing is shared but these words.
 */
import { type From, Session } from "../../functions/class/session.ts";
import { decodeAnswer, encodeCall } from "../../functions/calls/call.ts";
import { map } from "../../functions/tracked/mod.ts";
import {
  decodeOutsideAnswer,
  encodeCallToSession,
  encodeOutside,
} from "../../functions/sessions/turn/call_bytes.ts";
import { chainName } from "../../functions/sessions/turn/event.ts";
import type { Program } from "../../functions/sessions/turn/program.ts";
import type { ProgramStore } from "../../functions/sessions/turn/session_store.ts";
import type { TurnLoop } from "../../functions/sessions/turn/turn_loop.ts";
import type { WhenThrown } from "../../functions/class/when_thrown.ts";
import { decodeValue, encodeValue } from "../../functions/values/value.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import type { Mutation } from "../../functions/vocabulary/store_client.ts";

/**
 * One word of a message. `tick` and `jolt` set a timer (the second throws, as `balk` does, unless the time is right),
 * `soon` one that is due at once and is set again when it is called, a few times,
 * `slow` and `long` wait within their handler, `call` asks another session for something (`call:CLASS/ID`), `put` writes, `swap` writes with a check, `post` asks the server outside for
 * something that it is to do once, `mail` sends a message to a queue, `kick` sends its sender away, `end` ends the session: what is asked of its name after
 * that is asked of another, which says nothing that this one has said (`life`).
 *
 * Rows that all share (tests/sim/keyspace.ts) are named GROUP/NUMBER: `get:ROW` reads one, `set:ROW:WRITE` and `del:ROW:WRITE`
 * are the write of that number, `sum:ROW:WRITE:HEX` adds, `alarm:ROW:WRITE` sets a timer that is the write when it is due.
 */
export type Op =
  | "echo"
  | "all"
  | "origin"
  | "quiet"
  | "slow"
  | "tick"
  | "jolt"
  | "soon"
  | "long"
  | "call"
  | "put"
  | "get"
  | "set"
  | "del"
  | "sum"
  | "alarm"
  | "swap"
  | "post"
  | "mail"
  | "throw"
  | "balk"
  | "kick"
  | "end";

export const KICK = { code: 4001, reason: "out" };
export const OUTSIDE = "http://outside.test";

/** Whose turn it is: set by whoever runs loops, one at a time. */
export const stage: { loop: TurnLoop | undefined } = { loop: undefined };

function here(): Program {
  const program = stage.loop?.current;
  if (program === undefined) throw new Error("a session acted outside of a turn");
  return program;
}

const AGAIN = 3, LONG_MS = 600, ALARM_MS = 40;
const text = new TextDecoder(), utf8 = new TextEncoder();
const sleep = (ms: number): Promise<void> => new Promise((resolve) => here().setLocal(ms, resolve));

/** Asks the server outside to do something once; what it says. */
function post(what: string): Promise<string> {
  const url = `${OUTSIDE}/${encodeURIComponent(what)}`;
  const call = encodeCall({ kind: "fetch", method: "POST", url, headers: [], body: null });
  return new Promise((resolve) => {
    here().call({
      kind: "fetch",
      bytes: encodeOutside({ redirect: "follow", call }),
      name: `post ${what}`,
      done: (bytes) => resolve(text.decode(decodeOutsideAnswer(bytes).answer)),
      failed: (code) => resolve(`failed: ${code}`),
    }, true);
  });
}

/** Has another session run something; what it says. */
function call(to: string, what: string): Promise<string> {
  const [className = "", id = ""] = to.split("/");
  const program = here();
  const chain = [...program.handler?.chain ?? [], chainName(program.className, program.id)];
  const bytes = encodeCall({ kind: "rpc", method: "run", args: encodeValue([what]) });
  return new Promise((resolve) => {
    program.call({
      kind: "session",
      bytes: encodeCallToSession({ target: { class: className, id }, chain, call: bytes }),
      name: `call of ${to}`,
      done: (bytes) => {
        const answer = decodeAnswer(bytes);
        resolve(answer.kind === "value" ? `${decodeValue(answer.value)}` : `failed: ${answer.kind}`);
      },
      failed: (code) => resolve(`failed: ${code}`),
    }, true);
  });
}

export const textValue = (value: string): Uint8Array =>
  new Uint8Array([VALUE_TAG.text, ...utf8.encode(value)]);

/** A row that all share, as the app names it. */
function sharedKey(name: string): Key {
  const [group = "", number] = name.split("/");
  return packKey([group, Number(number)]);
}

/** A digest of 32 bits: not the executor's. */
export function digest(before: number, what: string): number {
  let hash = before ^ 0x1f2e3d4c;
  for (const byte of utf8.encode(what)) hash = (Math.imul(hash, 33) ^ byte) >>> 0;
  return hash;
}

/** See the file's header. */
export class Whole extends Session<ProgramStore> {
  static whenThrown: WhenThrown = "reject";
  said = 0;
  chain = 0;
  /** How often each sender was heard. */
  heard = map<string, number>();
  /** How often `soon` is to be set again. */
  again = 0;
  /** What tells it from others that had its name before; empty: it has said nothing. */
  life = "";

  async run(what: string): Promise<string> {
    await this.#obey(what, null);
    return this.#link(what);
  }

  override onOpen(from: From): void {
    from.send(this.#link(`open ${from.id}`));
  }

  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    const what = typeof message === "string" ? message : text.decode(message);
    this.heard.set(from.id, (this.heard.get(from.id) ?? 0) + 1);
    await this.#obey(what, from);
  }

  override onTimer(name: string): void {
    if (name === "jolt") this.#balk();
    this.#all(`timer ${name}`);
    if (name.startsWith("alarm:")) return void this.#write(name.replace("alarm", "set"));
    if (name !== "soon" || this.again === 0) return;
    this.again--;
    this.setTimer(name, 0);
  }

  override onClose(from: From): void {
    this.heard.delete(from.id);
    this.#all(`close ${from.id}`);
  }

  async #obey(what: string, from: From | null): Promise<void> {
    for (const op of what.split(" ").slice(1) as Op[]) await this.#do(op, what, from);
  }

  async #do(op: Op, what: string, from: From | null): Promise<void> {
    if (op.startsWith("call:")) return await this.#call(op.slice("call:".length), what);
    if (op.startsWith("get:")) return await this.#get(op.slice("get:".length));
    if (/^(set|del|sum):/.test(op)) return await this.#write(op);
    if (op.startsWith("alarm:")) return this.setTimer(op, ALARM_MS);
    switch (op) {
      case "echo":
        from?.send(this.#link(what));
        return;
      case "all":
        return this.#all(what);
      case "origin":
        this.origin?.send(this.#link(what));
        return;
      case "quiet":
        this.said++;
        return;
      case "slow":
        return await sleep(15);
      case "long":
        return await sleep(LONG_MS);
      case "tick":
      case "jolt":
        return this.setTimer(op, 40);
      case "soon":
        this.again = AGAIN;
        return this.setTimer(op, 0);
      case "put": {
        const value = textValue(this.#link(`put ${what}`));
        await this.env.commit([], [{ kind: "set", key: packKey(["put", this.id, this.said % 3]), value }]);
        return;
      }
      case "swap":
        return await this.#swap(what);
      case "post":
        this.#link(`said ${await post(this.#link(`post ${what}`))}`);
        return;
      case "mail":
        return here().send("jobs", [{ body: textValue(this.#link(`mail ${what}`)) }]);
      case "throw":
        this.#all("never said");
        throw new Error("as it was asked to");
      case "balk":
        return this.#balk();
      case "kick":
        return from?.close(KICK.code, KICK.reason);
      case "end":
        return this.end();
    }
  }

  /** What it sees is part of all that it says from then on. */
  async #get(name: string): Promise<void> {
    const [row] = await this.env.get([sharedKey(name)], "session");
    this.#link(`got ${name} ${row ? `${row.value.toHex()}@${row.versionstamp}` : "nothing"}`);
  }

  async #write(op: string): Promise<void> {
    const [kind = "", name = "", write = "", amount = ""] = op.split(":");
    const key = sharedKey(name);
    const mutation: Mutation = kind === "del"
      ? { kind: "delete", key }
      : kind === "sum"
      ? { kind: "sum", key, value: Uint8Array.fromHex(amount) }
      : { kind: "set", key, value: textValue(write) };
    await this.env.commit([], [mutation]);
  }

  async #call(target: string, what: string): Promise<void> {
    this.#link(`call ${target} for ${what}`);
    const asked = `${this.id}!c${this.said}.${this.chain}`;
    this.#link(`told ${await call(target, `${asked} all`)}`);
  }

  /** A write with a check that nobody else makes fail. */
  async #swap(what: string): Promise<void> {
    const key = packKey(["swap", this.id]);
    const value = textValue(this.#link(`swap ${what}`));
    const [row] = await this.env.get([key], "session");
    const was = row === null || row === undefined ? "nothing" : text.decode(row.value.subarray(1));
    const done = await this.env.commit([{ key, versionstamp: row?.versionstamp ?? null }], [
      { kind: "set", key, value },
    ]);
    this.#link(`swapped ${done.ok} ${was}`);
  }

  /** Throws two times out of three, as the time is. */
  #balk(): void {
    const { chain } = this;
    this.chain = -1;
    if (here().now() % 3 > 0) throw new Error("not now");
    this.chain = chain;
  }

  #all(why: string): void {
    const link = this.#link(why);
    for (const client of this.clients) client.send(link);
  }

  #link(why: string): string {
    if (this.life === "") this.chain = digest(this.chain, this.life = here().seed.toHex());
    this.chain = digest(this.chain, why);
    return `${++this.said}:${this.chain}:${this.heard.size}:${why}`;
  }
}

/** Handlers that throw are tried again, a few times. */
export class Retrying extends Whole {
  static override whenThrown: WhenThrown = "retry";
}

/** One that throws stands still until somebody has it try again. */
export class Parking extends Whole {
  static override whenThrown: WhenThrown = "park";
}

/** One whose devices hold the log, too. */
export class Held extends Whole {
  static durability = "hosts";
}

export const CLASSES = { whole: Whole, retrying: Retrying, parking: Parking, held: Held } as const;
export type ClassName = keyof typeof CLASSES;
