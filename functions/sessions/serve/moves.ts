/**
 * A planned move of an open stateful session to another site (functions/sessions/home/move.ts).
 *
 * Stages: the other site gets the log, while this one serves → new events wait → what was begun ends → a checkpoint →
 * the arbiter has the other site on record, and the run is over: callers are sent on, with what had not begun.
 *
 * MV1  Where the move fails, events that came meanwhile are delivered here, in their order, and none is lost.
 * MV2  What was begun is waited for as long as was asked, whoever is away.
 */
import { HomeError } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import { pauseBy } from "./clock.ts";
import type { SessionRun } from "./session_run.ts";

const LOOK_MS = 2;

/**
 * Moves a run, which is over then. @throws HomeError `move_refused`: the session goes on here.
 *
 * @param drainMs milliseconds for which handlers that were begun may go on.
 */
export async function moveRun(
  run: SessionRun,
  to: string,
  drainMs: number,
  clock: PeerClock,
): Promise<void> {
  const { home } = run;
  await home.prepareMove(to);
  run.line.hold();
  try {
    await drained(run, to, clock.nowMs() + drainMs, clock);
    await home.moveTo(to);
  } catch (error) {
    home.stay(to);
    run.line.goOn(); // MV1
    throw error;
  }
}

async function drained(run: SessionRun, to: string, untilMs: number, clock: PeerClock): Promise<void> {
  const { home } = run;
  const refused = (why: string) =>
    new HomeError(
      "move_refused",
      `cannot move ${home.name.class} ${JSON.stringify(home.name.id)} of ${home.name.app} to ${to}: ${why}`,
    );
  for (;;) {
    const isSettled = await isWithin(run.settled, untilMs - clock.nowMs(), clock); // MV2
    if (run.isOver) throw refused("it left memory, or its isolate ended, meanwhile; try again");
    if (!isSettled) {
      const { unsent } = run;
      const what = unsent === null
        ? "what it did is not at all owners yet, or not in the store"
        : `what it sends to queues is not stored: ${unsent.why}`;
      throw refused(`${what}; try again`);
    }
    if (run.isIdle && run.isInCheckpoint) return;
    if (run.isIdle) run.checkpoint();
    if (clock.nowMs() >= untilMs) {
      throw refused(run.openWork ?? "its checkpoint is not at all owners yet; try again");
    }
    await pauseBy(clock, LOOK_MS);
  }
}

/**
 * Reports whether something is done within a time: where owners are away, what was committed leaves when they are back.
 */
async function isWithin(done: Promise<void>, ms: number, clock: PeerClock): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const cancel = clock.after(Math.max(ms, 0), () => resolve(false));
  const isDone = await Promise.race([done.then(() => true), late]);
  cancel();
  return isDone;
}
