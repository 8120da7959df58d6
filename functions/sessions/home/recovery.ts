/**
 * Recovery: how a site becomes the home of a stateful session, and what it begins with.
 *
 * Stages: acquire (the arbiter gives an epoch) → promise (the owners on record take nothing of an earlier epoch any
 * more, and say what they have) → fetch (the furthest log, where it is not on the own disk) → align (the own disk's log
 * is that one, of this epoch) → open.
 *
 * H1  An epoch is this site's, and this process's, alone.
 * H5  One owner on record is enough: it has all that was released, and with its promise nothing of an earlier home is
 *     released. All that live are waited for: what they have beyond that may have been run, and need not be run again.
 * H7  An owner is a disk: a site whose disk was lost is not one that answers for it.
 * H9  Nothing is begun blank but where no owners are on record, or all those of a birth, on their own disks, know
 *     nothing. Owners that a home had recorded had its log: that they know nothing says that what is on record is old.
 *     A session that is opened to be ended is begun so also where all disks on record are lost, and no host that came
 *     has its log: nobody can know any more what is known of it, and no earlier home can release without them.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type Owner, type StatefulName } from "../log/api.ts";
import {
  lastEpochOf,
  lastOf,
  type LogCopy,
  type LogPiece,
  type Reply,
  type RowState,
  type SiteAsk,
} from "../log/asks.ts";
import { alignOwn, overtaken, sharedHere } from "./align_own.ts";
import type { Asking } from "../log/exchange.ts";
import type { Promised } from "../log/follower.ts";
import { disksOf, hostsAreEnough, hostsOf } from "../log/host_owners.ts";
import {
  checkAsked,
  furthestOf,
  type HostAnswer,
  type HostsPort,
  isFurther,
  isPartOf,
  lastEntryOf,
} from "../log/hosts_asked.ts";
import { PROMISE_MS_MAX, SEED_BYTES, UNSURE_MS, UNSURE_MS_MAX } from "../log/limits.ts";
import { shownName } from "../log/name.ts";
import { isSameState, markAfter, NO_STATE } from "../log/state_parts.ts";

export interface RecoveryPorts {
  readonly site: SiteId;
  /** Returns the number of this site's disk now. */
  disk(): number;
  readonly nowMs: () => number;
  readonly after: (ms: number, callback: () => void) => () => void;
  readonly random: (length: number) => Uint8Array;
  ask(to: SiteId, ask: SiteAsk): Asking;
  arbiter(): SiteId;
  /** Reports whether a site that has not answered need not be waited for. */
  isLost(site: SiteId): boolean;
  /** Finds out whether a site is there; `onLost` calls back when that, or anything like it, has changed. */
  look(site: SiteId): void;
  onLost(changed: () => void): () => void;
  /** Notes that another site is the home, as the arbiter says. */
  learned(name: StatefulName, site: SiteId): void;
  /** Notes that the arbiter has granted this site an epoch. */
  granted(name: StatefulName, epoch: number): void;
  /** Tells a site that it is to take a session over: the home that agreed to that may not have come so far. */
  invite(site: SiteId, name: StatefulName): void;
  /** Way to hosts; left out: no client can be reached here. */
  readonly hosts: HostsPort | undefined;
  /** Time for hosts that an operator would go on without. */
  readonly forcedMs: number;
  readonly lostMs: number;
  count(name: string): void;
}

/** Log and owners that an opening begins with. */
export interface RecoveredLog {
  readonly row: RowState;
  readonly copy: LogCopy;
  /** Answers of owners on record, by site. */
  readonly promised: ReadonlyMap<SiteId, Promised>;
  /** Last entry of that log that each host holds which was asked. Hosts that are left behind are left out. */
  readonly hosts: ReadonlyMap<string, number>;
  /** True where no disk knows the session, and so nobody has heard of it: it may be begun where it is on record. */
  readonly isBorn: boolean;
}

/**
 * Losses that an operator goes on with: hosts that have not come back (host_owners.ts, HO8); to end it, lost disks,
 * too.
 */
export type Forced = boolean | "ends";

