/**
 * The contract of owners groups (store/owners/tuples.ts), as one suite over every storage that they may lie on: a few
 * sites in this process, links that deliver at once, and standings that the test decides.
 */
import { strict as assert } from "node:assert";
import { setImmediate } from "node:timers";
import { SystemClock } from "../../runtime/site/system_ports.ts";
import { TUPLE_BYTES_MAX, TUPLE_ID_BYTES_MAX, TUPLES_WAITING_BYTES_MAX } from "../../store/model/limits.ts";
import { chooseOwners, OwnersError } from "../../store/presence/choose.ts";
import type { Standing, StandingChanged } from "../../store/presence/detector.ts";
import { decodeTuplePacket } from "../../store/owners/packet.ts";
import { type NewTuple, TupleRefused, Tuples } from "../../store/owners/tuples.ts";
import type { Storage } from "../../store/model/ports.ts";
import type { StorageSubject } from "./storage_contract.ts";

type Opened = Awaited<ReturnType<StorageSubject["open"]>>;

/** Sites of one test. */
class Group {
  readonly #subject: StorageSubject;
  readonly sites = new Map<string, Site>();
  readonly packets: {
    readonly from: string;
    readonly to: string;
    readonly entries: number;
    bytes: number;
  }[] = [];
  boots = 1;
  f: number;
  /** By site: how many tuples there is room for. */
  readonly room = new Map<string, number>();
  /** Sites whose disks fail from now on. */
  readonly broken = new Set<string>();
  readonly fatal: string[] = [];
  /** By site: until when it said that it is away. */
  readonly away = new Map<string, number>();
  /** The wall clock of all. */
  wallMs = Date.now();

  constructor(subject: StorageSubject, f: number) {
    this.#subject = subject;
    this.f = f;
  }

  async add(...ids: string[]): Promise<void> {
    for (const id of ids) {
      const site = new Site(this, id, await this.#subject.open());
      this.sites.set(id, site);
      await site.start();
    }
  }

  site(id: string): Site {
    const site = this.sites.get(id);
    if (site === undefined) throw new Error(`there is no ${id}`);
    return site;
  }

  /** All others take a site for that. */
  stand(id: string, standing: Standing): void {
    for (const site of this.sites.values()) if (site.id !== id) site.stand(id, standing);
  }

  async blank(id: string): Promise<void> {
    const site = this.site(id);
    await site.disk.discard();
    site.disk = await this.#subject.open();
  }

  async end(): Promise<void> {
    for (const site of this.sites.values()) {
      site.stop();
      await site.disk.discard();
    }
  }
}

class Site {
  readonly #group: Group;
  readonly id: string;
  disk: Opened;
  tuples: Tuples | null = null;
  /** By tuple: how it became this site's. */
  readonly mine = new Map<string, string>();
  /** And with which note. */
  readonly notes = new Map<string, string>();
  /** Whom it has not heard for a while, though not for so long that they are suspected. */
  readonly untouched = new Set<string>();
  readonly #standings = new Map<string, Standing>();
  readonly #listeners = new Set<StandingChanged>();

  constructor(group: Group, id: string, disk: Opened) {
    this.#group = group;
    this.id = id;
    this.disk = disk;
  }

  get running(): Tuples {
    if (this.tuples === null) throw new Error(`${this.id} does not run`);
    return this.tuples;
  }

