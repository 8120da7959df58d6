/**
 * Questions of an opening to the hosts of a stateful session: each host on record promises the epoch and says what it
 * holds, in one step, or the opening does not go on (host_owners.ts, HO2).
 */
import type { LogCopy, LogPiece } from "./asks.ts";
import { HomeError, type Owner, type StatefulName } from "./api.ts";
import { disksOf, hostsOf, missing } from "./host_owners.ts";
import { shownName } from "./name.ts";

/**
 * Log of a host that has promised; null where it holds nothing, or nothing that opens: it is no host of the session any
 * more. Only a host that has shown its identity answers; another program that speaks for it has not.
 */
export type HostAnswer = LogCopy | null;

/** Way to reach hosts. */
export interface HostsPort {
  /**
   * Has hosts promise an epoch. Resolves with the answers when all have answered, or when time is up, with those that
   * have; "superseded" where one has promised a later epoch. When the session is opened without hosts that do not come
   * back (`isForced`), such a host counts as one that has not answered. A host whose log did not open is sent away, and
   * counts as one that holds nothing whenever it is asked again.
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

/** Reports whether `a` is longer than `b` (HO2). */
export const isFurther = (a: LogCopy, b: LogCopy): boolean =>
  lastEpochOf(a) > lastEpochOf(b) || (lastEpochOf(a) === lastEpochOf(b) && lastEntryOf(a) > lastEntryOf(b));

/**
 * Reports whether a log goes no other way than the chosen one (HO8). The log of a host that was left behind may: that
 * host was told what no later home knows, and is still on record where the home that left it behind died before it had
 * that changed.
 */
export function isPartOf(log: LogCopy, chosen: LogCopy): boolean {
  const last = lastEntryOf(log);
  if (last === 0) return true;
  if (last > lastEntryOf(chosen)) return false;
  const { base, pieces } = chosen;
  // Below the base the epoch is not known; the host lacks what follows in any case, and is sent the log anew.
  if (base !== null && last < base.at) return true;
  const piece = pieces.find((one) => one.first <= last && last <= lastPiece(one));
  return (piece?.epoch ?? base?.epoch) === lastEpochOf(log); // H4
}

/** Returns the longest of the logs that hosts hold; null where none holds one. */
export const furthestOf = (answers: ReadonlyMap<string, HostAnswer>): LogCopy | null =>
  [...answers.values()].reduce(
    (best, one) => one !== null && (best === null || isFurther(one, best)) ? one : best,
    null,
  );

/**
 * Checks that enough owners have answered for an opening (HO2). @throws HomeError `stateful_unreachable`, naming those
 * that are missing.
 */
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
