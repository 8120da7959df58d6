/** A question that several dead sites on the way up leave open (store/wards/stand_in.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { Core } from "../../../store/core/core.ts";
import type { Key } from "../../../store/model/key.ts";
import { type Carry, decodeMessage } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { encodeJson, replicaKey } from "../../../store/members/topology.ts";
import { wardsKey } from "../../../store/members/configuration.ts";
import { Keeper } from "../../../store/wards/keeper.ts";
import type { Newest, StandIn, StoodIn } from "../../../store/wire/ward_message.ts";
import { type AskLiving, StandIns } from "../../../store/wards/stand_in.ts";
import { START_MS, World } from "../../sim/world.ts";

const ROOT = 1, CORE = 2, EDGE = 3, HERE = 4;
const TRIP_MS = 10;

const token: TokenState = {
  session: new Uint8Array(16),
  sequence: 1,
  replica: EDGE,
  clock: 5,
  path: [null, null, 7],
  open: false,
};

/** Site d below the root; the session comes from e, below c. What owners and c say is the test's. */
class Arrival {
  readonly world = new World();
  readonly asked: string[] = [];
  /** The newest configuration of the source that the root has. */
  newest = 2;
  readonly #core: Core;
  readonly #standIns: StandIns;

  constructor(owners: Readonly<Record<SiteId, (ask: StandIn, nth: number) => Partial<StoodIn>>>) {
    const { world } = this;
    this.#core = new Core(
      { site: "d", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
      {
        clock: {
          nowMs: () => START_MS + world.nowMs,
          steadyMs: () => START_MS + world.nowMs,
          after: (ms, callback) => world.after(ms, callback),
          turn: () => world.sleep(0),
        },
        random: { bytes: (length) => new Uint8Array(length) },
        storage: new MemoryStorage(),
        network: {
          send: (to, bytes) => {
            const ask = decodeMessage(bytes);
            if (ask.kind === "standIn") this.#answer(to, ask, owners[to]?.(ask, this.#count(to)));
            if (ask.kind === "newest") this.#tell(to, { ...ask, isAnswer: true, config: this.newest });
            return Promise.resolve();
          },
        },
        fatal: (error) => {
          throw error;
        },
        note: () => {},
      },
    );
    const core = this.#core;
    core.replica = HERE;
    core.setPath(["root"]);
    const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
    write(replicaKey(ROOT), { site: "root", path: ["root"], parent: 0, from: 0 });
    write(replicaKey(CORE), { site: "c", path: ["root", "c"], parent: ROOT, from: 0 });
    write(replicaKey(EDGE), { site: "e", path: ["root", "c", "e"], parent: CORE, from: 0 });
    write(replicaKey(HERE), { site: "d", path: ["root", "d"], parent: ROOT, from: 0 });
    write(wardsKey(EDGE), { number: 2, owners: ["o-e"], previous: ["o-before"] });
    if ("o-c" in owners) write(wardsKey(CORE), { number: 1, owners: ["o-c"], previous: [] });
    this.#standIns = new StandIns(core, new Keeper(core, () => Promise.resolve()));
  }

  #count(to: SiteId): number {
    this.asked.push(to);
    return this.asked.filter((site) => site === to).length;
  }

  #answer(owner: SiteId, { id }: StandIn, said: Partial<StoodIn> | undefined): void {
    if (said === undefined) return;
    const answer = { kind: "stoodIn", id, outcome: "rows", config: 2, clock: 5, rows: [] } as const;
    this.#tell(owner, { ...answer, position: 0, down: [], ...said });
  }

  #tell(from: SiteId, answer: StoodIn | Newest): void {
    this.world.after(TRIP_MS, () => this.#standIns.answered(from, answer));
  }

  async carry(askLiving: AskLiving, open = false): Promise<{ carry: Carry | null; ms: number }> {
    const around = { depth: 0, trace: "", refused: Promise.resolve(), isOver: () => false };
    const fromMs = this.world.nowMs;
    const carried: (Carry | null)[] = [];
    this.#standIns.carry({ ...token, open }, around, askLiving).then((carry) => carried.push(carry));
    await this.world.run(fromMs + 10_000, () => carried.length > 0);
    return { carry: carried[0] ?? null, ms: this.world.nowMs - fromMs };
  }
}