  async start(): Promise<void> {
    const { id } = this;
    const group = this.#group;
    const clock = new SystemClock();
    this.tuples = await Tuples.open({
      site: id,
      boot: group.boots++,
      clock,
      nowMs: () => performance.now(),
      wallMs: () => group.wallMs,
      storage: this.#storage(),
      ...(group.room.has(id) ? { tuplesMax: group.room.get(id) ?? 0 } : {}),
      send: (to, packet) => {
        group.packets.push({
          from: id,
          to,
          entries: decodeTuplePacket(packet).entries.length,
          bytes: packet.length,
        });
        setImmediate(() => {
          const site = group.sites.get(to);
          if (this.tuples !== null && site !== undefined) site.tuples?.received(id, packet);
        });
        return Promise.resolve();
      },
      fellows: {
        choose: (f, kept, without) => {
          const candidates = [...group.sites.keys()].filter((other) => other !== id).map((other) => ({
            id: other,
            area: null,
            rttMs: 20,
            isAlive: this.standing(other) === "alive" && !without(other),
          }));
          if (f > candidates.length) throw new OwnersError("owners_too_many", "too few");
          const keptSites = kept.map((other) => ({ id: other, area: null }));
          return chooseOwners({ id, area: null }, { f, nearMs: 10 }, candidates, keptSites);
        },
        isKnown: (other) => group.sites.has(other),
        isStranger: () => false,
        standing: (other) => this.standing(other),
        awaitedUntilMs: (other) => {
          const untilMs = group.away.get(other) ?? 0;
          return untilMs > group.wallMs ? untilMs : null;
        },
        isInTouch: (other) => !this.untouched.has(other),
        suspectMs: () => 2_000,
        watch: () => () => {},
        measured: () => {},
        onChange: (changed) => {
          this.#listeners.add(changed);
          return () => this.#listeners.delete(changed);
        },
      },
      refused: () => {},
      fatal: () => void group.fatal.push(id),
    }, {
      mine: ({ id: tuple, how, note }) => {
        this.mine.set(tuple, how);
        this.notes.set(tuple, note);
      },
      lost: (_, tuple) => void this.mine.delete(tuple),
    });
  }

  #storage(): Storage {
    const { storage } = this.disk;
    return {
      load: () => storage.load(),
      get: (key) => storage.get(key),
      getMany: (keys, bytesMax) => storage.getMany(keys, bytesMax),
      scan: (range, options) => storage.scan(range, options),
      journal: (after, upTo, limit, bytesMax) => storage.journal(after, upTo, limit, bytesMax),
      bytes: () => storage.bytes(),
      close: () => storage.close(),
      commit: (commit) =>
        this.#group.broken.has(this.id) ? Promise.reject(new Error("no space left")) : storage.commit(commit),
    };
  }

  standing(other: string): Standing {
    return this.#standings.get(other) ?? "alive";
  }

