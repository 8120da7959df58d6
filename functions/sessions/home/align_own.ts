/** Alignment of the own disk's log of a session that is opened here: it becomes the chosen log in one step. */
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type StatefulName } from "../log/api.ts";
import { commonUpTo, type LogCopy, type LogState, type SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import type { Promised } from "../log/follower.ts";
import { shownName } from "../log/name.ts";

export interface OwnDisk {
  readonly site: SiteId;
  disk(): number;
  ask(to: SiteId, ask: SiteAsk): Asking;
}

/**
 * Returns the error of an opening that another site has overtaken: it opens the session, too, or has opened it since.
 */
export function overtaken(name: StatefulName, epoch?: number): HomeError {
  const which = epoch === undefined ? "" : `, in epoch ${epoch}`;
  return new HomeError(
    "superseded",
    `cannot open ${shownName(name)}: another site opens it, too${which}; ask again`,
  );
}

/** Makes the own disk's log the chosen one; a log without anything is begun so, too. @throws HomeError */
export async function alignOwn(
  { site, disk, ask }: OwnDisk,
  { name, epoch, copy, mine }: {
    readonly name: StatefulName;
    readonly epoch: number;
    readonly copy: LogCopy;
    readonly mine: Promised | null;
  },
): Promise<void> {
  const { seed, version, base, parts, pieces } = copy;
  const of = { name, disk: disk(), epoch };
  const keep = mine === null ? null : sharedWith(copy, mine);
  const begun = keep === null
    ? ask(site, { kind: "install", turn: 0, ...of, seed, version, base, parts })
    : ask(site, { kind: "align", turn: 0, ...of, keep });
  const rest = pieces.filter(({ first }) => first > (keep ?? 0));
  const appended = rest.length === 0 ? begun : ask(site, { kind: "append", ...of, pieces: rest });
  const replies = [await begun.reply, await appended.reply];
  const refused = replies.find((reply) => reply.kind !== "held");
  if (refused === undefined) return;
  if (refused.kind === "refused" && refused.why === "full") {
    throw new HomeError(
      "limit_stateful",
      `cannot open ${shownName(name)} at ${site}: it keeps as many logs as it can`,
    );
  }
  throw overtaken(name);
}

/**
 * Returns the entry up to which this disk's log is that of another, which has all after it; null where it has to be
 * sent whole. A shared entry shows that both are of one birth; two logs that share none may have been begun twice, each
 * with a seed of its own.
 */
export function sharedHere(mine: LogState, theirs: LogState): number | null {
  const common = commonUpTo(mine, theirs);
  return common !== null && common > 0 && common >= mine.base.at && common >= theirs.base.at ? common : null;
}

/**
 * Returns how far this disk's own log is the chosen one; null: it is to be begun anew (another birth has another seed).
 */
function sharedWith(copy: LogCopy, { log }: Promised): number | null {
  if (log === null || log.base.at !== (copy.base?.at ?? 0) || log.base.epoch !== (copy.base?.epoch ?? 0)) {
    return null;
  }
  let keep = log.base.at;
  for (const { epoch, first, count } of copy.pieces) {
    const last = first + count - 1;
    const mine = log.segments.find(({ upTo }) => last <= upTo);
    if (mine?.epoch !== epoch) break;
    keep = last;
  }
  return keep > 0 ? keep : null;
}
