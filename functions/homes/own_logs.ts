/** The logs on this site's own disk, as the homes that are here read them, to send owners what they lack. */
import type { SiteId } from "../../store/ports.ts";
import type { StatefulName } from "./api.ts";
import type { LogPiece } from "./asks.ts";
import type { Keepers } from "./keepers.ts";
import type { LiveHomePorts } from "./live_home.ts";
import { beginWith, NO_STATE } from "./state_parts.ts";

type OwnLogs = Pick<LiveHomePorts, "state" | "baseAt" | "read" | "base" | "hasState" | "parts">;

/** What homes ask of the keepers of their own site. */
export function ownLogs(keepers: Keepers, site: SiteId): OwnLogs {
  const log = (name: StatefulName) => keepers.log(name);
  const of = (name: StatefulName) => ({ name, disk: keepers.disk, epoch: log(name)?.head.promised ?? 0 });
  return {
    state: (name) => log(name)?.state ?? { base: { at: 0, epoch: 0, state: NO_STATE }, segments: [] },
    baseAt: (name) => log(name)?.base?.at ?? 0,
    read: async (name, after) => {
      const reply = await keepers.handle(site, { kind: "fetch", ...of(name), after, whole: false });
      return reply.kind === "copy" ? reply.pieces : [];
    },
    base: (name) => keepers.base(name),
    hasState: (name, mark) => beginWith(log(name)?.parts.marks ?? [], mark),
    parts: async (name, at, first) => {
      const reply = await keepers.handle(site, { kind: "parts", ...of(name), at, first });
      return reply.kind === "parts" ? reply.parts : null;
    },
  };
}

/** A log as this site's disk has it, without the state of its checkpoint. */
export interface KeptCopy {
  readonly epoch: number;
  readonly version: string;
  readonly checkpoint: { readonly at: number; readonly bytes: Uint8Array } | null;
  readonly log: readonly LogPiece[];
}

/** For operators; null: there is none here. Somebody may write it meanwhile: it is of one moment up to some entry. */
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
