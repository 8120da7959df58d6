/**
 * Tells the homes of stateful sessions which answers have arrived, so that they keep them no longer for somebody who
 * asks again: several together, a moment later. What is lost on the way costs nothing but room, for a while.
 */
import type { PeerClock } from "../attach/mod.ts";
import { encodeHeard, type HeardAnswers } from "./forwarded.ts";

/** Long enough for some to meet, short beside the time that answers are kept (a minute). */
const WAIT_MS = 200;
/** A head of a link request holds them. */
const AT_ONCE = 200;

/** See the file's header. */
export class Hearing {
  readonly #send: (site: string, head: Uint8Array) => Promise<unknown>;
  readonly #heard = new Map<string, HeardAnswers[]>();
  readonly #clock: PeerClock;
  #cancel: (() => void) | null = null;

  constructor(send: (site: string, head: Uint8Array) => Promise<unknown>, clock: PeerClock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** An answer that a site gave has arrived. */
  add(site: string, heard: HeardAnswers): void {
    const waiting = this.#heard.get(site);
    if (waiting === undefined) this.#heard.set(site, [heard]);
    else if (waiting.push(heard) >= AT_ONCE) return this.#tell(site);
    this.#cancel ??= this.#clock.after(WAIT_MS, () => {
      this.#cancel = null;
      for (const each of [...this.#heard.keys()]) this.#tell(each);
    });
  }

  close(): void {
    this.#cancel?.();
    this.#heard.clear();
  }

  #tell(site: string): void {
    const heard = this.#heard.get(site) ?? [];
    this.#heard.delete(site);
    this.#send(site, encodeHeard(heard)).catch(() => {}); // they are kept a little longer
  }
}