const fromSource = { position: 9, down: [3, 4] };
const silent: AskLiving = () => new Promise(() => {});

Deno.test("an owner that has answered is not asked again while the next one up lags behind (T4)", async () => {
  const arrival = new Arrival({
    "o-e": () => fromSource,
    "o-c": (ask, nth) => {
      assert.equal(ask.position, 4, "what the site below had got of its journal");
      return nth < 3 ? { outcome: "behind" } : { position: 4, down: [8] };
    },
  });
  const { carry } = await arrival.carry(silent);
  assert.deepEqual([carry?.outcome, carry?.need], ["rows", 8]);
  assert.deepEqual(arrival.asked, ["o-e", "o-c", "o-c", "o-c"]);
});

Deno.test("a site on the way that answers late is asked once, and heard when it answers", async () => {
  const arrival = new Arrival({ "o-e": () => fromSource });
  let asked = 0;
  const { carry, ms } = await arrival.carry((to, ask) => {
    asked++;
    assert.deepEqual([to, ask.need], ["c", 3]);
    const said: Carry = { kind: "carry", id: 0, outcome: "rows", need: 11, clock: 6, rows: [] };
    return new Promise((resolve) => arrival.world.after(730, () => resolve(said)));
  });
  assert.deepEqual([carry?.need, asked, arrival.asked], [11, 1, ["o-e"]]);
  assert.equal(ms, TRIP_MS + 730);
});

Deno.test("a site on the way that refuses is asked again, and nobody is waited for beyond the limit", async () => {
  const arrival = new Arrival({ "o-e": () => fromSource });
  let asked = 0;
  const refusal: Carry = { kind: "carry", id: 0, outcome: "refused", need: 0, clock: 6, rows: [] };
  const { carry, ms } = await arrival.carry(() => {
    asked++;
    return new Promise((resolve) => arrival.world.after(TRIP_MS, () => resolve(refusal)));
  });
  assert.equal(carry, null);
  assert.ok(asked > 5 && asked < 25, `${asked} times`);
  assert.ok(ms >= 2_000 && ms < 2_300, `${ms} ms`);
});

/** What becomes of an open token, by what its owners and the root say; `need` tells whose rows were taken. */
async function open(owner: Partial<StoodIn>, before: Partial<StoodIn>, newest = 2): Promise<number | null> {
  const arrival = new Arrival({
    "o-e": () => ({ position: 9, down: [100, 4], ...owner }),
    "o-before": () => ({ position: 8, down: [200, 4], ...before }),
    "o-c": () => ({ position: 4, down: [1] }),
  });
  arrival.newest = newest;
  return (await arrival.carry(silent, true)).carry?.need ?? null;
}

Deno.test("an open token is answered by an owner of the newest configuration, once that is known to be in effect", async () => {
  assert.equal(await open({ config: 2 }, { config: 1 }), 100);
  assert.equal(await open({ config: 2 }, { outcome: "behind" }), 100);
});

Deno.test("of a configuration that was never told under, an open token is answered by the owners before (T3)", async () => {
  assert.equal(await open({ config: 1 }, { config: 1 }), 200);
  assert.equal(await open({ config: 0, outcome: "behind" }, { config: 1 }), 200);
});

Deno.test("an open token is answered by nobody who may know too little (T2)", async () => {
  assert.equal(await open({ config: 2 }, { config: 1 }, 3), null, "the root has another configuration");
  assert.equal(await open({ config: 2, outcome: "behind" }, { config: 1 }), null, "it was told under");
  assert.equal(await open({ config: 1 }, { config: 1, outcome: "behind" }), null);
  const arrival = new Arrival({ "o-before": () => fromSource, "o-c": () => fromSource });
  assert.equal((await arrival.carry(silent, true)).carry, null, "none of the newest answers");
});
