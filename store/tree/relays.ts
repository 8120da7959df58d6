/**
 * Carries on their way up: a site's answers to an ask, with all the rows that are pending there.
 *
 * Each of them may be as long as what is pending, and over a slow uplink they stand before the pushes that would end
 * the wait for them. Sessions that come back and are told to ask again make another one each time.
 *
 * Y1  At most one carry for a destination and a source waits for room in the link at a time; the next one follows when
 *     the link has taken it.
 * Y2  A carry whose ask came here longer ago than anybody waits (WAIT_MS_MAX) is dropped. How long the ask took before,
 *     no clock here can tell.
 */
import type { Core } from "../core/core.ts";
import { WAIT_MS_MAX } from "../model/limits.ts";
import type { Message, RowsAsk } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";

/** Sends carries in turn. */
export class Relays {
  readonly #core: Core;
  /** Carry that the link is taking, by destination and source. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(core: Core) {
    this.#core = core;
  }

  /** @param sinceMs when the ask came here, by the steady clock. */
  async send(
    to: SiteId,
    message: Message,
    ask: Pick<RowsAsk, "to" | "replica">,
    sinceMs: number,
  ): Promise<void> {
    const key = `${ask.to} ${ask.replica}`;
    // Y1
    for (let before = this.#underWay.get(key); before !== undefined; before = this.#underWay.get(key)) {
      await before;
    }
    if (this.#core.steady.nowMs() - sinceMs > WAIT_MS_MAX) return this.#core.count("ask_stale"); // Y2
    const sent = this.#core.send(to, message).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, sent.catch(() => {}));
    await sent;
  }
}
