/**
 * A stateful session for peers: what it is sent says what it does, and each thing that it sends says what came before it,
 * so that whoever collects them sees a fork, a repeat or a hole. `Ledger` says the same by itself, from what is in the
 * log: it shares no code with what it is compared to.
 */
import { type From, Session } from "../../../functions/class/session.ts";
import type { TurnLoop } from "../../../functions/sessions/turn/turn_loop.ts";

/** What a message asks for. */
export type Op = "echo" | "all" | "big" | "quiet" | "throw" | "kick" | "slow" | "tick" | "none";

export const KICK = { code: 4001, reason: "out" };
const BIG = "x".repeat(3_000);

/** Whose turn it is: set by whoever runs loops, one at a time. */
export const stage: { loop: TurnLoop | undefined } = { loop: undefined };

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => void stage.loop?.current?.setLocal(ms, resolve));

export class Room extends Session {
  said = 0;
  chain = 0;

  override onOpen(from: From): void {
    this.#all(`open ${from.id}`);
  }

  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    const text = typeof message === "string" ? message : new TextDecoder().decode(message);
    for (const op of text.split(" ").slice(1) as Op[]) {
      if (op === "echo") from.send(this.#link(text));
      if (op === "quiet") this.said++;
      if (op === "all") this.#all(text);
      if (op === "big") from.send(this.#link(text) + BIG);
      if (op === "slow") await sleep(15);
      if (op === "tick") this.setTimer("tick", 40);
      if (op === "kick") from.close(KICK.code, KICK.reason);
      if (op === "throw") {
        this.#all("never said");
        throw new Error("as it was asked to");
      }
    }
  }

  override onTimer(name: string): void {
    this.#all(`timer ${name}`);
  }

  override onClose(from: From): void {
    this.#all(`close ${from.id}`);
  }

  #all(why: string): void {
    const link = this.#link(why);
    for (const client of this.clients) client.send(link);
  }

  #link(why: string): string {
    this.chain = (Math.imul(this.chain, 31) + why.length) | 0;
    return `${++this.said}:${this.chain}:${why}`;
  }
}

/** What is committed of peers and timers, one after the other. */
export type Committed =
  | { readonly kind: "attach" | "detach"; readonly peer: string }
  /** Without a text: its handler was undone, and the log does not say what it was. */
  | { readonly kind: "message"; readonly peer: string; readonly text: string | null }
  | { readonly kind: "timer"; readonly name: string };

/** An output, and the place in the log of what made it. */
export interface Expected {
  readonly content: string;
  readonly at: number;
}

/** One uninterrupted run of what is committed: what each peer is to have been sent, and what it has sent. */
export class Ledger {
  readonly outputs = new Map<string, Expected[]>();
  readonly messages = new Map<string, { readonly text: string | null; readonly at: number }[]>();
  /** Who is attached, and whether it has been sent away. */
  readonly attached = new Map<string, { isKicked: boolean }>();
  readonly detached = new Map<string, { readonly at: number; readonly atMs: number }>();
  #said = 0;
  #chain = 0;
  #at = 0;

  /** @param at how long the log is with it. */
  take(input: Committed, at: number, atMs: number): void {
    this.#at = at;
    switch (input.kind) {
      case "attach":
        this.attached.set(input.peer, { isKicked: false });
        this.outputs.set(input.peer, []);
        this.messages.set(input.peer, []);
        return this.#all(`open ${input.peer}`);
      case "timer":
        return this.#all(`timer ${input.name}`);
      case "detach":
        this.#kick(input.peer);
        this.#all(`close ${input.peer}`);
        this.attached.delete(input.peer);
        this.detached.set(input.peer, { at, atMs });
        return;
      case "message":
        this.messages.get(input.peer)?.push({ ...input, at });
        if (input.text !== null) this.#obey(input.peer, input.text);
    }
  }

  #obey(peer: string, text: string): void {
    for (const op of text.split(" ").slice(1)) {
      if (op === "quiet") this.#said++;
      else if (op === "all") this.#all(text);
      else if (op === "echo" || op === "big") {
        const link = this.#link(text);
        this.#give(peer, op === "big" ? link + BIG : link);
      } else if (op === "kick") {
        this.#give(peer, `kicked ${KICK.code} ${KICK.reason}`);
        this.#kick(peer);
      }
    }
  }

  #kick(peer: string): void {
    const own = this.attached.get(peer);
    if (own !== undefined) own.isKicked = true;
  }

  #all(why: string): void {
    const link = this.#link(why);
    for (const peer of this.attached.keys()) this.#give(peer, link);
  }

  #give(peer: string, content: string): void {
    if (this.attached.get(peer)?.isKicked === false) this.outputs.get(peer)?.push({ content, at: this.#at });
  }

  #link(why: string): string {
    this.#chain = (Math.imul(this.#chain, 31) + why.length) | 0;
    return `${++this.#said}:${this.#chain}:${why}`;
  }
}
