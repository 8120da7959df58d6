/**
 * Rebuilding of the arbiter's record where its disk went back, or is blank: name by name, by what sites know.
 *
 * Stages of a name: recalled (each site says what it has of it) → found: it is at home somewhere, it has ended, no site
 * has anything of it; or logs are left, of no home that lives: fenced (each disk that has one promises an epoch above
 * all that was ever granted of it, and says what it has) → on record. All names: those that sites have, then those that
 * are on this disk → nothing is doubted any more.
 *
 * RB1  Where a site was not heard nothing is concluded of a name, but that it is at home where its home lives and says
 *      so, with all its owners promised to it on the disks that it names: a site that took it over needed one of them.
 * RB2  Where all sites were heard, the highest epoch that any disk has promised is the last one in which anything was
 *      told: a home that lives and has it is the home.
 * RB3  Of logs without a home the furthest has all that was ever released, where one owner of the last configuration is
 *      among those that have one: in each later epoch a home begins with that, and an owner that left had no more.
 * RB4  A log is no log where the session ended in the epoch that the log has promised, or later.
 * RB6  A site that says to be its home besides, from before, is fenced: its own disk promises an epoch below the one on
 *      record, and above its own. So two homes that came to be while a site was away (certainty.ts, AW3) are one again.
 * RB5  Where this site's own disk went back as well (others have heard of later positions) a log on it is one only where
 *      nobody else has anything of the name: then it goes on from the copy, as all does that was at this site alone.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Owner, StatefulName } from "../log/api.ts";
import type { Arbiter } from "./arbiter.ts";
import { lastEpochOf, lastOf, type LogState, type Reply, type RowState, type SiteAsk } from "../log/asks.ts";
import type { Asking } from "../log/exchange.ts";
import { asError } from "../log/group_commit.ts";
import { disksOf, hostsAreEnough, isClient } from "../log/host_owners.ts";
import { NAMES_SETTLED_AT_ONCE, RECALL_MS_MAX } from "../log/limits.ts";
import { keyOf } from "../log/name.ts";

/** Answer of a site to `recall`. */
export type Word = Extract<Reply, { readonly kind: "recalled" }>;

/** Finding on a name, by what sites have said. */
export type FoundLog =
  | { readonly kind: "settled"; readonly as: RowState; readonly besides?: readonly Owner[] }
  /** These sites have not said it, and may know better. */
  | { readonly kind: "missed"; readonly sites: readonly SiteId[] }
  /** These disks have a log, and nobody is its home: they are to promise an epoch above this one. */
  | { readonly kind: "logs"; readonly disks: readonly Owner[]; readonly above: number };

export interface Words {
  readonly words: ReadonlyMap<SiteId, Word>;
  /** Sites of the tree that have not said anything. */
  readonly missed: readonly SiteId[];
  /** This site, where its own disk went back as well (RB5); null: it did not. */
  readonly stale: SiteId | null;
}

/** Row of a name that was never on record. */
const NOBODYS = { site: "", config: 0, version: "" };

/** Concludes what a name is, by what sites have said. @param row as this disk has it. */
export function foundOf(row: RowState | null, { words, missed, stale }: Words): FoundLog {
  const all = [...words];
  const ended = Math.max(0, row?.ended ? row.epoch : 0, ...all.map(([, word]) => word.ended));
  const promised = Math.max(0, ...all.map(([, { log }]) => log?.promised ?? 0));
  const granted = Math.max(0, ...all.map(([, one]) => one.granted));
  const above = Math.max(row?.epoch ?? 0, ended, promised, granted);
  const home = all.flatMap(([site, word]) => word.home === null ? [] : [{ site, word, ...word.home }])
    .toSorted((a, b) => b.epoch - a.epoch)[0];
  if (home !== undefined && home.epoch === above && home.epoch > ended) {
    const { site, epoch, config, owners } = home;
    const isSettled = missed.length === 0 || (
      !home.isChanging && !hostsAreEnough(owners) && disksOf(owners).length > 0 &&
      disksOf(owners).every((owner) => isPromised(words, owner, { epoch, site }))
    ); // RB1, RB2
    if (!isSettled) return { kind: "missed", sites: missed };
    const version = home.word.log?.version ?? row?.version ?? "";
    const as = { site, epoch, config, owners, version, ended: false, movesTo: "" };
    const besides = all.filter(([one, word]) =>
      one !== site && word.home !== null && word.home.epoch < epoch - 1
    )
      .map(([one, { disk }]) => ({ site: one, disk }));
    return { kind: "settled", as, besides };
  }
  if (missed.length > 0) return { kind: "missed", sites: missed };
  // RB4
  const logs = all.flatMap(([site, { disk, log }]) => log === null ? [] : [{ site, disk, log }])
    .filter(({ log }) => log.promised > ended);
  const fresh = logs.filter(({ site }) => site !== stale); // RB5
  const disks = (fresh.length > 0 ? fresh : logs).map(({ site, disk }) => ({ site, disk }));
  if (disks.length > 0) return { kind: "logs", disks, above };
  // No site has anything of it. What is on record stays so: a site that opens it finds its owners without it.
  if (row !== null && row.epoch > ended) return { kind: "settled", as: row };
  const { site, config, version } = row ?? NOBODYS;
  return {
    kind: "settled",
    as: { site, epoch: above, config, owners: [], version, ended: true, movesTo: "" },
  };
}

