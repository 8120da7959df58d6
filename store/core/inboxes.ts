/**
 * Inboxes of messages, one for each neighbour: its messages are handled in their order, one after the other, as is the
 * beginning of its links.
 *
 * B1  A message that was queued on a connection that has ended meanwhile is not handled at all. Work that has begun by
 *     then goes on: after each wait it looks whether its connection is still the one (downlinks.ts linkEnded).
 * B2  After SLICE_MS of messages, of all neighbours together, everything else that is ready is handled before the next:
 *     a parent may answer hundreds of questions in one piece.
 * B3  Inboxes have no order among each other: one may wait, for a turn or the disk, while another goes on. So what is
 *     put into a site's inbox concerns that site alone.
 * B4  What has to be done about the end of a link, whatever comes next, is done at once: it would be void (B1) where the
 *     next link begins, or the site gets another parent, before its turn comes. A child that became the parent over that
 *     link would count as a connected child for good, and its last stable clock would hold back all others.
 */
import { SLICE_MS } from "../model/lock.ts";
import type { Clock, SiteId } from "../model/ports.ts";

interface Inbox {
  connection: number;
  tail: Promise<void>;
}

interface Host {
  readonly clock: Pick<Clock, "steadyMs" | "turn">;
  isClosed(): boolean;
  fail(error: unknown): void;
}

export class Inboxes {
  readonly #host: Host;
  readonly #inboxes = new Map<SiteId, Inbox>();
  #busyMs = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  has(site: SiteId): boolean {
    return this.#inboxes.has(site);
  }

  #of(site: SiteId): Inbox {
    let inbox = this.#inboxes.get(site);
    if (inbox === undefined) this.#inboxes.set(site, inbox = { connection: 0, tail: Promise.resolve() });
    return inbox;
  }

  /** Voids all that was queued for a site before: its link has begun or ended, or is no concern any more. */
  next(site: SiteId): void {
    this.#of(site).connection++;
  }

  /** Queues work that belongs to the site's present connection, or to there being none. */
  enqueue(site: SiteId, body: () => Promise<void> | void): void {
    const inbox = this.#of(site), { connection } = inbox;
    inbox.tail = inbox.tail.then(async () => {
      while (this.#busyMs >= SLICE_MS) {
        this.#busyMs = 0;
        await this.#host.clock.turn();
      }
      if (this.#host.isClosed() || connection !== inbox.connection) return; // B1
      const { clock } = this.#host, begunMs = clock.steadyMs();
      try {
        await body();
      } finally {
        this.#busyMs += clock.steadyMs() - begunMs;
      }
    }).catch((error) => this.#host.fail(error));
  }
}
