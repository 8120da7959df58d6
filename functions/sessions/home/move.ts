/**
 * Planned move of a stateful session, at the home that it leaves (docs/protocol/homes.md, "Moves").
 *
 * Stages: `prepare` (the site that it moves to gets base and log beside the owners, while commits go on) → the runtime
 * drains it and writes a checkpoint → `yield` (the arbiter has on record that it moves; this home is over) → the other
 * site opens it, or, where it does not within a while, the word is taken back and it may be opened here again.
 *
 * M1  Before the arbiter has the move on record nothing is changed: whatever fails, the home goes on.
 * M2  After that this home releases nothing more, whether or not it hears that it is on record.
 * M3  A site that gets the log for a move is no owner by that: nothing waits for it, and its promise counts for nothing
 *     (H5).
 * M4  A word that is taken back is taken back at the arbiter: either that, or the other site's epoch, is first.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type StatefulName } from "../log/api.ts";
import type { Reply, SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import type { Follower } from "../log/follower.ts";
import { MOVE_LOOK_MS, MOVE_PREPARE_MS_MAX, OPEN_MS_MAX } from "../log/limits.ts";
import { shownName } from "../log/name.ts";

/** Home, as a move needs it. */
export interface MovingHome {
  readonly name: StatefulName;
  readonly last: number;
  /** Error with which the home ended; null: it is not over. */
  readonly overBy: HomeError | null;
  readonly baseAt: number;
  /** Returns why a site is not to have the session; null: it may. */
  unfit(site: SiteId): string | null;
  /** Sends a site base and log, until `dismissed`. */
  welcomed(site: SiteId): Follower;
  dismissed(site: SiteId): void;
  /** Resolves when something of the owners has changed, or a moment later. */
  nextChange(): Promise<void>;
  nowMs(): number;
}

const refused = (name: StatefulName, to: SiteId, why: string): HomeError =>
  new HomeError("move_refused", `cannot move ${shownName(name)} to ${to}: ${why}`);

/** Resolves when a site has all that is in the log. @throws HomeError `move_refused`, or what ended the home (M1) */
export async function prepareMove(home: MovingHome, to: SiteId): Promise<void> {
  const { name } = home;
  const unfit = home.unfit(to);
  if (unfit !== null) throw refused(name, to, unfit);
  const guest = home.welcomed(to);
  const untilMs = home.nowMs() + MOVE_PREPARE_MS_MAX;
  for (;;) {
    if (home.overBy !== null) throw home.overBy;
    if (guest.isJoined && guest.acked >= home.last && guest.baseAt >= home.baseAt) return;
    const why = guest.lostBy === "full"
      ? "its disk has no room for one more log"
      : guest.isLost
      ? "it does not keep what it is sent"
      : home.unfit(to) ??
        (home.nowMs() < untilMs ? null : `it does not have the log after ${MOVE_PREPARE_MS_MAX} ms`);
    if (why !== null) {
      home.dismissed(to);
      throw refused(name, to, why);
    }
    await home.nextChange();
  }
}

/** Arbiter, as a move asks it. */
export interface MoveArbiter {
  readonly after: (ms: number, callback: () => void) => () => void;
  ask(ask: SiteAsk): Asking;
}

/** Returns a reply within a while; null where there was none. */
async function within({ after }: MoveArbiter, asking: Asking, ms: number): Promise<Reply | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  const cancel = after(ms, () => resolve(null));
  const reply = await Promise.race([asking.reply, late]);
  cancel();
  asking.cancel();
  return reply;
}

/**
 * Has the arbiter put on record that a site may take the session over; `to` "": that none may. Reports whether it is.
 */
export async function yieldTo(
  arbiter: MoveArbiter,
  { name, epoch, to }: { readonly name: StatefulName; readonly epoch: number; readonly to: SiteId },
): Promise<"granted" | "refused" | "unknown"> {
  const reply = await within(arbiter, arbiter.ask({ kind: "yield", name, epoch, to }), OPEN_MS_MAX);
  if (reply?.kind !== "row") return "unknown";
  return reply.outcome === "granted" ? "granted" : "refused";
}

/** Session that its home has moved. */
export interface MovedHome {
  readonly name: StatefulName;
  /** Epoch of the home that it leaves. */
  readonly epoch: number;
  readonly to: SiteId;
  /** True where the session is not to be opened here again, whatever comes of the move: this site stops. */
  readonly isLeaving?: boolean;
}

/**
 * Waits until the other site has taken it over, or says that it does not; where it has not, the word is taken back
 * (M4).
 *
 * @return whether it is there; false: it may be opened here again.
 */
export async function takenOver(
  arbiter: MoveArbiter,
  { name, epoch, isLeaving = false }: MovedHome,
  withinMs: number,
  declined: Promise<void>,
): Promise<boolean> {
  let isOver = false;
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const giveUp = () => {
    isOver = true;
    end();
  };
  const cancel = arbiter.after(withinMs, giveUp);
  void declined.then(giveUp);
  for (;;) {
    const reply = await within(arbiter, arbiter.ask({ kind: "look", name }), OPEN_MS_MAX);
    if (reply?.kind === "row" && reply.row !== null && reply.row.epoch > epoch) {
      cancel();
      return true;
    }
    if (isOver) break;
    const { promise: later, resolve } = Promise.withResolvers<void>();
    const cancelLook = arbiter.after(MOVE_LOOK_MS, resolve);
    await Promise.race([later, over]);
    cancelLook();
  }
  cancel();
  return !isLeaving && await yieldTo(arbiter, { name, epoch, to: "" }) === "refused";
}