/** Returns the words for an arbiter that waits for sites. */
export const unheardOf = (arbiter: SiteId, sites: readonly SiteId[]): string =>
  `since the site ${arbiter} has started it has not heard from ${
    sites.join(", ")
  }, and may not know all that it knew. ` +
  `Start these sites; one that is gone for good has to be removed (\`sojourn sites remove\`)`;

/** Number of reads of a log that gets one base after the other meanwhile: none does as often. */
const FETCHES_MAX = 10;
/** Bytes of the numbers of grants: 48 random bits. */
const GRANT_BYTES = 6;
const numberOf = (bytes: Uint8Array): number => bytes.reduce((number, byte) => number * 256 + byte, 0);

/** Opening of one session (see the file's header). */
export class HomeRecovery {
  readonly #ports: RecoveryPorts;
  readonly #name: StatefulName;
  readonly #version: string;
  readonly #untilMs: number;
  #pauseMs = UNSURE_MS;
  /** Sites that have another disk than the one on record (H7). */
  readonly #lostDisks = new Set<SiteId>();
  /** Sites that the arbiter waits for. */
  #unheard: readonly SiteId[] = [];

  constructor(ports: RecoveryPorts, name: StatefulName, version: string, untilMs: number) {
    this.#ports = ports;
    this.#name = name;
    this.#version = version;
    this.#untilMs = untilMs;
  }

  /**
   * Makes this site the home.
   *
   * @param seen the epoch in which this site was its home; 0: it was not.
   * @throws HomeError
   */
  async run(seen: number, forced: Forced = false): Promise<RecoveredLog> {
    const isForced = forced !== false;
    const granted = await this.#acquire(seen);
    const { epoch, owners } = granted, disks = disksOf(owners);
    const hosts = this.#hosts(owners, epoch, isForced);
    const [promised, answers] = await Promise.all([
      this.#promises(
        disks,
        epoch,
        { hosts, missFromMs: this.#missFromMs(owners, isForced), ends: forced === "ends" },
      ),
      hosts,
    ]);
    const mine = promised.get(this.#ports.site) ?? await this.#mine(epoch);
    const isLost = furthestOf(answers) === null && [...promised.values()].every(({ log }) => log === null);
    if (forced === "ends" && isLost) return await this.#blankToEnd(granted, promised, mine);
    this.#checkKnown(granted, promised, isLost);
    const row = await this.#forfeited(granted, promised, answers);
    const copy = await this.#longest(row, promised, answers, mine, isForced);
    await this.#alignOwn(epoch, copy, mine);
    const have = new Map(
      [...answers].filter(([, held]) => held === null || isPartOf(held, copy))
        .map(([host, held]) => [host, held === null ? 0 : lastEntryOf(held)]),
    );
    const isBorn = answers.size === 0 && [...promised.values()].every(({ log }) => log === null);
    // H9: they may know nothing because a later home has told them to forget. Only the arbiter knows whether there is
    // one: it is asked before anything leaves, as where nobody was on record.
    const isDoubted = isBorn && hostsOf(row.owners).length === 0;
    return { row: isDoubted ? { ...row, owners: [] } : row, copy, promised, hosts: have, isBorn };
  }

  /** Begins a session blank that is opened to be ended (H9). */
  async #blankToEnd(
    row: RowState,
    promised: ReadonlyMap<SiteId, Promised>,
    mine: Promised | null,
  ): Promise<RecoveredLog> {
    // H7
    const silent = disksOf(row.owners).filter(({ site }) =>
      !promised.has(site) && !this.#lostDisks.has(site)
    );
    if (silent.length > 0) throw this.#unreachable(silent);
    const copy = this.#blank();
    await this.#alignOwn(row.epoch, copy, mine);
    return { row: { ...row, owners: [] }, copy, promised: new Map(), hosts: new Map(), isBorn: true };
  }

