/** Clients of a stateful session over a host in memory (memory_host.ts), and what must hold of all that they heard. */
import assert from "node:assert/strict";
import {
  type Channel,
  type ChannelReader,
  type HeldLog,
  HostSide,
} from "../../../../functions/sessions/attach/mod.ts";
import type { MemoryHost } from "../serve/memory_host.ts";

export const name = { app: "shop", class: "robot", id: "r" };
export const soon = (ms = 0) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Resolves when something holds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 60_000; !holds();) {
    assert.ok(Date.now() < endMs, `waited for too long: ${what}`);
    await soon(2);
  }
}

/** A host side that comes again whenever its channel is gone. */
export class Client {
  readonly side: HostSide;
  readonly heard: string[] = [];
  readonly rejected: number[] = [];
  #host: MemoryHost | null;
  #breaks = () => {};
  problem: string | null = null;
  /** It says nothing, and hears all. */
  isMute = false;

  constructor(host: MemoryHost, instance: number, log?: HeldLog) {
    this.#host = host;
    this.side = new HostSide({
      kind: "client",
      instance,
      ...(log === undefined ? {} : { log }),
      clock: {
        nowMs: () => performance.now(),
        after: (ms, run) => {
          const timer = setTimeout(run, ms);
          return () => clearTimeout(timer);
        },
      },
      listener: {
        message: (message) => void this.heard.push(String(message)),
        rejected: (sequence) => void this.rejected.push(sequence),
        lost: () => void setTimeout(() => this.connect(), 1),
        closed: (end) => {
          this.problem = JSON.stringify(end);
        },
      },
    });
  }

  connect(): void {
    if (this.side.stage !== "apart") return;
    const ends: { home?: ChannelReader } = {};
    let isOver = false;
    const early: Uint8Array<ArrayBuffer>[] = [];
    const send = (frame: Uint8Array<ArrayBuffer>) => {
      if (this.isMute) return;
      if (ends.home === undefined) early.push(frame);
      else queueMicrotask(() => isOver ? undefined : ends.home?.frame(frame));
    };
    const over = () => {
      if (isOver) return;
      isOver = true;
      queueMicrotask(() => ends.home?.broken());
      queueMicrotask(() => reader.broken());
    };
    this.#breaks = over;
    const reader = this.side.connected({ send, close: over });
    const home: Channel = {
      send: (frame) => queueMicrotask(() => isOver ? undefined : reader.frame(frame)),
      close: () => queueMicrotask(over),
    };
    const found = this.#host?.host.connect(name, home, null) ?? Promise.reject(new Error("nobody is there"));
    found.then((found) => {
      ends.home = found;
      if (isOver) found.broken();
      else for (const frame of early) found.frame(frame);
    }, over);
  }

  /** Another process has the session, or none has. */
  moveTo(host: MemoryHost | null): void {
    this.#host = host;
    if (host === null) this.break();
  }

  /** Its program ends. */
  async end(): Promise<void> {
    this.side.abandon();
    this.break();
    await soon(5);
  }

  break(): void {
    this.#breaks();
  }
}

/** What must hold of all that clients sent and heard. @param blamed messages that may be given up. */
export function check(clients: readonly Client[], sent: readonly (readonly string[])[], blamed = 0): void {
  let lost = 0;
  const counts: number[] = [];
  for (const [i, client] of clients.entries()) {
    assert.equal(client.problem, null);
    const heard = client.heard.map((text) => text.split(" "));
    counts.push(...heard.map(([count]) => Number(count)));
    const said = heard.map(([, ...message]) => message.join(" "));
    const wanted = (sent[i] ?? []).filter((_, at) => !client.rejected.includes(at + 1));
    // A rejection of which the notice was lost is none that was heard either.
    const missing = wanted.filter((message) => !said.includes(message));
    assert.deepEqual(said, wanted.filter((message) => !missing.includes(message)), "in order, each once");
    lost += missing.length + client.rejected.length;
  }
  assert.ok(lost <= blamed, `${lost} messages were not heard, and isolates ended in ${blamed}`);
  counts.sort((a, b) => a - b);
  assert.deepEqual(counts, counts.map((_, i) => i + 1), "no output contradicts another");
}