/** Reports whether an owner has promised an epoch to a home (RB1). */
function isPromised(
  words: Words["words"],
  { site, disk }: Owner,
  home: { readonly epoch: number; readonly site: SiteId },
): boolean {
  const word = words.get(site);
  return word !== undefined && (disk === word.disk) && word.log?.promised === home.epoch &&
    word.log.by === home.site;
}

/** Returns the row of a name with logs and no home (RB3). @param states of disks that have promised the epoch. */
export function rowOfLogs(
  row: RowState | null,
  { words }: Pick<Words, "words">,
  { epoch, states }: {
    readonly epoch: number;
    readonly states: readonly (Owner & { readonly state: LogState })[];
  },
): RowState {
  const furthest = states.toSorted((a, b) =>
    lastEpochOf(b.state) - lastEpochOf(a.state) || lastOf(b.state) - lastOf(a.state)
  );
  const [best] = furthest;
  if (best === undefined) throw new Error("a row of no logs");
  const isAsFar = ({ state }: { readonly state: LogState }) =>
    lastEpochOf(state) === lastEpochOf(best.state) && lastOf(state) === lastOf(best.state);
  const owners = furthest.filter(isAsFar).map(({ site, disk }) => ({ site, disk }));
  const told = [...words.values()].flatMap(({ log }) => log === null || log.config === 0 ? [] : [log])
    .toSorted((a, b) => b.config - a.config)[0];
  const last = told !== undefined && told.config >= (row?.config ?? 0) ? told : row;
  // Hosts may have been told what no disk has.
  const hosts = (last?.owners ?? []).filter(isClient);
  return {
    site: best.site,
    epoch,
    config: Math.max(row?.config ?? 0, told?.config ?? 0) + 1,
    owners: [...owners, ...hosts],
    version: words.get(best.site)?.log?.version ?? row?.version ?? "",
    ended: false,
    movesTo: "",
  };
}

export interface RebuildPorts {
  readonly site: SiteId;
  readonly arbiter: Pick<Arbiter, "doubted" | "settle" | "settledAll" | "isBehind" | "isSiteBehind" | "rows">;
  readonly sites: () => readonly SiteId[];
  ask(to: SiteId, ask: SiteAsk): Asking;
  readonly after: (ms: number, callback: () => void) => () => void;
  readonly fatal: (error: Error) => void;
  /** Step of epochs while the arbiter is not sure (arbiter.ts, A8). */
  readonly leap: number;
  readonly note: (event: string, detail: Record<string, unknown>) => void;
}

/** Rebuilding of the arbiter's record (see the file's header). */
export class Rebuild {
  readonly #ports: RebuildPorts;
  readonly #settling = new Map<string, Promise<readonly SiteId[]>>();
  /** Highest epoch that was heard of. */
  #highest = 0;
  #isRunning = false;
  #isClosed = false;
  /** Sites that are missed before all is known. */
  missed: readonly SiteId[] = [];

  constructor(ports: RebuildPorts) {
    this.#ports = ports;
  }

  /** Puts a name on record. Returns the sites that are missed for that; none where it is. */
  settle(name: StatefulName): Promise<readonly SiteId[]> {
    const key = keyOf("", name);
    const settling = this.#settling.get(key) ??
      this.#settle(name).finally(() => this.#settling.delete(key));
    this.#settling.set(key, settling);
    return settling;
  }

  /**
   * Goes on with all names, where that is not under way; to be called from time to time: sites that were missed come.
   */
  run(): void {
    if (this.#isRunning || this.#isClosed || !this.#ports.arbiter.isBehind) return;
    this.#isRunning = true;
    void this.#run().catch((error) => this.#ports.fatal(asError(error))).finally(() =>
      this.#isRunning = false
    );
  }

