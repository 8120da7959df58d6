/**
 * The hosts of a stateful session, as an opening asks them: each that is on record promises the epoch and says what it
 * holds, in one step, or the opening does not go on (host_owners.ts, HO2).
 */
import type { LogCopy, LogPiece } from "./asks.ts";
import { HomeError, type Owner, type StatefulName } from "./api.ts";
import { disksOf, hostsOf, missing } from "./host_owners.ts";
import { shownName } from "./name.ts";

/**
 * What a host that has promised holds; null: nothing, or nothing that opens, and it is no host of it any more. Only of one
 * that has shown to be that host: whoever else speaks for it has not answered.
 */
export type HostAnswer = LogCopy | null;

/** How hosts are reached. */
export interface HostsPort {
  /**
   * Has hosts promise an epoch. Resolves with the answers when all have answered, or when time is up, with those that
   * have; "superseded": one has promised a later epoch, unless it is opened without those that do not come back
   * (`isForced`): then that one has not. One whose log did not open is sent away, and counts as one that
   * holds nothing whenever it is asked again.
   */
  ask(
    name: StatefulName,
    epoch: number,
    hosts: readonly string[],
    untilMs: number,
    isForced: boolean,
  ): Promise<ReadonlyMap<string, HostAnswer> | "superseded">;
}

const lastPiece = (piece: LogPiece): number => piece.first + piece.count - 1;
export const lastEntryOf = ({ pieces, base }: LogCopy): number => {
  const piece = pieces.at(-1);
  return piece === undefined ? base?.at ?? 0 : lastPiece(piece);
};
const lastEpochOf = ({ pieces, base }: LogCopy): number => pieces.at(-1)?.epoch ?? base?.epoch ?? 0;

/** HO2: the longer of two logs. */
export const isFurther = (a: LogCopy, b: LogCopy): boolean =>
  lastEpochOf(a) > lastEpochOf(b) || (lastEpochOf(a) === lastEpochOf(b) && lastEntryOf(a) > lastEntryOf(b));

/**
 * HO8: whether a log goes no other way than the one that was chosen. One does of a host that was left behind: it was told
 * what no later home knows, and is on record still where the home that left it behind died before it had that changed.
 */
export function isPartOf(log: LogCopy, chosen: LogCopy): boolean {
  const last = lastEntryOf(log);
  if (last === 0) return true;
  if (last > lastEntryOf(chosen)) return false;
  const { base, pieces } = chosen;
  // Below the base nobody can tell; it lacks what follows in any case, and is sent the log anew.
  if (base !== null && last < base.at) return true;
  const piece = pieces.find((one) => one.first <= last && last <= lastPiece(one));
  return (piece?.epoch ?? base?.epoch) === lastEpochOf(log); // H4
}

/** The longest of the logs that hosts hold; null: none holds one. */
export const furthestOf = (answers: ReadonlyMap<string, HostAnswer>): LogCopy | null =>
  [...answers.values()].reduce(
    (best, one) => one !== null && (best === null || isFurther(one, best)) ? one : best,
    null,
  );

/** HO2. @throws HomeError `stateful_unreachable`, naming whom it misses. */
export function checkAsked(
  name: StatefulName,
  owners: readonly Owner[],
  { answers, hasDisk, isForced }: {
    readonly answers: ReadonlyMap<string, HostAnswer>;
    readonly hasDisk: boolean;
    readonly isForced: boolean;
  },
): void {
  const hasLog = hasDisk || furthestOf(answers) !== null;
  if (isForced && hasLog) return;
  const lacks = missing(owners, { hosts: new Set(answers.keys()), hasDisk });
  const disks = disksOf(owners).map(({ site }) => site);
  if (lacks.hosts.length > 0) {
    throw new HomeError(
      "stateful_unreachable",
      `cannot open ${shownName(name)}: of its ${
        hostsOf(owners).length
      } clients that hold its log, these have not come ` +
        `back: ${lacks.hosts.join(", ")}. They may have been told what nobody else knows`,
    );
  }
  if (!lacks.isDiskMissing && hasLog) return;
  throw new HomeError(
    "stateful_unreachable",
    `cannot open ${shownName(name)}: none of the sites that keep its log can be asked; missing: ${
      disks.join(", ")
    }. ` +
      (lacks.isDiskMissing
        ? "Its clients do not know all that others were told"
        : "No client that came back holds a log of it"),
  );
}