  /** Refuses to begin a session blank whose owners, as a home has had them recorded, know nothing of it (H9). */
  #checkKnown({ config, owners }: RowState, promised: ReadonlyMap<SiteId, Promised>, isLost: boolean): void {
    const disks = disksOf(owners);
    if (!isLost || config === 0 || disks.length === 0 || promised.size < disks.length) return;
    throw new HomeError(
      "stateful_unreachable",
      `cannot open ${shownName(this.#name)}: those that are to keep its log (${
        disks.map(({ site }) => site).join(", ")
      }) know nothing of it. What is on record of it is older than what they were told, or somebody has taken it from ` +
        `their disks; \`sojourn sessions reset\` begins it anew`,
    );
  }

  /** Returns a blank log, of a session of which nobody has anything. */
  #blank(): LogCopy {
    return {
      seed: this.#ports.random(SEED_BYTES),
      version: this.#version,
      base: null,
      parts: [],
      pieces: [],
    };
  }

  // ── An epoch ──

  /** Gets an epoch from the arbiter (H1). */
  async #acquire(seen: number): Promise<RowState> {
    const { site, random } = this.#ports;
    const name = this.#name, version = this.#version;
    const grant = numberOf(random(GRANT_BYTES)) + 1;
    for (;;) {
      const arbiter = this.#ports.arbiter();
      const reply = await this.#within(this.#ports.ask(arbiter, {
        kind: "acquire",
        name,
        seen,
        grant,
        version,
      }));
      if (reply === null && this.#unheard.length > 0) throw this.#notYet();
      if (reply === null) {
        throw new HomeError(
          "arbiter_unreachable",
          `cannot open ${
            shownName(name)
          }: the site ${arbiter}, which knows where it is at home, does not answer`,
        );
      }
      if (reply.kind === "full") throw this.#full(arbiter, reply.max);
      this.#unheard = reply.kind === "waits" ? reply.sites : [];
      if (reply.kind !== "row") {
        await this.#pause();
        continue;
      }
      const { outcome, row } = reply;
      if (outcome === "granted" && row !== null) {
        this.#ports.granted(name, row.epoch);
        this.#ports.learned(name, site); // also where it can't be opened yet: hosts come here, to be asked
        return row;
      }
      if (outcome === "unsure") {
        await this.#pause();
      } else if (row?.site === site && row.movesTo === "") seen = row.epoch;
      else if (row !== null) {
        const at = row.movesTo === "" ? row.site : row.movesTo;
        this.#ports.learned(name, at);
        if (row.movesTo !== "") this.#ports.invite(at, name);
        throw new HomeError("elsewhere", `cannot open ${shownName(name)}: its home is ${at}`, at);
      }
    }
  }

  #full(arbiter: SiteId, max: number): HomeError {
    return new HomeError(
      "limit_stateful",
      `cannot make ${
        shownName(this.#name)
      }: ${this.#name.app} has ${max} stateful sessions, as many as the site ${arbiter} ` +
        `lets an app have; end or delete some, or set limits.statefulPerApp higher there`,
    );
  }

  async #pause(): Promise<void> {
    if (this.#ports.nowMs() >= this.#untilMs) throw this.#notYet();
    await this.#sleep(this.#pauseMs);
    this.#pauseMs = Math.min(2 * this.#pauseMs, UNSURE_MS_MAX);
  }

  #notYet(): HomeError {
    return new HomeError(
      "stateful_unreachable",
      this.#unheard.length === 0
        ? `cannot open ${shownName(this.#name)} yet: its home may live, and does not answer; ask again`
        : `cannot open ${shownName(this.#name)} yet: ${unheardOf(this.#ports.arbiter(), this.#unheard)}`,
    );
  }

  #sleep(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ports.after(ms, resolve);
    return promise;
  }

  /** Returns the reply; null when time is up. */
  async #within(asking: Asking, untilMs = this.#untilMs): Promise<Reply | null> {
    const { promise: late, resolve } = Promise.withResolvers<null>();
    const cancel = this.#ports.after(Math.max(0, untilMs - this.#ports.nowMs()), () => resolve(null));
    const reply = await Promise.race([asking.reply, late]);
    cancel();
    if (reply === null) asking.cancel();
    return reply;
  }

  // ── Promises ──

  /** Returns from when on it may go on without any disk; null: it may not (host_owners.ts, HO3, HO8). */
  #missFromMs(owners: readonly Owner[], isForced: boolean): number | null {
    const { nowMs, forcedMs } = this.#ports;
    if (hostsAreEnough(owners)) return nowMs();
    return isForced && hostsOf(owners).length > 0 ? nowMs() + forcedMs : null;
  }

  /**
   * Has owners promise the epoch, and waits for as many as have to (H5). Where hosts may be enough no disk is given up
   * before these have been heard: one that is back by then may have what others were told, and no host that came (HO2).
   *
   * @param missFromMs nor is it given up before then; null: a disk is needed.
   */
  async #promises(
    owners: readonly Owner[],
    epoch: number,
    { hosts, missFromMs, ends }: {
      readonly hosts: Promise<unknown>;
      readonly missFromMs: number | null;
      readonly ends: boolean;
    },
  ): Promise<Map<SiteId, Promised>> {
    const ports = this.#ports, name = this.#name;
    const promised = new Map<SiteId, Promised>();
    const asked = owners.map(({ site, disk }) => ({
      site,
      asking: ports.ask(site, { kind: "promise", name, disk, epoch }),
    }));
    const answered = new Set<SiteId>();
    const refused: { superseded: number } = { superseded: 0 };
    const changed = { resolve: () => {} };
    let areHostsHeard = false;
    const heard = () => {
      areHostsHeard = true;
      changed.resolve();
    };
    hosts.then(heard, heard);
    for (const { site, asking } of asked) {
      void asking.reply.then((reply) => {
        answered.add(site);
        if (reply.kind === "promised") promised.set(site, reply);
        else if (reply.kind === "refused" && reply.why === "superseded") refused.superseded = reply.epoch;
        else if (reply.kind === "refused" && reply.why === "disk") this.#lostDisks.add(site); // H7
        changed.resolve();
      });
    }
    const begunMs = ports.nowMs(), waitMs = begunMs + PROMISE_MS_MAX;
    const unlisten = ports.onLost(() => changed.resolve());
    for (const { site } of owners) if (site !== ports.site) ports.look(site);
    try {
      for (;;) {
        if (refused.superseded > 0) throw this.#overtaken(refused.superseded);
        const silent = owners.filter(({ site }) => !answered.has(site));
        const isLate = ports.nowMs() >= waitMs;
        const mayMiss = missFromMs !== null && areHostsHeard && ports.nowMs() >= missFromMs;
        const isEnough = mayMiss || [...promised.values()].some(({ log }) => log !== null);
        if (silent.length === 0) break;
        const isLost = silent.every(({ site }) => ports.isLost(site));
        if (isEnough && (isLate || isLost)) break;
        const isGivenUp = isLost && ports.nowMs() >= begunMs + ports.lostMs;
        const isOver = isGivenUp || ports.nowMs() >= this.#untilMs;
        if (isOver && missFromMs === null) throw this.#unreachable(silent);
        const looked = Promise.withResolvers<void>();
        changed.resolve = looked.resolve;
        const cancel = ports.after(50, looked.resolve);
        await looked.promise;
        cancel();
      }
    } finally {
      unlisten();
      for (const { asking } of asked) asking.cancel();
    }
    if (missFromMs === null && !ends) this.#check(owners, promised); // what is to end may be lost, by the word of all (H9)
    return promised;
  }

  /** Checks that a log was found, or that all owners know none (H9). */
  #check(owners: readonly Owner[], promised: ReadonlyMap<SiteId, Promised>): void {
    const isKnown = [...promised.values()].some(({ log }) => log !== null);
    if (isKnown || promised.size === owners.length) return;
    throw this.#unreachable(owners.filter(({ site }) => !promised.has(site)));
  }

  /** Has hosts on record promise the epoch (HO2). */
  async #hosts(
    owners: readonly Owner[],
    epoch: number,
    isForced: boolean,
  ): Promise<ReadonlyMap<string, HostAnswer>> {
    const hosts = hostsOf(owners);
    const port = this.#ports.hosts;
    if (hosts.length === 0 || port === undefined) return new Map();
    const untilMs = isForced ? this.#ports.nowMs() + this.#ports.forcedMs : this.#untilMs;
    const answers = await port.ask(this.#name, epoch, hosts, untilMs, isForced);
    if (answers === "superseded") throw this.#overtaken();
    return answers;
  }

  /**
   * Takes hosts that hold nothing that opens off the record, whether this opening succeeds or not: such a host may
   * never come back, and nobody is to wait for it. Where nobody else has a log, it stays.
   */
  async #forfeited(
    row: RowState,
    promised: ReadonlyMap<SiteId, Promised>,
    answers: ReadonlyMap<string, HostAnswer>,
  ): Promise<RowState> {
    const { epoch, config } = row, name = this.#name;
    const owners = row.owners.filter((owner) => !hostsOf([owner]).some((host) => answers.get(host) === null));
    const hasLog = furthestOf(answers) !== null || [...promised.values()].some(({ log }) => log !== null);
    if (owners.length === row.owners.length || !hasLog) return row;
    const ask = { kind: "configure", name, epoch, config, owners } as const;
    const ports = this.#ports;
    // Hosts may have been waited for longer than an opening has; and a home that does not know by then what is on
    // record would be taken for an earlier one, as soon as it asks for anything.
    const untilMs = Math.max(this.#untilMs, ports.nowMs() + PROMISE_MS_MAX);
    const reply = await this.#within(ports.ask(ports.arbiter(), ask), untilMs);
    if (reply?.kind !== "row") return row;
    if (reply.outcome !== "granted" || reply.row === null) throw this.#overtaken();
    return reply.row;
  }

  #overtaken(epoch?: number): HomeError {
    return overtaken(this.#name, epoch);
  }

  #unreachable(silent: readonly Owner[]): HomeError {
    const sites = silent.map(({ site }) => site).join(", ");
    return new HomeError(
      "stateful_unreachable",
      `cannot open ${
        shownName(this.#name)
      }: none of those that keep its log can be asked; missing: ${sites}. It can be ` +
        `opened as soon as one of them is back with its disk`,
    );
  }

  // ── The log ──

  /**
   * Has this disk promise the epoch where it is no owner on record. A log here, as of a site that the session is to
   * move to or that was an owner before, says nothing of what was released (H5), and what it shares with an owner's
   * need not be sent again (H4).
   */
  async #mine(epoch: number): Promise<Promised | null> {
    const { site, disk, ask } = this.#ports;
    const reply = await ask(site, { kind: "promise", name: this.#name, disk: disk(), epoch }).reply;
    if (reply.kind === "refused" && reply.why === "superseded") throw this.#overtaken(reply.epoch);
    return reply.kind === "promised" && reply.log !== null ? reply : null;
  }

  /** Returns the longest log of those that disks and hosts have. */
  async #longest(
    { owners, epoch }: RowState,
    promised: ReadonlyMap<SiteId, Promised>,
    answers: ReadonlyMap<string, HostAnswer>,
    mine: Promised | null,
    isForced: boolean,
  ): Promise<LogCopy> {
    const disks = disksOf(owners);
    if (hostsOf(owners).length === 0) return await this.#furthest(disks, epoch, promised, mine);
    const hasDisk = [...promised.values()].some(({ log }) => log !== null);
    checkAsked(this.#name, owners, { answers, hasDisk, isForced });
    const ofHosts = furthestOf(answers);
    const ofDisks = hasDisk ? await this.#furthest(disks, epoch, promised, mine) : null;
    if (ofHosts === null || (ofDisks !== null && !isFurther(ofHosts, ofDisks))) {
      return ofDisks ?? this.#blank();
    }
    this.#ports.count("from_hosts");
    if (ofDisks === null) this.#ports.count("from_hosts_alone");
    return ofHosts;
  }

  /**
   * Returns the furthest log of the owners that promised, from a site that has it; from this disk, where it has one as
   * far.
   */
  async #furthest(
    owners: readonly Owner[],
    epoch: number,
    promised: ReadonlyMap<SiteId, Promised>,
    mine: Promised | null,
  ): Promise<LogCopy> {
    const { site: self } = this.#ports;
    const known = [...promised].flatMap(([site, { log }]) => log === null ? [] : [{ site, log }]);
    if (known.length === 0) return this.#blank();
    known.sort((a, b) =>
      lastEpochOf(b.log) - lastEpochOf(a.log) || lastOf(b.log) - lastOf(a.log) ||
      Number(b.site === self) - Number(a.site === self)
    );
    for (const { site, log } of known) {
      const disk = owners.find((owner) => owner.site === site)?.disk ?? 0;
      const shared = site === self || mine?.log == null ? null : sharedHere(mine.log, log);
      const copy = shared === null
        ? await this.fetch(site, disk, epoch)
        : await this.#completed(site, disk, epoch, shared);
      if (copy !== null) return copy;
    }
    throw this.#unreachable(owners);
  }

  /** Returns what this disk has up to an entry, and what another has after it. */
  async #completed(site: SiteId, disk: number, epoch: number, shared: number): Promise<LogCopy | null> {
    const ports = this.#ports;
    const here = await this.fetch(ports.site, ports.disk(), epoch);
    const there = here === null ? null : await this.fetch(site, disk, epoch, shared);
    if (here === null || there === null) return null;
    ports.count("completed");
    const kept = here.pieces.filter(({ first, count }) => first + count - 1 <= shared);
    return { ...here, pieces: [...kept, ...there.pieces] };
  }

  /**
   * Returns the whole log of a site, in the epoch that it has promised; null where it does not answer any more. A log
   * that gets another base meanwhile (one that rests here, whose last checkpoint was under way) is read again.
   *
   * @param known the entry up to which the log is not wanted, base and all.
   */
  async fetch(site: SiteId, disk: number, epoch: number, known?: number): Promise<LogCopy | null> {
    for (let attempt = 0; attempt < FETCHES_MAX; attempt++) {
      const copy = await this.#fetchOnce(site, disk, epoch, known);
      if (copy !== "changed") return copy;
    }
    return null;
  }

  async #fetchOnce(
    site: SiteId,
    disk: number,
    epoch: number,
    known?: number,
  ): Promise<LogCopy | "changed" | null> {
    const of = { name: this.#name, disk, epoch };
    const pieces: LogPiece[] = [];
    let first: Reply & { kind: "copy" } | null = null;
    for (let after = known ?? 0;;) {
      const whole = first === null && known === undefined;
      const reply = await this.#part(site, { kind: "fetch", ...of, after, whole });
      if (reply?.kind !== "copy") return null;
      if (first !== null && reply.pieces[0]?.first !== after + 1) return "changed";
      first ??= reply;
      pieces.push(...reply.pieces);
      if (!reply.more) break;
      const last = pieces.at(-1);
      after = last === undefined ? after : last.first + last.count - 1;
    }
    const { seed, version, base } = first;
    const parts = [...first.parts], { at, state } = base ?? { at: 0, state: NO_STATE };
    while (parts.length < state.count) {
      const reply = await this.#part(site, { kind: "parts", ...of, at, first: parts.length });
      if (reply?.kind === "refused" && reply.why === "gap") return "changed";
      if (reply?.kind !== "parts" || reply.parts.length === 0) return null;
      parts.push(...reply.parts);
    }
    // A state from another site is what its mark says, or it is none; the own disk is not read a second time for that.
    const isIt = site === this.#ports.site || isSameState(markAfter(NO_STATE, parts), state);
    return isIt ? { seed, version, base, parts, pieces } : null;
  }

  /** Asks for one part. Each part has its own time: a large log takes as long as it takes. @throws HomeError */
  async #part(site: SiteId, ask: SiteAsk): Promise<Reply | null> {
    const asking = this.#ports.ask(site, ask);
    // The own disk answers, or the site stops.
    const reply = site === this.#ports.site
      ? await asking.reply
      : await this.#within(asking, this.#ports.nowMs() + 2 * PROMISE_MS_MAX);
    if (reply?.kind === "refused" && reply.why === "superseded") throw this.#overtaken(reply.epoch);
    return reply;
  }

  // ── The own disk ──

  /**
   * Makes this disk's log the chosen one. In one step: the disk may be an owner on record, and what was released must
   * not be gone from it in between (H2).
   */
  async #alignOwn(epoch: number, copy: LogCopy, mine: Promised | null): Promise<void> {
    await alignOwn(this.#ports, { name: this.#name, epoch, copy, mine });
  }
}
