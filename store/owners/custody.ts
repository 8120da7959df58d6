/**
 * The course of tuples at one owner: who is responsible for each, as far as this site knows, and what has to be done
 * about it.
 *
 * A tuple here: taken (new, or told by its responsible site) → held → responsible: acted on → gone → dropped. Or: not
 * responsible → adopted, when all owners before this site are lost → the same. A tuple whose producer named it is
 * remembered for a while after it is gone.
 *
 * The rules are those of tuples.ts (O1–O8).
 */
import { GONE_MS, REMEMBERED_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Standing } from "../presence/detector.ts";
import type { CustodyPorts } from "./custody_ports.ts";
import { mayHave, type Merged, type TupleExchange } from "./exchange.ts";
import { type Mended, mended } from "./mend.ts";
import type { Content, Entry, TupleId, TupleMark } from "./packet.ts";
import { Payloads } from "./payloads.ts";
import {
  compareEntry,
  isBefore,
  isStoredAgain,
  NO_SITES,
  type Roster,
  type Tuple,
  type TupleSlot,
  type TupleState,
  versionAfter,
} from "./tuple.ts";
import { type Errand, Walks } from "./walks.ts";

/** Number of tuples that one step considers: adopting so many takes some milliseconds, and a step of the disk. */
const CONSIDERED_AT_ONCE = 1_000;
/**
 * Interval at which own tuples with too few owners are looked at again: a site that could be an owner is heard of at
 * once; this is for what else may have changed.
 */
const SHORT_RETRY_MS = 5_000;
/** Number of ends that one tick tells again: the next tick is a moment later. */
const RETOLD_AT_ONCE = 1_000;

/**
 * Reasons for a walk through tuples: a site's standing or knowledge has changed, a site has to hear something, a site
 * has left; or the walk is about own tuples.
 */
const RECONSIDER = "r ", RETELL = "t ", LEAVE = "l ", OWN = "own", SHORT = "short";

export class Custody {
  readonly #ports: CustodyPorts;
  readonly #exchange: TupleExchange;
  readonly #walks: Walks;
  /**
   * Tuples that others have removed, each with the time since then, in that order: somebody has to say that all know
   * it.
   */
  readonly #unsettled = new Map<TupleId, number>();
  /** Ids of tuples that are over everywhere, oldest first (O6). */
  readonly #remembered = new Set<TupleId>();
  /** Tuples to be considered soon: something was heard about them that may ask for an answer. */
  readonly #doubtful = new Set<TupleId>();
  /** Tuples that an owner had no room for. */
  readonly #refused = new Set<TupleId>();
  /** Sites that left the tree, as far as they were noticed. */
  readonly #left = new Set<SiteId>();
  /** Mending plans of one step, by roster: thousands of tuples have the same owners. */
  readonly #plans = new Map<string, Mended>();
  #retriedMs = 0;
  /** True once this site has said that it stops, or is about to (O8). */
  #isLeaving = false;
  /**
   * True where this process began by the time that the one before had named: up to then nobody has adopted its tuples
   * (O8).
   */
  #isInTime = false;
  readonly payloads: Payloads;

  constructor(ports: CustodyPorts, exchange: TupleExchange) {
    this.#ports = ports;
    this.#exchange = exchange;
    this.#walks = new Walks(ports.table, (reason) => this.#errand(reason));
    this.payloads = new Payloads({
      read: (id) => ports.shelf.read(id),
      tuple: (id) => ports.table.get(id),
      tell: (site, id) => exchange.tell(site, id, true),
      fail: ports.fail,
    });
  }

  // ── Tuples of this site ──

  /** Takes a new tuple of a producer here, and tells its owners at once. */
  take(id: TupleId, owners: readonly SiteId[], content: Content, mark: TupleMark, version = 1): void {
    const former = this.#forgetEnd({ id, owners });
    const tuple = this.#keep(id, { version, owners, content, mark, former });
    tuple.how = "stored";
    this.#tell(tuple, true);
  }

