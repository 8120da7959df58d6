/** Logs on this site's own disk, as the homes that are here read them, to send owners what they lack. */
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type LoggedCheckpoint, type StatefulName } from "../log/api.ts";
import type { KeeperAsk, LogPiece, Reply } from "../log/asks.ts";
import type { Audit } from "./audit.ts";
import type { Keepers } from "../log/keepers.ts";
import type { KeptLog } from "../log/kept_log.ts";
import type { LiveHomePorts } from "./live_home_ports.ts";
import { shownName } from "../log/name.ts";
import { asError } from "../log/group_commit.ts";
import { beginWith, NO_STATE } from "../log/state_parts.ts";

type OwnLogs = Pick<LiveHomePorts<unknown>, "state" | "baseAt" | "read" | "base" | "hasState" | "parts">;

/**
 * Returns what homes read through the keepers of their own site.
 *
 * @param unread told that this disk does not give what it has: the home gets nothing, or, of a base, no answer.
 */
export function ownLogs(keepers: Keepers, site: SiteId, unread: (error: Error) => void): OwnLogs {
  const log = (name: StatefulName) => keepers.log(name);
  const of = (name: StatefulName) => ({ name, disk: keepers.disk, epoch: log(name)?.head.promised ?? 0 });
  const asked = async (ask: KeeperAsk): Promise<Reply | null> => {
    try {
      return await keepers.handle(site, ask);
    } catch (error) {
      unread(asError(error));
      return null;
    }
  };
  return {
    state: (name) => log(name)?.state ?? { base: { at: 0, epoch: 0, state: NO_STATE }, segments: [] },
    baseAt: (name) => log(name)?.base?.at ?? 0,
    read: async (name, after) => {
      const reply = await asked({ kind: "fetch", ...of(name), after, whole: false });
      return reply?.kind === "copy" ? reply.pieces : [];
    },
    base: async (name) => {
      try {
        return await keepers.base(name);
      } catch (error) {
        unread(asError(error));
        return await new Promise<never>(() => {}); // no base would be taken for a log without one
      }
    },
    hasState: (name, mark) => beginWith(log(name)?.parts.marks ?? [], mark),
    parts: async (name, at, first) => {
      const reply = await asked({ kind: "parts", ...of(name), at, first });
      return reply?.kind === "parts" ? reply.parts : null;
    },
  };
}

/** Log as this site's disk has it, without the state of its checkpoint. */
export interface KeptCopy {
  readonly epoch: number;
  readonly version: string;
  readonly checkpoint: { readonly at: number; readonly bytes: Uint8Array } | null;
  readonly log: readonly LogPiece[];
}

/**
 * Returns a log for operators; null: there is none here. It may be written meanwhile: it is of one moment up to some
 * entry.
 */
export async function keptCopy(keepers: Keepers, name: StatefulName): Promise<KeptCopy | null> {
  const log: LogPiece[] = [];
  let first: { readonly version: string; readonly base: KeptCopy["checkpoint"] } | null = null;
  for (let after = 0;;) {
    const head = keepers.log(name)?.head;
    if (head === undefined) return null;
    const of = { name, disk: keepers.disk, epoch: head.promised, after, whole: first === null };
    const reply = await keepers.handle(head.by, { kind: "fetch", ...of });
    if (reply.kind !== "copy") return null;
    first ??= { version: reply.base?.version ?? reply.version, base: reply.base };
    log.push(...reply.pieces);
    const last = log.at(-1);
    if (!reply.more || last === undefined) {
      const { version, base } = first;
      return { epoch: head.promised, version, log, checkpoint: base && { at: base.at, bytes: base.bytes } };
    }
    after = last.first + last.count - 1;
  }
}

/** Logs on this disk that other sites write, as a standby of theirs looks at them. */
export class Followable {
  readonly #keepers: Keepers;
  readonly #owners: Pick<Audit, "owners">;
  readonly #site: SiteId;

  constructor(keepers: Keepers, owners: Pick<Audit, "owners">, site: SiteId) {
    this.#keepers = keepers;
    this.#owners = owners;
    this.#site = site;
  }

  all(): Iterable<KeptLog> {
    return this.#keepers.all();
  }

  log(name: StatefulName): KeptLog | undefined {
    return this.#keepers.log(name);
  }

  copy(name: StatefulName): Promise<FollowedLog | null> {
    return followedLog(this.#keepers, name);
  }

  /** Returns how many owners are nearer to its home than this site; null: this is none, or that is not known. */
  async rank(name: StatefulName): Promise<number | null> {
    const owners = await this.#owners.owners(name);
    const rank = owners?.findIndex(({ site }) => site === this.#site) ?? -1;
    return rank < 0 ? null : rank;
  }
}

/** Whole log, for a standby that follows it. */
export interface FollowedLog {
  readonly seed: Uint8Array;
  readonly version: string;
  readonly checkpoint: LoggedCheckpoint | null;
  readonly log: readonly LogPiece[];
  /** Last entry of the log. */
  readonly last: number;
}

/**
 * Returns a log as of one moment; null: there is none here, or it was begun anew meanwhile: the standby hears of that.
 */
async function followedLog(keepers: Keepers, name: StatefulName): Promise<FollowedLog | null> {
  const log: LogPiece[] = [];
  let first: Extract<Reply, { readonly kind: "copy" }> | null = null;
  let last = 0;
  for (let more = true; more;) {
    const head = keepers.log(name)?.head;
    if (head === undefined) return null;
    const of = { name, disk: keepers.disk, epoch: head.promised };
    const reply = await keepers.handle(head.by, { kind: "fetch", ...of, after: last, whole: first === null });
    if (reply.kind !== "copy") return null;
    if (first === null) last = reply.base?.at ?? 0;
    first ??= reply;
    for (const piece of reply.pieces) {
      if (piece.first !== last + 1) return null; // it was cut in between
      last += piece.count;
      log.push(piece);
    }
    more = reply.more;
  }
  if (first === null) return null;
  const { base, seed, version } = first;
  const parts = [...first.parts];
  while (base !== null && parts.length < base.state.count) {
    const head = keepers.log(name)?.head;
    if (head === undefined) return null;
    const of = { name, disk: keepers.disk, epoch: head.promised };
    const reply = await keepers.handle(head.by, { kind: "parts", ...of, at: base.at, first: parts.length });
    if (reply.kind !== "parts" || reply.parts.length === 0) return null;
    parts.push(...reply.parts);
  }
  const checkpoint = base && { at: base.at, bytes: base.bytes, version: base.version, parts };
  return { seed, version: base?.version ?? version, checkpoint, log, last };
}

/** Returns the error for a session that rests here and can't be woken. */
export const unreadable = (name: StatefulName): HomeError =>
  new HomeError(
    "stateful_unreachable",
    `cannot open ${shownName(name)}: this site's disk does not give its log; ask again`,
  );