  stand(other: string, standing: Standing): void {
    const before = this.standing(other);
    this.#standings.set(other, standing);
    for (const changed of this.#listeners) changed(other, standing, before);
  }

  /** Power is cut: nothing is said, and nothing gathered is written. */
  stop(): void {
    const { tuples } = this;
    this.tuples = null;
    this.mine.clear();
    void tuples?.close().catch(() => {});
  }

  store(payload: Uint8Array, more: Partial<NewTuple> = {}): Promise<string> {
    return this.running.store({ payload, topic: "mail", f: this.#group.f, ...more });
  }

  /** Stops as planned. */
  async leave(awayUntilMs?: number): Promise<void> {
    const { tuples } = this;
    this.tuples = null;
    this.mine.clear();
    await tuples?.close(awayUntilMs);
  }

  async restart(): Promise<void> {
    await this.leave();
    if (this.disk.reopen !== undefined) {
      this.disk = { ...this.disk, storage: await this.disk.reopen(this.disk.storage) };
    }
    await this.start();
  }

  /** What it has of its tuples: id and owners, or that it is gone. */
  holds(): string[] {
    return this.running.debugEntries().map(({ id, owners, mark }) =>
      `${id}: ${mark === null ? "gone" : owners.join()}`
    );
  }
}

const WAIT_MS_MAX = 60_000;
const bytes = (text: string) => new TextEncoder().encode(text);

async function eventually(what: string, done: () => boolean): Promise<void> {
  const untilMs = performance.now() + WAIT_MS_MAX;
  while (!done()) {
    if (performance.now() > untilMs) throw new Error(`never: ${what}`);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Declares the suite for one storage. */
export function ownersContract(subject: StorageSubject): void {
  const test = (name: string, f: number, sites: string[], body: (group: Group) => Promise<void>) =>
    Deno.test(`owners: ${subject.name}: ${name}`, async () => {
      const group = new Group(subject, f);
      await group.add(...sites);
      try {
        await body(group);
      } finally {
        await group.end();
      }
    });

  test("a tuple is at f + 1 sites when it is stored, and at none when it was removed", 2, [
    "a",
    "b",
    "c",
    "d",
  ], async (group) => {
    const a = group.site("a");
    const id = await a.store(bytes("hello"));
    for (const site of ["a", "b", "c"]) assert.deepEqual(group.site(site).holds(), [`${id}: a,b,c`]);
    assert.deepEqual(group.site("d").holds(), []);
    await eventually("it is a's", () => a.mine.get(id) === "stored");
    assert.deepEqual(await group.site("c").running.read(id), bytes("hello"));
    await a.running.remove(id);
    for (const site of ["a", "b", "c"]) {
      await eventually(`it is gone at ${site}`, () => group.site(site).holds().length === 0);
    }
  });

  test("tuples that arrive together go in one packet to each owner", 1, ["a", "b"], async (group) => {
    const a = group.site("a"), b = group.site("b");
    const [first, second] = [await a.store(bytes("first")), await b.store(bytes("second"))];
    // They have greeted each other by then.
    await eventually("both act", () => group.site("a").mine.has(first) && b.mine.has(second));
    group.packets.length = 0;
    await Promise.all(Array.from({ length: 50 }, (_, i) => a.store(bytes(`tuple ${i}`))));
    const full = group.packets.filter(({ from, entries }) => from === "a" && entries > 0);
    assert.deepEqual(full.map(({ to, entries }) => [to, entries]), [["b", 50]]);
  });

  test("the bytes of a tuple follow f, and not the number of sites", 1, ["a", "b"], async (group) => {
    const a = group.site("a");
    const cost = async () => {
      group.packets.length = 0;
      const ids = await Promise.all(Array.from({ length: 50 }, () => a.store(new Uint8Array(200))));
      await eventually("they are a's", () => ids.every((id) => group.site("a").mine.has(id)));
      await Promise.all(ids.map((id) => a.running.remove(id)));
      await eventually(
        "all is gone",
        () => [...group.sites.values()].every((site) => site.holds().length === 0),
      );
      return group.packets.reduce((sum, packet) => sum + packet.bytes, 0) / ids.length;
    };
    // They greet each other at first, and a machine that stands still has packets sent again.
    const least = async () => Math.min(await cost(), await cost(), await cost());
    const two = await least();
    await group.add("c", "d", "e", "f");
    const six = await least();
    group.f = 2;
    const more = await least();
    assert.ok(two > 200 && two < 400, `${two} bytes a tuple of 200`);
    assert.ok(six < 1.2 * two, `${two} bytes a tuple among two sites, ${six} among six`);
    assert.ok(more > 1.6 * two && more < 2.4 * two, `${two} bytes with f = 1, ${more} with f = 2`);
  });

  test("a restarted site has what it had, and acts on its own", 1, ["a", "b"], async (group) => {
    const id = await group.site("a").store(bytes("kept"));
    await group.site("a").restart();
    await eventually("it is a's again", () => group.site("a").mine.get(id) === "loaded");
    assert.deepEqual(await group.site("a").running.read(id), bytes("kept"));
    await group.site("b").restart();
    await group.site("a").running.remove(id);
    await eventually("it is gone", () => group.site("b").holds().length === 0);
  });

  test(
    "the next owner adopts, and the site that returns learns it before it acts",
    1,
    ["a", "b", "c"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const id = await a.store(bytes("adopted"));
      await eventually("it is a's", () => a.mine.has(id));
      a.stop();
      group.stand("a", "suspected");
      await eventually("it is b's", () => b.mine.get(id) === "adopted");
      await b.running.remove(id);
      await a.restart();
      group.stand("a", "alive");
      await eventually("a has heard it", () => a.holds().length === 0);
      assert.equal(a.mine.size, 0);
      await eventually("b has nothing to tell any more", () => b.holds().length === 0);
    },
  );

  test("for an owner that is dead another one comes in", 1, ["a", "b", "c"], async (group) => {
    const a = group.site("a");
    const id = await a.store(bytes("mended"));
    group.site("b").stop();
    group.stand("b", "dead");
    await eventually("c has it", () => group.site("c").holds().includes(`${id}: a,c`));
    assert.deepEqual(await group.site("c").running.read(id), bytes("mended"));
    await group.site("b").restart();
    group.stand("b", "alive");
    await eventually("b has let it go", () => group.site("b").holds().length === 0);
  });

  test("where the one that comes in has no room, the next one does", 1, ["a", "b"], async (group) => {
    group.room.set("c", 0);
    await group.add("c", "d");
    const a = group.site("a");
    const id = await a.store(bytes("mended"));
    group.site("b").stop();
    group.stand("b", "dead");
    await eventually("d has it", () => group.site("d").holds().includes(`${id}: a,d`));
    assert.deepEqual(await group.site("d").running.read(id), bytes("mended"));
    assert.equal(a.running.status().short, 0);
  });

  test("a site that lost its disk gets back what it held, and what it was responsible for is adopted", 1, [
    "a",
    "b",
  ], async (group) => {
    const [a, b] = [group.site("a"), group.site("b")];
    const [one, two] = [await a.store(bytes("of a")), await b.store(bytes("of b"))];
    b.stop();
    await group.blank("b");
    await b.start();
    await eventually("b has a's", () => b.holds().includes(`${one}: a,b`));
    await eventually("b's is a's now", () => a.mine.get(two) === "adopted");
    await eventually("and b has it again", () => b.holds().includes(`${two}: a,b`));
  });

  test("each tuple has as many owners as it wants", 1, ["a", "b", "c", "d"], async (group) => {
    const a = group.site("a");
    const [one, two, none] = [
      await a.store(bytes("1")),
      await a.store(bytes("2"), { f: 2 }),
      await a.store(bytes("0"), { f: 0 }),
    ];
    assert.deepEqual(a.holds().sort(), [`${one}: a,b`, `${two}: a,b,c`, `${none}: a`].sort());
    group.site("b").stop();
    group.stand("b", "dead");
    await eventually("both have another owner", () => {
      const held = a.holds();
      return held.includes(`${one}: a,c`) && held.includes(`${two}: a,c,d`);
    });
  });

  test("a mark is another version: whoever acts next has it", 1, ["a", "b"], async (group) => {
    const [a, b] = [group.site("a"), group.site("b")];
    const id = await a.store(bytes("marked"), { dueMs: 5, note: "new" });
    await eventually("it is a's", () => a.notes.get(id) === "new");
    const before = group.packets.reduce((sum, packet) => sum + packet.bytes, 0);
    await a.running.amend(id, { dueMs: 7, note: "tried" });
    await eventually("b has it", () => b.running.view(id)?.note === "tried");
    const after = group.packets.reduce((sum, packet) => sum + packet.bytes, 0);
    assert.ok(after - before < 400, `${after - before} bytes: the payload is not sent again`);
    await a.restart();
    await eventually("it is a's again", () => a.mine.get(id) === "loaded");
    assert.equal(a.notes.get(id), "tried");
    a.stop();
    group.stand("a", "suspected");
    await eventually("it is b's", () => b.mine.get(id) === "adopted");
    assert.deepEqual([b.notes.get(id), b.running.view(id)?.dueMs], ["tried", 7]);
    assert.deepEqual(await b.running.read(id), bytes("marked"));
  });

  test(
    "an id is stored once for its time, at each of its owners, across restarts",
    1,
    ["a", "b"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const again = { id: "order-7", rememberUntilMs: group.wallMs + 60_000 };
      await a.store(bytes("once"), again);
      await eventually("it is a's", () => a.mine.has("order-7"));
      assert.equal(await b.store(bytes("once"), again), "order-7");
      await a.running.remove("order-7");
      await eventually(
        "b knows",
        () => b.running.status().remembered === 1 && a.running.status().remembered === 1,
      );
      await a.restart();
      await b.restart();
      for (const site of [a, b]) assert.equal(await site.store(bytes("once"), again), "order-7");
      assert.deepEqual([a.mine.size, b.mine.size], [0, 0]);
      group.wallMs += 61_000;
      await eventually("it is forgotten", () => a.holds().length + b.holds().length === 0);
      await b.store(bytes("twice"), again);
      await eventually("it is b's", () => b.mine.has("order-7"));
    },
  );

  test(
    "a site that is away as it said is waited for, and comes back to what it had",
    1,
    ["a", "b", "c"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const id = await a.store(bytes("awaited"));
      await eventually("it is a's", () => a.mine.has(id));
      group.away.set("a", group.wallMs + 30_000);
      await a.leave(group.wallMs + 30_000);
      group.stand("a", "suspected");
      await b.store(bytes("of b"));
      assert.equal(b.mine.has(id), false);
      await a.start();
      group.stand("a", "alive");
      await eventually("it is a's again", () => a.mine.has(id));
      assert.equal(b.mine.has(id), false);
    },
  );

  test(
    "a site that has said that it stops adopts nothing more, and who lives does (O8)",
    2,
    ["a", "b", "c"],
    async (group) => {
      const [a, b, c] = [group.site("a"), group.site("b"), group.site("c")];
      const id = await a.store(bytes("left"));
      await eventually("it is a's", () => a.mine.has(id));
      await b.store(bytes("of b"));
      c.running.leaves();
      group.away.set("c", group.wallMs + 30_000);
      group.stand("c", "suspected");
      // It takes both for dead, and one of them is.
      a.stop();
      for (const site of ["a", "b"]) c.stand(site, "suspected");
      await c.store(bytes("of c"), { f: 0 });
      assert.equal(c.mine.has(id), false);
      await c.leave(group.wallMs + 30_000);
      b.stand("a", "suspected");
      await eventually("it is b's", () => b.mine.get(id) === "adopted");
      await c.start();
      for (const site of ["a", "b"]) c.stand(site, site === "a" ? "suspected" : "alive");
      group.stand("c", "alive");
      await eventually("c knows", () => c.holds().includes(`${id}: b,a,c`));
      assert.equal(c.mine.has(id), false);
    },
  );

  test(
    "what a site may have adopted while it was silent waits for it where it says that it stops (O8)",
    2,
    ["a", "b", "c"],
    async (group) => {
      const [a, b, c] = [group.site("a"), group.site("b"), group.site("c")];
      const id = await a.store(bytes("cut off"));
      await eventually("it is a's", () => a.mine.has(id));
      await b.store(bytes("of b"));
      await c.store(bytes("of c"));
      a.stop();
      b.stand("c", "suspected");
      for (const site of ["a", "b"]) c.stand(site, "suspected");
      await eventually("it is c's", () => c.mine.get(id) === "adopted");
      group.away.set("c", group.wallMs + 30_000);
      await c.leave(group.wallMs + 30_000);
      b.stand("a", "suspected");
      await b.store(bytes("of b"), { f: 0 });
      assert.equal(b.mine.has(id), false);
      await c.start();
      group.stand("c", "alive");
      c.stand("b", "alive");
      await eventually("it is c's again", () => c.mine.has(id));
      assert.equal(b.mine.has(id), false);
    },
  );

  test(
    "so it does where the two have lost each other just before that, and only one has noticed it (O8)",
    2,
    ["a", "b", "c"],
    async (group) => {
      const [a, b, c] = [group.site("a"), group.site("b"), group.site("c")];
      const id = await a.store(bytes("cut off"));
      await eventually("it is a's", () => a.mine.has(id));
      await b.store(bytes("of b"));
      await c.store(bytes("of c"));
      a.stop();
      for (const site of ["a", "b"]) c.stand(site, "suspected");
      await eventually("it is c's", () => c.mine.get(id) === "adopted");
      b.untouched.add("c");
      group.away.set("c", group.wallMs + 30_000);
      group.stand("c", "suspected");
      await c.leave(group.wallMs + 30_000);
      b.stand("a", "suspected");
      await b.store(bytes("of b"), { f: 0 });
      assert.equal(b.mine.has(id), false);
      group.wallMs += 31_000;
      b.stand("c", "dead");
      await eventually("it is b's, as c is not back", () => b.mine.get(id) === "adopted");
    },
  );

  test(
    "one that comes back later acts on nothing before the others have told (O8)",
    1,
    ["a", "b"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const id = await a.store(bytes("adopted"));
      await eventually("it is a's", () => a.mine.has(id));
      group.away.set("a", group.wallMs + 30_000);
      await a.leave(group.wallMs + 30_000);
      group.wallMs += 31_000;
      group.stand("a", "dead");
      await eventually("it is b's", () => b.mine.get(id) === "adopted");
      const running = b.tuples;
      b.tuples = null;
      a.stand("b", "suspected");
      for (const awayUntilMs of [undefined, group.wallMs + 60_000]) {
        await a.start();
        const other = await a.store(bytes("new"), { f: 0 });
        await eventually("it acts on what is new", () => a.mine.has(other));
        assert.deepEqual([a.mine.has(id), a.running.status().unheard], [false, ["b"]]);
        await a.running.remove(other);
        await a.leave(awayUntilMs); // and stops again, perhaps with another time of return
      }
      await a.start();
      b.tuples = running;
      group.stand("a", "alive");
      a.stand("b", "alive");
      await eventually("it has heard", () => a.running.status().unheard.length === 0);
      assert.equal(a.mine.has(id), false);
      assert.ok(b.mine.has(id));
    },
  );

  test(
    "what a site that stops may have adopted is not acted on by who comes back and had not heard it (O8)",
    1,
    ["a", "b", "c"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const id = await a.store(bytes("adopted, and done"));
      await eventually("it is a's", () => a.mine.has(id));
      a.stop();
      group.stand("a", "suspected");
      await eventually("it is b's", () => b.mine.get(id) === "adopted");
      group.away.set("b", group.wallMs + 30_000);
      group.stand("b", "suspected");
      await b.leave(group.wallMs + 30_000);
      await a.start();
      group.stand("a", "alive");
      const other = await a.store(bytes("new"));
      await eventually("it acts on what is new", () => a.mine.has(other));
      assert.equal(a.mine.has(id), false, "b acts on it, or has done so");
      await b.start();
      b.stand("a", "alive");
      group.stand("b", "alive");
      await eventually("it is b's again", () => b.mine.has(id));
      assert.equal(a.mine.has(id), false);
    },
  );

  test(
    "who had heard all of a site before it stopped goes on at once after a crash, and after its own stop (O8)",
    1,
    ["a", "b"],
    async (group) => {
      const [a, b] = [group.site("a"), group.site("b")];
      const id = await a.store(bytes("of a"));
      await eventually("it is a's", () => a.mine.has(id));
      group.away.set("b", group.wallMs + 600_000);
      group.stand("b", "suspected");
      await b.leave(group.wallMs + 600_000);
      await a.store(bytes("new"), { f: 0 });
      a.stop();
      await a.start();
      await eventually("it is a's after a crash", () => a.mine.has(id));
      // What an earlier process knew of that stop is not known of the next one.
      group.away.set("b", group.wallMs + 900_000);
      await a.leave(group.wallMs + 30_000);
      await a.start();
      await eventually("it is a's after a stop", () => a.mine.has(id));
    },
  );

  test("an id that is there is not stored twice", 1, ["a", "b"], async (group) => {
    const a = group.site("a");
    const id = "order-7";
    await Promise.all([a.store(bytes("once"), { id }), a.store(bytes("once"), { id })]);
    await a.store(bytes("once"), { id });
    assert.deepEqual(group.site("b").holds(), ["order-7: a,b"]);
  });

  test(
    "a tuple beyond a limit, or without enough owners, is refused and leaves nothing",
    2,
    ["a", "b", "c"],
    async (group) => {
      const a = group.site("a");
      const refused = async (payload: Uint8Array, id?: string): Promise<string> => {
        try {
          await a.store(payload, id === undefined ? {} : { id });
        } catch (error) {
          if (error instanceof TupleRefused || error instanceof OwnersError) return error.code;
          throw error;
        }
        return "taken";
      };
      assert.equal(await refused(new Uint8Array(TUPLE_BYTES_MAX + 1)), "tuple_invalid");
      for (
        const id of ["", "x".repeat(TUPLE_ID_BYTES_MAX + 1), "é".repeat(TUPLE_ID_BYTES_MAX / 2 + 1), "\ud800"]
      ) {
        assert.equal(await refused(bytes("x"), id), "tuple_invalid", id);
      }
      group.site("a").stand("c", "suspected");
      assert.equal(await refused(bytes("x")), "owners_missing");
      group.f = 3;
      assert.equal(await refused(bytes("x")), "owners_too_many");
      for (const site of ["a", "b", "c"]) assert.deepEqual(group.site(site).holds(), []);
      group.f = 1;
      assert.equal(await refused(new Uint8Array(TUPLE_BYTES_MAX), "x".repeat(TUPLE_ID_BYTES_MAX)), "taken");
    },
  );

  test(
    "an owner without room is passed over, and a producer without any is refused",
    1,
    ["a"],
    async (group) => {
      group.room.set("b", 2).set("c", 3).set("d", 0);
      await group.add("b", "c", "d");
      const a = group.site("a");
      for (let i = 0; i < 5; i++) await a.store(bytes(`tuple ${i}`));
      const count = (site: string) => group.site(site).holds().length;
      assert.deepEqual(["a", "b", "c", "d"].map(count), [5, 2, 3, 0]);
      await assert.rejects(a.store(bytes("one too many")), { code: "owners_missing" });
      await assert.rejects(group.site("d").store(bytes("x")), { code: "tuples_full" });
    },
  );

  test(
    "an owner that has no room for one more keeps what it has, and counts as an owner of that (O1)",
    1,
    ["a"],
    async (group) => {
      group.room.set("b", 2);
      await group.add("b");
      const a = group.site("a");
      const first = await a.store(bytes("first"));
      await group.add("c");
      // They go to b in one packet, which has room for one of them: what it says is said of both.
      const both = await Promise.all([a.store(bytes("second")), a.store(bytes("third"))]);
      for (const id of both) {
        const holders = ["a", "b", "c"].filter((site) => group.site(site).running.view(id)?.gone === false);
        assert.ok(holders.length >= 2 && holders.includes("a"), `${id} is stored at ${holders}`);
      }
      const owned = (id: string) => a.running.view(id)?.owners.join();
      assert.deepEqual([owned(first), ...both.map(owned)], ["a,b", "a,c", "a,c"]);
      await eventually("b has let go what it had taken", () => group.site("b").holds().length === 1);
      assert.deepEqual(group.site("b").holds(), [`${first}: a,b`]);
      // And it adopts what it has.
      a.stop();
      group.stand("a", "suspected");
      await eventually("it is b's", () => group.site("b").mine.get(first) === "adopted");
      for (const id of both) await eventually("it is c's", () => group.site("c").mine.get(id) === "adopted");
    },
  );

  test("a site whose disk fails stores nothing any more, and says so", 1, ["a", "b"], async (group) => {
    const a = group.site("a");
    const id = await a.store(bytes("before"));
    group.broken.add("a");
    await assert.rejects(a.store(bytes("after")), { code: "disk_failed", message: /no space left/ });
    await assert.rejects(a.store(bytes("later")), /no space left/);
    await assert.rejects(a.running.remove(id), /no space left/);
    assert.deepEqual(group.fatal, ["a"]);
  });

  // Deno KV stores a megabyte in pieces, which takes it seconds and shows nothing of owners.
  if (subject.name === "denokv") return;
  test("an owner that lost megabytes gets them back a part at a time", 1, ["a", "b"], async (group) => {
    const [a, b] = [group.site("a"), group.site("b")];
    // More than may be in memory at once.
    const count = 70;
    for (let i = 0; i < count; i++) {
      await a.store(new Uint8Array(TUPLE_BYTES_MAX).fill(i), { id: `big-${i}` });
    }
    await eventually("all is out of memory", () => a.running.status().waitingBytes === 0);
    b.stop();
    await group.blank("b");
    let most = 0;
    await b.start();
    await eventually("b has them again", () => {
      most = Math.max(most, a.running.status().waitingBytes);
      return b.holds().length === count;
    });
    assert.ok(most > 0 && most < TUPLES_WAITING_BYTES_MAX * 0.6, `${most} bytes in memory`);
    assert.deepEqual(await b.running.read("big-69"), new Uint8Array(TUPLE_BYTES_MAX).fill(69));
  });
}