  /** Takes a tuple that the disk had. */
  loaded(id: TupleId, state: TupleState, isAmended: boolean): void {
    const { site, table } = this.#ports, { gone, owners, former } = state;
    const isOwn = owners[0] === site;
    if (!gone && (isOwn || (former.length === 0 && owners.includes(site)))) {
      const others = owners.concat(former).filter((one) => one !== site);
      this.#exchange.share(others);
      // An owner that has one of this site's own tuples says so as it is greeted (`agreed`).
      return table.addAtRest(id, state, { unacked: isOwn ? others : NO_SITES, isAmended });
    }
    const tuple = table.add(id, state);
    tuple.isAmended = isAmended;
    tuple.held = true;
    const others = this.#others(tuple);
    this.#exchange.share(others);
    if (gone && others.length === 0) this.#over(tuple);
    else if (gone && isOwn) this.#tell(tuple, false);
    else if (gone) this.#unsettle(tuple);
    else if (owners.includes(site)) this.#tellSome(tuple, former);
    else this.#tellSome(tuple, others); // it goes from here when they have it
  }

  /** Notes that all tuples of the disk are here. */
  allLoaded(): void {
    this.#walks.begin(OWN);
    this.#ports.wake();
  }

  /**
   * Removes a tuple here; then all others are told (O4). `isUnsure`: its producer was refused, and perhaps nobody has
   * acted on it.
   */
  end(tuple: Tuple, isUnsure = false): void {
    const { site } = this.#ports;
    const others = this.#others(tuple);
    tuple.owners = [site, ...tuple.owners.filter((owner) => owner !== site)];
    tuple.version++;
    tuple.held = true;
    tuple.unacked = NO_SITES;
    this.#ended(tuple, isUnsure);
    if (others.length === 0) return this.#over(tuple);
    this.#tell(tuple, false);
  }

  /** Gives a tuple that this site acts on another mark. */
  amend(tuple: Tuple, { dueMs, note }: TupleMark): void {
    tuple.version++;
    tuple.dueMs = dueMs;
    tuple.note = note;
    tuple.unacked = NO_SITES;
    this.#ports.shelf.amend(tuple);
    this.#tell(tuple, false);
    this.#ports.wake();
  }

  /** Looks whether all owners have a tuple that is here already, since somebody waits for that: `held` follows. */
  confirm(tuple: Tuple): void {
    if (tuple.responsible !== this.#ports.site) this.#tellSome(tuple, this.#others(tuple));
    this.#checkHeld(tuple);
  }

  /** Notes that the disk has what was known of a tuple. */
  written(id: TupleId): void {
    const tuple = this.#ports.table.get(id);
    if (tuple === undefined || tuple.gone) return;
    this.#checkHeld(tuple);
    this.#act(tuple);
    this.#release(tuple);
  }

  /** Puts a tuple that is new here on the disk, with its payload. */
  #keep(
    id: TupleId,
    { version, owners, content, mark, former = NO_SITES }: Pick<Entry, "version" | "owners"> & {
      content: Content;
      mark: TupleMark;
      former?: readonly SiteId[];
    },
  ): Tuple {
    const { table, shelf } = this.#ports, { payload, ...rest } = content;
    const state = {
      ...rest,
      ...mark,
      version,
      owners,
      former,
      gone: false,
      isUnsure: false,
      isRepeated: false,
      bytes: payload.length,
    };
    const tuple = table.add(id, state);
    this.#exchange.begins(tuple.slot);
    this.#exchange.share(this.#others(tuple));
    this.payloads.set(tuple, payload);
    shelf.put(tuple, payload);
    this.#ports.wake();
    return tuple;
  }

  #others(tuple: Tuple): SiteId[] {
    return tuple.sites.filter((site) => site !== this.#ports.site);
  }

  /** Drops a payload from memory once the disk has it and nobody that lives waits for it. */
  #release(tuple: Tuple): void {
    if (tuple.payload === null || !tuple.held || !this.#ports.shelf.isWritten(tuple.id)) return;
    if (tuple.unacked.every((site) => this.isLost(site))) this.payloads.set(tuple, null);
  }

