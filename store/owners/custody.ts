/**
 * What becomes of tuples at one owner: who is responsible for each, as far as this site knows, and what has to be done
 * about it.
 *
 * A tuple here: taken (new, or told by its responsible site) → held → responsible: acted on → gone → dropped. Or:
 * not responsible → adopted, when all owners before this site are lost → the same.
 *
 * The rules are those of tuples.ts (O1–O5).
 */
import { GONE_MS } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { CustodyPorts } from "./custody_ports.ts";
import type { Standing } from "../presence/detector.ts";
import type { Merged, TupleExchange } from "./exchange.ts";
import { mended } from "./mend.ts";
import type { Entry, TupleId } from "./packet.ts";
import { Payloads } from "./payloads.ts";
import { compareEntries, Tuple } from "./tuple.ts";

/** Adopting so many takes some milliseconds, and a step of the disk. */
const CONSIDERED_AT_ONCE = 1_000;
/** A site that could be an owner is heard of at once; this is for what else may have changed. */
const SHORT_RETRY_MS = 5_000;

export class Custody {
  readonly #ports: CustodyPorts;
  readonly #exchange: TupleExchange;
  readonly tuples = new Map<TupleId, Tuple>();
  /** Own tuples that lack owners, and those that may not change hands yet: they are looked at again. */
  readonly short = new Set<TupleId>();
  /** Tuples that others have removed, in the order in which that was heard. */
  readonly #remembered = new Set<TupleId>();
  /** What something was heard about that may ask for an answer. */
  readonly #doubtful = new Set<TupleId>();
  /** Sites that left the tree, as far as they were noticed. */
  readonly #left = new Set<SiteId>();
  #retriedMs = 0;
  readonly payloads: Payloads;

  constructor(ports: CustodyPorts, exchange: TupleExchange) {
    this.#ports = ports;
    this.#exchange = exchange;
    this.payloads = new Payloads({
      read: (id) => ports.shelf.read(id),
      tuple: (id) => this.tuples.get(id),
      tell: (site, id) => exchange.tell(site, id, true),
      fail: ports.fail,
    });
  }

  // ── Tuples of this site ──

  /** A new tuple of a producer here: told at once. */
  take(tuple: Tuple, payload: Uint8Array): void {
    this.#keep(tuple, payload);
    this.#tell(tuple, true);
  }

  /** A tuple that the disk had. */
  loaded(tuple: Tuple): void {
    this.tuples.set(tuple.id, tuple);
    this.#exchange.share(tuple.id, this.#others(tuple));
    // Whether it had been acted on, or given up, is known to nobody any more.
    tuple.isUnsure = tuple.gone && tuple.responsible === this.#ports.site;
    if (tuple.responsible === this.#ports.site) this.#tell(tuple, false);
    else if (tuple.gone) this.#remember(tuple);
    else if (tuple.owners.includes(this.#ports.site)) this.#tellSome(tuple, tuple.former);
    else this.#tellSome(tuple, this.#others(tuple)); // it goes when they have it
  }

  /** It is removed here; then all others are told (O4). `isUnsure`: though nobody may have acted on it. */
  end(tuple: Tuple, isUnsure = false): void {
    tuple.isUnsure = isUnsure;
    const { site, shelf } = this.#ports;
    const others = this.#others(tuple);
    tuple.owners = [site, ...tuple.owners.filter((owner) => owner !== site)];
    tuple.version++;
    tuple.gone = true;
    tuple.held = true;
    tuple.acting = false;
    tuple.unacked = [];
    this.short.delete(tuple.id);
    this.payloads.set(tuple, null);
    if (others.length === 0) return this.#drop(tuple);
    shelf.put(tuple, null);
    this.#tell(tuple, false);
  }

  /** The disk has what was known of a tuple. */
  written(id: TupleId): void {
    const tuple = this.tuples.get(id);
    if (tuple === undefined || tuple.gone) return;
    this.#checkHeld(tuple);
    this.#act(tuple);
    this.#release(tuple);
  }

  /** A tuple that is new here goes to the disk, with its payload. */
  #keep(tuple: Tuple, payload: Uint8Array): void {
    this.tuples.set(tuple.id, tuple);
    this.payloads.set(tuple, payload);
    this.#exchange.share(tuple.id, this.#others(tuple));
    this.#ports.shelf.put(tuple, payload);
    this.#ports.wake();
  }

  #others(tuple: Tuple): SiteId[] {
    return tuple.sites.filter((site) => site !== this.#ports.site);
  }

  /** The payload leaves memory once the disk has it and nobody that lives waits for it. */
  #release(tuple: Tuple): void {
    if (tuple.payload === null || !tuple.held || !this.#ports.shelf.isWritten(tuple.id)) return;
    if (tuple.unacked.every((site) => this.isLost(site))) this.payloads.set(tuple, null);
  }

  /** All the others are to have this version; suspected ones hear it when they are back. */
  #tell(tuple: Tuple, withPayload: boolean): void {
    for (const site of this.#others(tuple)) {
      tuple.owe(site);
      this.#exchange.tell(site, tuple.id, withPayload);
    }
    if (tuple.unacked.length === 0) this.#allAcked(tuple);
  }

  /** These are to have this version, whoever is responsible. */
  #tellSome(tuple: Tuple, sites: readonly SiteId[]): void {
    for (const site of sites) {
      tuple.owe(site);
      this.#exchange.tell(site, tuple.id, false);
    }
  }

