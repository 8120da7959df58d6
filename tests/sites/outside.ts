/**
 * What lies beyond the cluster in a run: a server that does what it is asked once a key, and programs behind the
 * stateful sessions (`static origin`), which hear and say things over a plain connection.
 */
import { decodeCall } from "../../functions/calls/call.ts";
import {
  type Call,
  type CallOutcome,
  decodeOutside,
  encodeOutsideAnswer,
} from "../../functions/sessions/turn/mod.ts";
import type { OriginConnection, OriginListener } from "../../runtime/origins/plain_origin.ts";
import { OUTSIDE } from "./program.ts";
import type { Draws } from "../sim/random.ts";

const utf8 = new TextEncoder();

/** Something that the server was asked to do, with all keys under which it came. */
export interface Done {
  readonly what: string;
  readonly key: string;
  readonly answer: string;
}

/** The server outside. */
export class Server {
  /** Done, once for each key. */
  readonly done = new Map<string, Done>();
  asked = 0;

  /** @param key "": it has none. */
  make(call: Call, key: string): CallOutcome {
    const wanted = decodeCall(decodeOutside(call.bytes).call);
    if (wanted.kind !== "fetch") throw new Error("an outside request is a request");
    this.asked++;
    const what = decodeURIComponent(wanted.url.slice(OUTSIDE.length + 1));
    const done = this.done.get(key) ?? { what, key, answer: `${this.done.size + 1} ${key.slice(0, 8)}` };
    this.done.set(key, done);
    return { ok: true, bytes: encodeOutsideAnswer({ url: wanted.url, answer: utf8.encode(done.answer) }) };
  }
}

/** A connection of a program behind a stateful session: to it the session is one client. */
export class OriginProgram implements OriginConnection {
  readonly waitingBytes = 0;
  readonly session: string;
  readonly heard: string[] = [];
  readonly sent: string[] = [];
  /** Closed by the other side, or this one; or the process that held it has died. */
  isOver = false;
  readonly #listener: OriginListener;
  readonly #name: string;

  constructor(name: string, session: string, listener: OriginListener) {
    this.#name = name;
    this.session = session;
    this.#listener = listener;
  }

  send(message: string | Uint8Array): void {
    this.heard.push(typeof message === "string" ? message : new TextDecoder().decode(message));
  }

  /** It says something. */
  say(ops: string): void {
    if (this.isOver) return;
    const text = `${this.#name}.${this.sent.length + 1} ${ops}`;
    this.sent.push(text);
    this.#listener.message(text);
  }

  /** It is closed by its program. */
  leave(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#listener.closed(1000, "");
  }

  pause(): void {}
  resume(): void {}

  close(): void {
    this.isOver = true;
  }
}

/** Ways to the outside take a while, and are sometimes in vain. */
export const tripMs = (draws: Draws): number => draws.between(0.2, 6);