  /** Tells all other owners this version; suspected ones hear it when they are back. */
  #tell(tuple: Tuple, withPayload: boolean): void {
    for (const site of this.#others(tuple)) {
      tuple.owe(site);
      this.#exchange.tell(site, tuple.id, withPayload);
    }
    if (tuple.unacked.length === 0) this.#allAcked(tuple);
  }

  /** Tells some sites this version, whoever is responsible. */
  #tellSome(tuple: Tuple, sites: readonly SiteId[]): void {
    for (const site of sites) {
      tuple.owe(site);
      this.#exchange.tell(site, tuple.id, false);
    }
  }

  /** Makes another version of a tuple, with other owners, by this site. */
  #change(tuple: Tuple, owners: readonly SiteId[], former: readonly SiteId[]): void {
    const { shelf } = this.#ports;
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    tuple.version++;
    tuple.owners = owners;
    tuple.former = former;
    tuple.unacked = NO_SITES;
    tuple.doubts = null;
    this.#takes(tuple);
    this.#exchange.share(this.#others(tuple));
    if (tuple.held) shelf.amend(tuple);
    else shelf.put(tuple, tuple.payload);
    this.#tell(tuple, !tuple.held);
  }

  /** Notes the end of a tuple: a word on the disk is left of it, and no payload anywhere. */
  #ended(tuple: Tuple, isUnsure: boolean): void {
    tuple.gone = true;
    tuple.isRepeated = false;
    tuple.acting = false;
    tuple.doubts = null;
    this.#takes(tuple);
    tuple.isUnsure = isUnsure;
    if (isUnsure) tuple.rememberUntilS = 0;
    this.payloads.set(tuple, null);
    this.#ports.shelf.end(tuple);
    this.#ports.table.resize(tuple, 0);
    this.#ports.wake();
  }

  /**
   * Ends what is kept of a tuple that nobody has to hear of any more: its id is remembered (O6), or nothing is left
   * here.
   */
  #over(tuple: Tuple): void {
    const { site, shelf, table } = this.#ports;
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    this.#unsettled.delete(tuple.id);
    this.#refused.delete(tuple.id);
    this.payloads.set(tuple, null);
    if (tuple.gone && this.#isToRemember(tuple)) {
      const isKnown = tuple.owners.length + tuple.former.length === 1;
      tuple.owners = [site];
      tuple.former = tuple.unacked = NO_SITES;
      if (!isKnown) shelf.end(tuple);
      this.#remember(tuple.id);
    } else {
      shelf.drop(tuple);
      table.delete(tuple);
    }
    this.#ports.wake();
  }

  // ── Ids of what is over ──

  get remembered(): number {
    return this.#remembered.size;
  }

  #isToRemember({ rememberUntilS, isUnsure }: Tuple): boolean {
    return !isUnsure && rememberUntilS * 1_000 > this.#ports.wallMs();
  }

  /**
   * Remembers the id of a tuple that is over before it came to this site, which was to own it: its producer may come
   * again here (tuples.ts O6).
   */
  #rememberEnd({ id, version, goneUntilS }: Entry): void {
    const { table, shelf, site } = this.#ports;
    if (goneUntilS * 1_000 <= this.#ports.wallMs()) return;
    const nothing = { topic: "", f: 0, former: NO_SITES, isRepeated: false, dueMs: 0, note: "", bytes: 0 };
    const known = { owners: [site], version, gone: true, isUnsure: false, rememberUntilS: goneUntilS };
    const tuple = table.add(id, { ...nothing, ...known });
    tuple.held = true;
    shelf.end(tuple);
    this.#remember(id);
    this.#ports.wake();
  }

  #remember(id: TupleId): void {
    this.#remembered.add(id);
    for (const oldest of this.#remembered) {
      if (this.#remembered.size <= REMEMBERED_MAX) break;
      this.#ports.count("forgotten_early");
      this.#forgetId(oldest);
    }
  }

  #forgetId(id: TupleId): void {
    const { table, shelf } = this.#ports;
    this.#remembered.delete(id);
    const tuple = table.get(id);
    if (tuple === undefined) return;
    shelf.drop(tuple);
    table.delete(tuple);
    this.#ports.wake();
  }

  // ── What the others say ──

  merge(entry: Entry, from: SiteId): Merged {
    const { table } = this.#ports;
    const isStrange = entry.mark !== null && entry.owners.some((site) => this.#ports.isStranger(site));
    if (isStrange) this.#ports.refused("owner_unknown", from);
    const view = table.peek(entry.id);
    if (view !== undefined) {
      const order = compareEntry(entry, view);
      if (order <= 0) return order < 0 ? "older" : "same";
      if (!view.gone || entry.mark === null) {
        const tuple = table.get(entry.id);
        if (tuple === undefined) return "taken";
        if (!tuple.gone && tuple.owners.includes(this.#ports.site) && isBefore(tuple, entry)) {
          this.#outlive(tuple, entry);
          return "older";
        }
        this.#take(tuple, entry, from);
        return "taken";
      }
    }
    if (!entry.owners.includes(this.#ports.site)) return "taken";
    const { content, mark } = entry;
    if (mark === null) {
      this.#rememberEnd(entry);
      return "taken";
    }
    if (content === null) return "missing";
    // A tuple with owners that this site has not heard of yet is kept by others; a list that nobody can have is taken
    // nowhere.
    if (isStrange || !this.#ports.hasRoom(content.payload.length)) return "full";
    const former = this.#forgetEnd(entry, from);
    const tuple = this.#keep(entry.id, { ...entry, content, mark, former });
    tuple.held = true;
    this.#tellSome(tuple, former);
    return "taken";
  }

  /**
   * Forgets an id's end that was of another time (tuple.ts T2); returns the sites that may not have heard of that end.
   */
  #forgetEnd({ id, owners }: Pick<Entry, "id" | "owners">, from?: SiteId): readonly SiteId[] {
    const tuple = this.#ports.table.get(id);
    if (tuple === undefined) return NO_SITES;
    const { shelf, table } = this.#ports, others = this.#others(tuple);
    this.#exchange.unshare(id, others);
    this.#unsettled.delete(id);
    this.#remembered.delete(id);
    shelf.drop(tuple);
    table.delete(tuple);
    return others.filter((one) => one !== from && !owners.includes(one));
  }

  /**
   * Keeps a tuple that was here before its id was stored again, and given up (tuple.ts T3): that end is not its own.
   */
  #outlive(tuple: Tuple, { version }: Entry): void {
    const { site, shelf } = this.#ports;
    this.#ports.count("outlived");
    tuple.version = versionAfter(version);
    tuple.unacked = NO_SITES;
    if (tuple.held) shelf.amend(tuple);
    else shelf.put(tuple, tuple.payload);
    this.#tell(tuple, !tuple.held);
    // The owners before this site may have given the tuple up themselves, or have lost it.
    for (const owner of tuple.owners.slice(0, tuple.owners.indexOf(site))) this.#inquire(tuple, owner);
  }

  /** Takes another site's version of a tuple. */
  #take(tuple: Tuple, entry: Entry, from: SiteId): void {
    const { site } = this.#ports;
    const { acting } = tuple;
    // Sites that this one has told otherwise are told again. Those that a version leaves out may hear of it from nobody
    // else: the author of that version need not know of them, and the site that told them may lose its disk (tuples.ts
    // O3).
    const leftOut = entry.mark === null && entry.owners[0] === tuple.responsible
      ? []
      : this.#others(tuple).filter((one) => !entry.owners.includes(one));
    const whom = tuple.responsible === site ? this.#others(tuple) : [...tuple.unacked, ...leftOut];
    const told = [...new Set(whom)].filter((one) => one !== from);
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    tuple.acting = false;
    tuple.doubts = null;
    this.#takes(tuple);
    tuple.held = true;
    tuple.isRepeated ||= isStoredAgain(entry, tuple);
    tuple.version = entry.version;
    tuple.owners = entry.owners;
    tuple.former = told.filter((one) => !entry.owners.includes(one));
    tuple.unacked = NO_SITES;
    this.#exchange.share(this.#others(tuple));
    this.#ports.overtaken(tuple.id, entry.mark === null && !entry.isUnsure);
    if (entry.mark === null) {
      tuple.rememberUntilS = entry.goneUntilS;
      this.#ended(tuple, entry.isUnsure);
      this.#takeGone(tuple, from, told);
    } else {
      tuple.dueMs = entry.mark.dueMs;
      tuple.note = entry.mark.note;
      this.#takeVersion(tuple, from, told);
    }
    if (acting) this.#ports.lost(tuple); // tuples.ts O3
  }

  #takeVersion(tuple: Tuple, from: SiteId, told: readonly SiteId[]): void {
    const { site, shelf } = this.#ports;
    if (!tuple.owners.includes(site) && told.length === 0) return this.#over(tuple);
    shelf.amend(tuple);
    if (tuple.responsible === site) this.#tell(tuple, false);
    else this.#tellSome(tuple, told);
    // The responsible site may have lost, with its disk, what others still know.
    if (from !== tuple.responsible) this.#exchange.ask(tuple.responsible);
    this.#consider(tuple);
  }

  /** Takes a tuple's end: kept in mind while owners other than the one that says so may still have the tuple (O4). */
  #takeGone(tuple: Tuple, from: SiteId, told: readonly SiteId[]): void {
    if (told.length === 0 && this.#others(tuple).every((one) => one === from)) return this.#over(tuple);
    if (told.length > 0 || tuple.responsible === this.#ports.site) this.#tell(tuple, false);
    else this.#unsettle(tuple);
  }

  #unsettle({ id }: Tuple): void {
    this.#unsettled.delete(id);
    this.#unsettled.set(id, this.#ports.nowMs());
  }

  /** Notes that a site has this version on its disk. */
  acked(tuple: Tuple, site: SiteId): void {
    if (!tuple.settle(site)) return;
    tuple.refuses(site, false);
    if (!tuple.gone && tuple.former.includes(site)) {
      tuple.former = tuple.former.filter((one) => one !== site);
      this.#exchange.unshare(tuple.id, [site]);
      this.#act(tuple);
      // Adopting the tuple waited for that site, too (tuples.ts O2).
      this.#doubtful.add(tuple.id);
      this.#ports.wake();
    }
    // Owners that are to leave the tuple may go now (mend.ts M2).
    if (tuple.owners.length > tuple.f + 1 && tuple.responsible === this.#ports.site) {
      this.#doubtful.add(tuple.id);
      this.#ports.wake();
    }
    // That site knows now that it comes after this one.
    if (tuple.doubts?.has(site) === true) {
      this.#doubtful.add(tuple.id);
      this.#ports.wake();
    }
    this.#checkHeld(tuple);
    if (tuple.unacked.length === 0) this.#allAcked(tuple);
  }

  /** Notes that a site has named a tuple as it is here. */
  agreed(id: TupleId, site: SiteId): void {
    const { table } = this.#ports;
    if (table.peek(id)?.unacked.includes(site) !== true) return;
    const tuple = table.get(id);
    if (tuple !== undefined) this.acked(tuple, site);
  }

  #allAcked(tuple: Tuple): void {
    if (!tuple.gone) {
      return tuple.owners.includes(this.#ports.site) ? this.#release(tuple) : this.#over(tuple);
    }
    const others = this.#others(tuple);
    if (others.length > 1) this.#exchange.tellForget(tuple.id, others);
    this.#over(tuple);
  }

  /** Forgets a tuple whose end everybody knows. */
  forget(id: TupleId): void {
    const tuple = this.#ports.table.get(id);
    const isUnsettled = tuple?.gone === true && tuple.unacked.length === 0;
    if (isUnsettled && this.#others(tuple).length > 0) this.#over(tuple);
  }

  /** Notes that a site has no room for a tuple: another takes its place, or it is asked again when it may have some. */
  refused(tuple: Tuple, site: SiteId): void {
    if (tuple.responsible !== this.#ports.site) return;
    tuple.refuses(site, true);
    this.#consider(tuple);
  }

  /** Notes that a site does not have a tuple's payload. */
  lacks(tuple: Tuple, site: SiteId): void {
    // A site that does not have the tuple need hear of it from the responsible site only.
    if (tuple.responsible === this.#ports.site) return this.payloads.want(tuple.id, site);
    if (tuple.responsible === site || tuple.doubts?.has(site) === true) {
      (tuple.doubts ??= new Map()).set(site, "lost");
      this.#doubtful.add(tuple.id);
      this.#ports.wake();
    }
    if (tuple.owners.includes(site)) this.#ports.lacking(tuple.id);
    this.acked(tuple, site);
  }

  /**
   * Marks a tuple as held once it is on as many disks as it is to be (O1); an owner that is to leave it may not be
   * among these (mend.ts M2).
   */
  #checkHeld(tuple: Tuple): void {
    if (tuple.gone || !this.#ports.shelf.isWritten(tuple.id)) return;
    const having = tuple.owners.filter((owner) => !tuple.unacked.includes(owner));
    if (having.length <= tuple.f) return;
    this.#ports.held(tuple.id);
    if (tuple.held) return;
    tuple.held = true;
    this.#act(tuple);
    this.#release(tuple);
  }

  // ── Who is responsible ──

  /** Ends adoption (O8): the others could not know what this site would adopt now, and would have to wait for it. */
  leaves(): void {
    this.#isLeaving = true;
  }

  /** Notes that this process begins by the time that the one before had named (O8). */
  inTime(): void {
    this.#isInTime = true;
  }

  isLost(site: SiteId): boolean {
    const standing = this.#standing(site);
    return standing === "suspected" || standing === "dead";
  }

  #standing(site: SiteId): Standing {
    const { isKnown, isStranger, standing } = this.#ports;
    if (isKnown(site)) return standing(site);
    return isStranger(site) ? "unknown" : "dead";
  }

  /** Reports whether a site has said until when it is away, and that time is not over. */
  #isAwaited(site: SiteId): boolean {
    return this.#ports.awaitedUntilMs(site) !== null;
  }

  /** Takes a change of a site's standing. */
  changed(site: SiteId, standing: Standing): void {
    if (standing === "alive") {
      this.#exchange.ask(site);
      this.#tellUnheld(site);
      this.#walks.begin(RETELL + site);
      this.#walks.begin(SHORT);
    } else {
      this.#exchange.lost(site);
      this.#walks.end(RETELL + site);
      this.#walks.begin(RECONSIDER + site);
      for (const tuple of this.#ports.table.moving) {
        if (mayHave(tuple, site)) this.#doubtful.add(tuple.id); // producers wait for them
      }
    }
    this.#ports.wake();
  }

  /**
   * Takes the news that a site is another process, which may have another disk: tuples that nobody counts on yet are
   * told again.
   */
  restarted(site: SiteId): void {
    for (const tuple of this.#ports.table.moving) {
      if (!tuple.held && !tuple.gone && tuple.owners.includes(site)) tuple.owe(site);
    }
    this.#tellUnheld(site);
  }

  /** Tells a site the tuples that producers wait for. */
  #tellUnheld(site: SiteId): void {
    for (const tuple of this.#ports.table.moving) {
      if (!tuple.held && tuple.unacked.includes(site)) this.#exchange.tell(site, tuple.id, true);
    }
  }

  /** Takes the news that a site has told all it knows. */
  reconciled(site: SiteId): void {
    this.#walks.begin(RECONSIDER + site);
    this.#ports.wake();
  }

  /**
   * Treats a tuple that a site did not name though it has told all it knows. The responsible site may have lost it
   * then; another owner may not have had it yet, unless it was asked because of the loss. An owner after this site may
   * have been away as this site became an owner in its place (mend.ts M2): it would adopt what it has without a word to
   * this site, and is told at once.
   */
  #unnamed(tuple: Tuple, site: SiteId): void {
    if (tuple.gone) return;
    if (tuple.responsible === this.#ports.site) {
      if (!tuple.owners.includes(site)) return;
      tuple.owe(site);
      this.#exchange.tell(site, tuple.id, false);
    } else if (tuple.responsible === site || tuple.doubts?.has(site) === true) this.#inquire(tuple, site);
    else if (this.#after(tuple).includes(site)) this.#tellSome(tuple, [site]);
  }

  /** Returns the owners that come after this site, where this site is one. */
  #after({ owners }: Tuple): readonly SiteId[] {
    const place = owners.indexOf(this.#ports.site);
    return place < 0 ? NO_SITES : owners.slice(place + 1);
  }

  /**
   * Asks an owner for one tuple: that owner names what it knows to be shared with this site, and may have a version
   * that has another site in this one's place. Only its own word shows that it does not have the tuple (`lacks`).
   */
  #inquire(tuple: Tuple, site: SiteId): void {
    const doubts = tuple.doubts ??= new Map();
    if (doubts.get(site) === "lost") return;
    doubts.set(site, "told");
    this.#tellSome(tuple, [site]);
  }

  #errand(reason: string): Errand {
    const { table, site } = this.#ports;
    const of = (name: string): SiteId | null => reason.startsWith(name) ? reason.slice(name.length) : null;
    const each = (act: (tuple: Tuple) => void) => (id: TupleId) => {
      const tuple = table.get(id);
      if (tuple !== undefined) act(tuple);
    };
    const isOwn = (roster: Roster) => roster.owners[0] === site && !roster.gone;
    if (reason === OWN) return { wants: isOwn, visit: each((tuple) => this.#consider(tuple)) };
    if (reason === SHORT) {
      const wants = (roster: Roster) => isOwn(roster) && this.#plan(roster).isChanged;
      return { wants, visit: each((tuple) => this.#consider(tuple)) };
    }
    const retold = of(RETELL);
    if (retold !== null) {
      // A tuple that the site holds for this one it names itself, or it turns out not to have it.
      const wants = ({ owners, unacked, gone }: Roster) =>
        unacked.includes(retold) && (gone || owners[0] !== site || !owners.includes(retold));
      return { wants, visit: (id) => this.#exchange.tell(retold, id, false) };
    }
    const left = of(LEAVE);
    if (left !== null) {
      const wants = (roster: Roster) =>
        roster.former.includes(left) || (roster.gone && mayHave(roster, left));
      return { wants, visit: each((tuple) => this.acked(tuple, left)) };
    }
    const other = of(RECONSIDER) ?? "";
    return {
      wants: (roster) => mayHave(roster, other),
      visit: (id: TupleId, slot: TupleSlot) => {
        const tuple = table.get(id);
        if (tuple === undefined) return;
        if (this.#exchange.isUnnamed(other, slot)) this.#unnamed(tuple, other);
        this.#consider(tuple);
      },
    };
  }

  /**
   * Considers the next tuples that something has changed for. A site with many shared tuples may be gone: other work is
   * done between two parts of this.
   */
  considerSome(): void {
    this.#plans.clear();
    let left = CONSIDERED_AT_ONCE;
    for (const id of this.#doubtful) {
      if (left-- === 0) break;
      this.#doubtful.delete(id);
      const tuple = this.#ports.table.get(id);
      if (tuple !== undefined) this.#consider(tuple);
    }
    this.#walks.step();
    if (this.#doubtful.size > 0 || !this.#walks.isOver) this.#ports.wake();
  }

  /** Does with a tuple what the standing of its owners asks for. */
  #consider(tuple: Tuple): void {
    if (tuple.gone) return;
    const { site } = this.#ports;
    if (tuple.responsible === site) {
      this.#mend(tuple);
      this.#act(tuple);
      return this.#release(tuple);
    }
    if (this.#isLeaving || !tuple.owners.includes(site)) return;
    const before = tuple.owners.slice(0, tuple.owners.indexOf(site));
    if (!this.#isFree(tuple, before) || !this.#isSettled(tuple) || this.#mayBeTaken(tuple)) return;
    if (!this.#isAgreed(tuple)) return;
    const others = tuple.owners.filter((owner) => owner !== site);
    const lost = others.filter((owner) => this.isLost(owner));
    tuple.how = "adopted"; // tuples.ts O5
    this.#ports.count("adopted");
    const owners = [site, ...others.filter((owner) => !lost.includes(owner)), ...lost];
    this.#change(tuple, owners, tuple.former);
    this.#mend(tuple);
  }

  /** Reports whether no owner before this site is there to have the tuple; those that may be the next are asked. */
  #isFree(tuple: Tuple, before: readonly SiteId[]): boolean {
    const left = before.filter((owner) =>
      (!this.isLost(owner) || this.#isAwaited(owner)) && tuple.doubts?.get(owner) !== "lost"
    );
    if (left.includes(tuple.responsible)) return false;
    for (const owner of left) {
      if (tuple.doubts?.has(owner) === true) continue;
      (tuple.doubts ??= new Map()).set(owner, "asked");
      this.#exchange.ask(owner);
    }
    return left.length === 0;
  }

  /**
   * Reports whether the owners after this site know that they come after it; those that did not name the tuple are
   * asked for it.
   */
  #isAgreed(tuple: Tuple): boolean {
    const left = this.#after(tuple).filter((owner) =>
      !this.isLost(owner) && this.#exchange.isUnnamed(owner, tuple.slot) &&
      tuple.doubts?.get(owner) !== "lost"
    );
    for (const owner of left) if (tuple.doubts?.has(owner) !== true) this.#inquire(tuple, owner);
    return left.length === 0;
  }

  /**
   * Reports whether a site that will be back may have adopted a tuple before it said so, and this one has not heard it
   * (O8).
   */
  #mayBeTaken(tuple: Tuple): boolean {
    return this.#others(tuple).some((site) =>
      this.#isAwaited(site) && this.isLost(site) && !this.#exchange.hadToldAll(site)
    );
  }

  /** Gives a tuple other owners for those that are dead, or, as long as nobody counts on it, suspected or full. */
  #mend(tuple: Tuple): void {
    this.#offer(tuple);
    const { owners, former, isChanged } = this.#planOf(tuple);
    if (isChanged) {
      this.#ports.count("mended");
      this.#change(tuple, owners, former);
    }
    if (tuple.refusedBy.length > 0) this.#refused.add(tuple.id);
    else this.#refused.delete(tuple.id);
  }

  #planOf(tuple: Tuple): Mended {
    const { held, refusedBy, unacked } = tuple, { site, choose } = this.#ports;
    if (held && refusedBy.length === 0) {
      return this.#plan(
        tuple,
        tuple.owners.filter((owner) => unacked.includes(owner)),
      );
    }
    const isUseless = (owner: SiteId) =>
      held
        ? this.#standing(owner) === "dead" || refusedBy.includes(owner)
        : unacked.includes(owner) && (this.isLost(owner) || this.#exchange.isFull(owner));
    return mended(tuple, {
      site,
      isUseless,
      mayStay: (owner) => !refusedBy.includes(owner),
      lacks: (owner) => unacked.includes(owner),
      choose,
    });
  }

  /**
   * Plans the owners that tuples of a roster are to have.
   *
   * @param lacking owners that are not known to have them.
   */
  #plan({ f, owners, former }: Roster, lacking: readonly SiteId[] = NO_SITES): Mended {
    const key = `${f}\n${owners.join("\n")}\n\n${former.join("\n")}\n\n${lacking.join("\n")}`;
    let plan = this.#plans.get(key);
    if (plan === undefined) {
      const { site, choose } = this.#ports;
      const isUseless = (owner: SiteId) => this.#standing(owner) === "dead";
      plan = mended({ f, owners, former }, {
        site,
        isUseless,
        mayStay: () => true,
        lacks: (owner) => lacking.includes(owner),
        choose,
      });
      this.#plans.set(key, plan);
    }
    return plan;
  }

  /** Forgets which owners had no room for a tuple. */
  #takes(tuple: Tuple): void {
    tuple.refusedBy = NO_SITES;
    this.#refused.delete(tuple.id);
  }

  /** Offers a tuple again to owners that had no room for it, and may have some by now. */
  #offer(tuple: Tuple): void {
    for (const site of tuple.refusedBy) {
      if (this.#exchange.isFull(site)) continue;
      tuple.refuses(site, false);
      if (tuple.held && tuple.unacked.includes(site)) this.payloads.want(tuple.id, site);
    }
  }

  /** Reports whether every other owner has told what it knows, or is suspected (O2). */
  #isSettled(tuple: Tuple): boolean {
    return this.#others(tuple).every((site) => this.#exchange.isSettled(site));
  }

  #act(tuple: Tuple): void {
    const isMine = tuple.responsible === this.#ports.site && !tuple.gone;
    if (!isMine || tuple.acting || !tuple.held || !this.#ports.shelf.isWritten(tuple.id)) return;
    if (!this.#isSettled(tuple)) return;
    // A site may have adopted the tuple while the process that had it before was down (O8).
    if (tuple.how === "loaded" && !this.#isInTime && this.#mayBeTaken(tuple)) return;
    tuple.acting = true;
    this.#ports.mine(tuple);
  }

  /** Counts own tuples that have fewer owners than they want, or an owner that has no room for them. */
  short(): number {
    this.#plans.clear();
    let short = this.#refused.size;
    for (const { roster, count } of this.#ports.table.counted()) {
      const isOwn = roster.owners[0] === this.#ports.site && !roster.gone;
      if (isOwn && this.#plan(roster).missing > 0) short += count;
    }
    return short;
  }

  // ── What time asks for ──

  /** Looks again, sometimes, at what lacks owners, at sites that left the tree, and at ends that nobody has settled. */
  tick(): void {
    void this.payloads.readSome();
    for (const site of this.#exchange.sites()) {
      if (this.#ports.isKnown(site) || this.#ports.isStranger(site)) this.#left.delete(site);
      else if (!this.#left.has(site)) this.#leaves(site);
    }
    const nowMs = this.#ports.nowMs();
    if (nowMs - this.#retriedMs >= SHORT_RETRY_MS) {
      this.#retriedMs = nowMs;
      this.#walks.begin(SHORT);
      for (const id of this.#refused) this.#doubtful.add(id);
      this.#ports.wake();
    }
    this.#retell(nowMs);
    this.#forgetOld();
  }

  #retell(nowMs: number): void {
    let left = RETOLD_AT_ONCE;
    for (const [id, sinceMs] of this.#unsettled) {
      if (nowMs - sinceMs < GONE_MS || left-- === 0) break;
      const tuple = this.#ports.table.get(id);
      this.#unsettled.delete(id);
      if (tuple === undefined) continue;
      this.#unsettle(tuple);
      this.#tell(tuple, false);
    }
  }

  #forgetOld(): void {
    const { table, wallMs } = this.#ports, nowS = wallMs() / 1_000;
    let left = RETOLD_AT_ONCE;
    for (const id of this.#remembered) {
      if (left-- === 0 || (table.peek(id)?.rememberUntilS ?? 0) > nowS) break;
      this.#forgetId(id);
    }
  }

  /** Takes the news that a site has left the tree: it has nothing any more, and is told nothing. */
  #leaves(site: SiteId): void {
    this.#left.add(site);
    this.changed(site, "dead");
    this.#exchange.heard(site);
    this.#walks.begin(LEAVE + site);
  }
}
