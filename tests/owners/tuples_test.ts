/** What a producer of tuples is told (store/owners/tuples.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { decodePacket, encodePacket, type Packet } from "../../store/owners/packet.ts";
import { Tuples, type TuplesPorts } from "../../store/owners/tuples.ts";
import type { Storage } from "../../store/ports.ts";
import { World } from "../sim/world.ts";

const BOOT = 1, OTHER_BOOT = 2;

/** A site whose one fellow answers when it is told to. */
class Site {
  readonly world = new World();
  readonly acted: string[] = [];
  answers = false;
  tuples: Tuples | null = null;

  async start(storage: Storage): Promise<Tuples> {
    const { world } = this;
    const ports: TuplesPorts = {
      site: "a",
      boot: BOOT,
      clock: {
        nowMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      nowMs: () => world.nowMs,
      storage,
      send: (_, bytes) => {
        if (this.answers) world.after(5, () => this.#answer(decodePacket(bytes)));
        return Promise.resolve();
      },
      fellows: {
        f: 1,
        choose: () => ({ owners: ["a", "b"], missing: 0 }),
        isKnown: () => true,
        standing: () => "alive",
        watch: () => () => {},
        measured: () => {},
        onChange: () => () => {},
      },
      fatal: (error) => {
        throw error;
      },
    };
    return this.tuples = await Tuples.open(ports, { mine: (id) => void this.acted.push(id), lost: () => {} });
  }

  /** It takes everything, and knows nothing that was not told. */
  #answer(packet: Packet): void {
    if (packet.seq === 0) return;
    this.tuples?.received(
      "b",
      encodePacket({
        boot: OTHER_BOOT,
        to: BOOT,
        seq: 0,
        greeting: 0,
        list: packet.greeting,
        isListEnd: packet.greeting !== 0,
        receipts: [{ seq: packet.seq, full: false }],
        missing: [],
        entries: [],
        forget: [],
      }),
    );
  }

  /** What becomes of a promise within a time. */
  async within<T>(ms: number, promise: Promise<T>): Promise<T | string> {
    let outcome: T | string = "nothing";
    promise.then((value) => outcome = value, (error) => outcome = String(error.code));
    await this.world.run(this.world.nowMs + ms);
    return outcome;
  }
}

const payload = new Uint8Array(10);

Deno.test("tuples: a producer that was refused and comes again with the same id is told the truth", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  assert.equal(await site.within(3_000, tuples.store(payload, "x")), "owners_missing");
  assert.equal(await site.within(3_000, tuples.store(payload, "x")), "owners_missing");
  site.answers = true;
  await site.world.run(site.world.nowMs + 10_000);
  assert.equal(await site.within(3_000, tuples.store(payload, "x")), "x");
  assert.deepEqual(site.acted, ["x"]);
});

Deno.test("tuples: and after a restart of the site too", async () => {
  const site = new Site(), storage = new MemoryStorage();
  const before = await site.start(storage);
  assert.equal(await site.within(3_000, before.store(payload, "x")), "owners_missing");
  const tuples = await site.start(storage);
  assert.equal(await site.within(100, tuples.store(payload, "x")), "owners_missing");
});

Deno.test("tuples: a producer that comes again with what was acted on already is told that it is stored", async () => {
  const site = new Site();
  const tuples = await site.start(new MemoryStorage());
  site.answers = true;
  assert.equal(await site.within(1_000, tuples.store(payload, "x")), "x");
  site.answers = false;
  await site.within(100, tuples.remove("x"));
  assert.equal(await site.within(100, tuples.store(payload, "x")), "x");
  assert.deepEqual(site.acted, ["x"]);
});
