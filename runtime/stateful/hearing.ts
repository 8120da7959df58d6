/**
 * Tells the homes of stateful sessions which answers have arrived, so that they keep them no longer for somebody who
 * asks again: several together, a moment later. What is lost on the way costs nothing but room, for a while.
 */
import { encodeHeard, type Heard } from "./forwarded.ts";

/** Long enough for some to meet, short beside the time that answers are kept (a minute). */
const WAIT_MS = 200;
/** A head of a link request holds them. */
const AT_ONCE = 200;

/** See the file's header. */
export class Hearing {
  readonly #send: (site: string, head: Uint8Array) => Promise<unknown>;
  readonly #heard = new Map<string, Heard[]>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(send: (site: string, head: Uint8Array) => Promise<unknown>) {
    this.#send = send;
  }

  /** An answer that a site gave has arrived. */
  add(site: string, heard: Heard): void {
    const waiting = this.#heard.get(site);
    if (waiting === undefined) this.#heard.set(site, [heard]);
    else if (waiting.push(heard) >= AT_ONCE) return this.#tell(site);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const each of [...this.#heard.keys()]) this.#tell(each);
    }, WAIT_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#heard.clear();
  }

  #tell(site: string): void {
    const heard = this.#heard.get(site) ?? [];
    this.#heard.delete(site);
    this.#send(site, encodeHeard(heard)).catch(() => {}); // they are kept a little longer
  }
}
