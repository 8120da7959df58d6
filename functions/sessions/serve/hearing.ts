/**
 * Tells the homes of stateful sessions which answers have arrived, so that they keep them no longer for a caller who
 * asks again: several together, a moment later. A message that is lost on the way costs the home some room, for a
 * while.
 */
import type { PeerClock } from "../attach/mod.ts";
import { encodeHeard, type HeardAnswers } from "./forwarded.ts";

/**
 * Milliseconds that a message waits for more: long enough for some to meet, short beside the minute for which answers
 * are kept.
 */
const WAIT_MS = 200;
/** Number of answers in one message: the head of a link request holds them. */
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

  /** Notes that an answer which a site gave has arrived. */
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
    this.#send(site, encodeHeard(heard)).catch(() => {}); // the answers are kept a little longer
  }
}