  /** Another version of its owners, by this site. */
  #change(tuple: Tuple, owners: readonly SiteId[], former: readonly SiteId[]): void {
    const { shelf } = this.#ports;
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    tuple.version++;
    tuple.owners = owners;
    tuple.former = former;
    tuple.unacked = [];
    tuple.doubts = null;
    tuple.refusedBy = [];
    this.#exchange.share(tuple.id, this.#others(tuple));
    if (tuple.held) shelf.amend(tuple);
    else shelf.put(tuple, tuple.payload);
    this.#tell(tuple, !tuple.held);
  }

  /** Nothing is left of it here. */
  #drop(tuple: Tuple): void {
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    this.payloads.set(tuple, null);
    this.short.delete(tuple.id);
    this.#remembered.delete(tuple.id);
    this.tuples.delete(tuple.id);
    this.#ports.shelf.drop(tuple.id);
    this.#ports.wake();
  }

  // ── What the others say ──

  merge(entry: Entry, from: SiteId): Merged {
    const tuple = this.tuples.get(entry.id);
    const isOwner = entry.owners.includes(this.#ports.site);
    const isStrange = !entry.gone && entry.owners.some((site) => this.#ports.isStranger(site));
    if (isStrange) this.#ports.refused("owner_unknown", from);
    if (tuple !== undefined) return this.#mergeKnown(tuple, entry, isOwner, from);
    if (!isOwner) return "taken";
    const { version, owners, gone } = entry;
    const fresh = () => new Tuple(entry.id, { version, owners, former: [], gone }, true);
    if (gone) return "taken";
    if (entry.payload === null) return "missing";
    // Who may be told so soon has others; a list that nobody can have goes nowhere.
    if (isStrange || !this.#ports.hasRoom()) return "full";
    this.#keep(fresh(), entry.payload);
    return "taken";
  }

  #mergeKnown(tuple: Tuple, entry: Entry, isOwner: boolean, from: SiteId): Merged {
    const order = compareEntries(entry, tuple);
    if (order <= 0) return order < 0 ? "older" : "taken";
    const { acting, held } = tuple;
    // Whom this site has told otherwise it tells again. Of another site's version those that it leaves out may hear from
    // nobody else: that site need not know of them, and who told them may have lost its disk.
    const isOthers = entry.owners[0] !== tuple.responsible;
    const leftOut = isOthers ? this.#others(tuple).filter((site) => !entry.owners.includes(site)) : [];
    const whom = tuple.responsible === this.#ports.site
      ? this.#others(tuple)
      : [...tuple.unacked, ...leftOut];
    const told = [...new Set(whom)].filter((site) => site !== from);
    this.#exchange.unshare(tuple.id, this.#others(tuple));
    tuple.acting = false;
    tuple.doubts = null;
    tuple.held = true;
    tuple.version = entry.version;
    tuple.owners = entry.owners;
    tuple.former = told.filter((site) => !entry.owners.includes(site));
    tuple.unacked = [];
    this.short.delete(tuple.id);
    if (!held) this.#ports.overtaken(tuple.id, entry.gone);
    if (entry.gone) {
      tuple.gone = true;
      this.#takeGone(tuple, from, told);
    } else if (isOwner || told.length > 0) {
      this.#exchange.share(tuple.id, this.#others(tuple));
      this.#ports.shelf.amend(tuple);
      if (tuple.responsible === this.#ports.site) this.#tell(tuple, false);
      else this.#tellSome(tuple, told);
      // It may have lost, with its disk, what others still know.
      if (from !== tuple.responsible) this.#exchange.ask(tuple.responsible);
      this.consider(tuple);
    } else this.#drop(tuple);
    if (acting) this.#ports.lost(tuple.id); // tuples.ts O3
    return "taken";
  }

  /** It is gone: remembered while owners other than who says so may still have it (O4). */
  #takeGone(tuple: Tuple, from: SiteId, told: readonly SiteId[]): void {
    this.payloads.set(tuple, null);
    if (told.length === 0 && this.#others(tuple).every((site) => site === from)) return this.#drop(tuple);
    this.#exchange.share(tuple.id, this.#others(tuple));
    this.#ports.shelf.put(tuple, null);
    if (told.length > 0 || tuple.responsible === this.#ports.site) this.#tell(tuple, false);
    else this.#remember(tuple);
  }

  #remember(tuple: Tuple): void {
    tuple.goneMs = this.#ports.nowMs();
    this.#remembered.delete(tuple.id);
    this.#remembered.add(tuple.id);
  }

  /** A site has this version on its disk. */
  acked(tuple: Tuple, site: SiteId): void {
    if (!tuple.settle(site)) return;
    tuple.refuses(site, false);
    if (!tuple.gone && tuple.former.includes(site)) {
      tuple.former = tuple.former.filter((one) => one !== site);
      this.#exchange.unshare(tuple.id, [site]);
      this.#act(tuple);
    }
    this.#checkHeld(tuple);
    if (tuple.unacked.length === 0) this.#allAcked(tuple);
  }

  #allAcked(tuple: Tuple): void {
    if (!tuple.gone) {
      return tuple.owners.includes(this.#ports.site) ? this.#release(tuple) : this.#drop(tuple);
    }
    const others = this.#others(tuple);
    if (others.length > 1) this.#exchange.tellForget(tuple.id, others);
    this.#drop(tuple);
  }

  /** Everybody knows its end. */
  forget(id: TupleId): void {
    const tuple = this.tuples.get(id);
    if (tuple?.gone === true && tuple.unacked.length === 0) this.#drop(tuple);
  }

  /** A site has no room for a tuple: another takes its place, or it is asked again when it may have some. */
  refused(tuple: Tuple, site: SiteId): void {
    if (tuple.responsible !== this.#ports.site) return;
    tuple.refuses(site, true);
    this.consider(tuple);
    if (tuple.refusedBy.includes(site) && !tuple.gone) this.short.add(tuple.id);
  }

  /** A site does not have the payload. */
  lacks(tuple: Tuple, site: SiteId): void {
    // It need not hear of what it does not have, but from the responsible site.
    if (tuple.responsible === this.#ports.site) this.payloads.want(tuple.id, site);
    else this.acked(tuple, site);
  }

  /** O1: on the disks of all its owners. */
  #checkHeld(tuple: Tuple): void {
    if (tuple.held || tuple.gone || !this.#ports.shelf.isWritten(tuple.id)) return;
    if (tuple.owners.some((owner) => tuple.unacked.includes(owner))) return;
    tuple.held = true;
    this.#ports.held(tuple);
    this.#act(tuple);
    this.#release(tuple);
  }

  // ── Who is responsible ──

  isLost(site: SiteId): boolean {
    const standing = this.#standing(site);
    return standing === "suspected" || standing === "dead";
  }

  #standing(site: SiteId): Standing {
    const { isKnown, isStranger, standing } = this.#ports;
    if (isKnown(site)) return standing(site);
    return isStranger(site) ? "unknown" : "dead";
  }

  /** A site's standing has changed. */
  changed(site: SiteId, standing: Standing): void {
    if (standing === "alive") {
      this.#exchange.ask(site);
      this.tellAgain(site, false);
      return this.#considerLater(this.short);
    }
    this.#exchange.lost(site);
    this.considerAll(site);
  }

  /** What a site has not said that it has; all of it where it may have lost its disk. */
  tellAgain(site: SiteId, mayHaveLost: boolean): void {
    for (const id of this.#exchange.shared(site)) {
      const tuple = this.tuples.get(id);
      if (tuple === undefined) continue;
      if (mayHaveLost && tuple.responsible === this.#ports.site) tuple.owe(site);
      if (tuple.unacked.includes(site)) this.#exchange.tell(site, id, !tuple.held);
    }
  }

  /**
   * A site has told all it knows, and did not name these. Who is responsible has lost them then; another owner may not
   * have had them yet, unless it was asked because of the loss.
   */
  reconciled(site: SiteId, unnamed: Iterable<TupleId>): void {
    for (const id of unnamed) {
      const tuple = this.tuples.get(id);
      if (tuple === undefined) continue;
      const isOver = tuple.responsible === site || tuple.doubts?.get(site) === "asked";
      if (isOver) (tuple.doubts ??= new Map()).set(site, "lost");
    }
    this.considerAll(site);
  }

  considerAll(site: SiteId): void {
    this.#considerLater(this.#exchange.shared(site));
  }

  #considerLater(ids: Iterable<TupleId>): void {
    for (const id of ids) this.#doubtful.add(id);
    if (this.#doubtful.size > 0) this.#ports.wake();
  }

  /** A site that many tuples were shared with is gone: others are served between two parts of the work. */
  considerSome(): void {
    let left = CONSIDERED_AT_ONCE;
    for (const id of this.#doubtful) {
      if (left-- === 0) return this.#ports.wake();
      this.#doubtful.delete(id);
      const tuple = this.tuples.get(id);
      if (tuple !== undefined) this.consider(tuple);
    }
  }

  /** Does with a tuple what the standing of its owners asks for. */
  consider(tuple: Tuple): void {
    if (tuple.gone) return;
    const { site } = this.#ports;
    if (tuple.responsible === site) {
      this.#mend(tuple);
      this.#act(tuple);
      return this.#release(tuple);
    }
    if (!tuple.owners.includes(site)) return;
    const before = tuple.owners.slice(0, tuple.owners.indexOf(site));
    if (!this.#isFree(tuple, before) || !this.#isSettled(tuple)) return;
    void this.#allowed(tuple, before, () => { // tuples.ts O5
      const others = tuple.owners.filter((owner) => owner !== site);
      const lost = others.filter((owner) => this.isLost(owner));
      tuple.how = "adopted";
      this.#ports.count("adopted");
      this.#change(tuple, [site, ...others.filter((owner) => !lost.includes(owner)), ...lost], tuple.former);
      this.#mend(tuple);
    });
  }

  /** Whether no owner before this site is there to have it; those that may be the next are asked. */
  #isFree(tuple: Tuple, before: readonly SiteId[]): boolean {
    const left = before.filter((owner) => !this.isLost(owner) && tuple.doubts?.get(owner) !== "lost");
    if (left.includes(tuple.responsible)) return false;
    for (const owner of left) {
      if (tuple.doubts?.has(owner) === true) continue;
      (tuple.doubts ??= new Map()).set(owner, "asked");
      this.#exchange.ask(owner);
    }
    return left.length === 0;
  }

  /** Asks the arbiter, where there is one; nothing is done where the tuple has changed meanwhile. */
  async #allowed(tuple: Tuple, from: readonly SiteId[], change: () => void): Promise<void> {
    const { mayChange } = this.#ports;
    if (mayChange === undefined) return change();
    if (tuple.asking) return;
    tuple.asking = true;
    const { version, responsible } = tuple;
    const may = await mayChange(tuple.id, from).catch(() => false);
    tuple.asking = false;
    const isSame = this.tuples.get(tuple.id) === tuple && !tuple.gone && tuple.version === version &&
      tuple.responsible === responsible;
    if (may && isSame) change();
    else if (isSame) this.short.add(tuple.id); // it is asked again
  }

  /** Gives a tuple other owners for those that are dead, or, as long as nobody counts on it, suspected or full. */
  #mend(tuple: Tuple): void {
    const { site, f, choose } = this.#ports;
    this.#offer(tuple);
    const isUseless = (owner: SiteId) =>
      tuple.held
        ? this.#standing(owner) === "dead" || tuple.refusedBy.includes(owner)
        : tuple.unacked.includes(owner) && (this.isLost(owner) || this.#exchange.isFull(owner));
    const { owners, former, leaves, missing, isChanged } = mended(tuple, { site, f: f(), isUseless, choose });
    if (missing > 0) this.short.add(tuple.id);
    else this.short.delete(tuple.id);
    if (!isChanged) return;
    const change = () => {
      this.#ports.count("mended");
      this.#change(tuple, owners, former);
    };
    if (leaves.length === 0) change();
    else void this.#allowed(tuple, leaves, change);
  }

  /** Those that had no room for it may have some by now. */
  #offer(tuple: Tuple): void {
    for (const site of tuple.refusedBy) {
      if (this.#exchange.isFull(site)) continue;
      tuple.refuses(site, false);
      if (tuple.held && tuple.unacked.includes(site)) this.payloads.want(tuple.id, site);
    }
  }

  /** O2 */
  #isSettled(tuple: Tuple): boolean {
    return this.#others(tuple).every((site) => this.#exchange.isSettled(site));
  }

  #act(tuple: Tuple): void {
    const isMine = tuple.responsible === this.#ports.site && !tuple.gone;
    if (!isMine || tuple.acting || !tuple.held || !this.#ports.shelf.isWritten(tuple.id)) return;
    if (!this.#isSettled(tuple)) return;
    tuple.acting = true;
    this.#ports.mine(tuple);
  }

  // ── What time asks for ──

  /** f is another, or new here: own tuples may lack owners, and those of the disk wait to be acted on. */
  resized(): void {
    for (const tuple of this.tuples.values()) {
      if (tuple.responsible === this.#ports.site && !tuple.gone) this.#doubtful.add(tuple.id);
    }
    this.#ports.wake();
  }

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
      this.#considerLater(this.short);
    }
    for (const id of [...this.#remembered]) {
      const tuple = this.tuples.get(id);
      if (tuple === undefined || nowMs - tuple.goneMs < GONE_MS) break;
      this.#remember(tuple);
      this.#tell(tuple, false);
    }
  }

  /** It has nothing any more, and is told nothing. */
  #leaves(site: SiteId): void {
    this.#left.add(site);
    this.changed(site, "dead");
    for (const id of this.#exchange.shared(site)) {
      const tuple = this.tuples.get(id);
      if (tuple?.gone === true || tuple?.former.includes(site) === true) this.acked(tuple, site);
    }
  }
}