  close(): void {
    this.#isClosed = true;
  }

  async #run(): Promise<void> {
    const { arbiter, sites, note } = this.#ports;
    const missed = new Set<SiteId>();
    let names = 0;
    const all = async (page: readonly StatefulName[]) => {
      names += page.length;
      for (const site of await this.#settleAll(page)) missed.add(site);
    };
    for (const site of sites()) if (!await this.#each(site, all)) missed.add(site);
    let after: StatefulName | undefined;
    while (!this.#isClosed) {
      const from = after === undefined ? {} : { after };
      const rows = await arbiter.rows({ ...from, limit: NAMES_SETTLED_AT_ONCE });
      await all(rows.map(({ name }) => name));
      after = rows.at(-1)?.name;
      if (after === undefined) break;
    }
    this.missed = [...missed];
    if (this.#isClosed || missed.size > 0) return;
    await arbiter.settledAll(this.#highest);
    if (!arbiter.isBehind) note("arbiter_rebuilt", { names });
  }

  /** Goes through all names that a site has. Returns false where it does not say. */
  async #each(site: SiteId, all: (page: readonly StatefulName[]) => Promise<void>): Promise<boolean> {
    for (let after: StatefulName | null = null; !this.#isClosed;) {
      const reply: Reply | null = await this.#within(site, { kind: "names", after });
      if (reply?.kind !== "names") return false;
      await all(reply.names);
      after = reply.names.at(-1) ?? null;
      if (!reply.more || after === null) return true;
    }
    return false;
  }

  async #settleAll(names: readonly StatefulName[]): Promise<readonly SiteId[]> {
    const missed: SiteId[] = [];
    for (let at = 0; at < names.length && !this.#isClosed; at += NAMES_SETTLED_AT_ONCE) {
      const some = names.slice(at, at + NAMES_SETTLED_AT_ONCE);
      missed.push(...(await Promise.all(some.map((name) => this.settle(name)))).flat());
    }
    return missed;
  }

  async #settle(name: StatefulName): Promise<readonly SiteId[]> {
    const { arbiter, leap } = this.#ports;
    const row = await arbiter.doubted(name);
    if (row === "settled") return [];
    const words = await this.#recall(name);
    const found = foundOf(row, words);
    if (found.kind === "missed") return found.sites;
    if (found.kind === "settled") {
      const { as, besides = [] } = found;
      const epoch = as.epoch - 1;
      for (const { site, disk } of besides) void this.#within(site, { kind: "promise", name, disk, epoch }); // RB6
      return await this.#settled(name, as);
    }
    const epoch = found.above + leap;
    const replies = await Promise.all(
      found.disks.map(({ site, disk }) => this.#within(site, { kind: "promise", name, disk, epoch })),
    );
    const states = found.disks.flatMap((owner, i) => {
      const reply = replies[i];
      return reply?.kind === "promised" && reply.log !== null ? [{ ...owner, state: reply.log }] : [];
    });
    // A disk that does not answer now may be the only one that has all: it is asked again.
    const silent = found.disks.filter(({ site }) => !states.some((one) => one.site === site));
    if (silent.length > 0) return silent.map(({ site }) => site);
    return await this.#settled(name, rowOfLogs(row, words, { epoch, states }));
  }

  async #settled(name: StatefulName, as: RowState): Promise<readonly SiteId[]> {
    this.#highest = Math.max(this.#highest, as.epoch);
    await this.#ports.arbiter.settle(name, as);
    return [];
  }

  async #recall(name: StatefulName): Promise<Words> {
    const { site: self, sites, arbiter } = this.#ports;
    const words = new Map<SiteId, Word>(), missed: SiteId[] = [];
    await Promise.all(
      sites().map(async (site) => {
        const reply = await this.#within(site, { kind: "recall", name });
        if (reply?.kind === "recalled") words.set(site, reply);
        else missed.push(site);
      }),
    );
    return { words, missed, stale: arbiter.isSiteBehind ? self : null };
  }

  async #within(site: SiteId, ask: SiteAsk): Promise<Reply | null> {
    const asking = this.#ports.ask(site, ask);
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const cancel = this.#ports.after(RECALL_MS_MAX, () => resolve(null));
    const reply = await Promise.race([asking.reply, late]);
    cancel();
    asking.cancel();
    return reply;
  }
}
