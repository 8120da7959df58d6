/** Which logs are lost with a disk that is given up (functions/sessions/home/sole_logs.ts). */
import assert from "node:assert/strict";
import { soleLogs, type SoleLogsPorts } from "../../../../functions/sessions/home/sole_logs.ts";
import type { Owner, StatefulName } from "../../../../functions/sessions/log/api.ts";
import type { RowState } from "../../../../functions/sessions/log/asks.ts";
import { hostOwner } from "../../../../functions/sessions/log/host_owners.ts";
import { World } from "../../../sim/world.ts";
import { Cluster, commitOf, name } from "./cluster.ts";

const HERE: Owner = { site: "a", disk: 7 }, THERE: Owner = { site: "b", disk: 3 };
const rowOf = (owners: readonly Owner[], ended = false): RowState => ({
  ...{ site: "a", epoch: 3, config: 1, owners, version: "v", ended, movesTo: "" },
});

interface Made {
  /** Site that its disk knows as the home. */
  readonly by?: string;
  /** Owners where the session is at home here. */
  readonly own?: readonly Owner[];
  readonly row?: RowState | null;
  readonly b?: "gone" | "here" | "unsure";
}

/** What is counted of one log of site a, disk 7. */
async function countOf({ by = "a", own, row = null, b = "here" }: Made): Promise<number | null> {
  const world = new World();
  const ports: SoleLogsPorts = {
    ...{ site: "a", disk: 7, logs: () => [{ name: name("x"), head: { by } }] as never },
    owners: () => own ?? null,
    recorded: () => Promise.resolve(row),
    gone: () => b,
    after: (ms, run) => world.after(ms, run),
  };
  let count: number | null = null;
  soleLogs(ports).then((found) => count = found);
  await world.run(world.nowMs + 10_000);
  return count;
}

Deno.test("a log counts unless another owner lives, or hosts have it, or it is not this disk's any more (SL1)", async () => {
  const both = [HERE, THERE], host = hostOwner("h");
  const rows: readonly (readonly [string, Made, number])[] = [
    ["at home here, with another owner", { own: both }, 0],
    ["… which is lost", { own: both, b: "gone" }, 1],
    ["… and that is not known within a time", { own: both, b: "unsure" }, 1],
    ["at home here, without another", { own: [HERE] }, 1],
    ["… but with a host that has all of it", { own: [HERE, host] }, 0],
    ["a host need not have all that two disks have", { own: [...both, host], b: "gone" }, 1],
    ["not in memory here, with another owner on record", { row: rowOf(both) }, 0],
    ["… which is lost", { row: rowOf(both), b: "gone" }, 1],
    ["without another on record", { row: rowOf([HERE]) }, 1],
    ["nobody says", {}, 1],
    ["it has ended", { row: rowOf([], true) }, 0],
    ["another disk of this site has it", { row: rowOf([{ site: "a", disk: 8 }]) }, 0],
    ["its home lives", { by: "b" }, 0],
    ["its home is lost", { by: "b", b: "gone", row: rowOf(both) }, 1],
    ["its home is lost, and this is no owner", { by: "b", b: "gone", row: rowOf([THERE]) }, 0],
  ];
  for (const [says, made, expected] of rows) assert.equal(await countOf(made), expected, says);
});

Deno.test("an arbiter that answers slowly is not waited for with all logs (SL2)", async () => {
  const world = new World(),
    asked: StatefulName[] = [],
    ids = Array.from({ length: 1_000 }, (_, i) => `${i}`);
  let count = 0;
  soleLogs({
    ...{ site: "a", disk: 7, logs: () => ids.map((id) => ({ name: name(id), head: { by: "a" } })) as never },
    owners: () => null,
    recorded: async (one) => {
      asked.push(one);
      await world.sleep(900);
      return rowOf([HERE, THERE]);
    },
    gone: () => "here",
    after: (ms, run) => world.after(ms, run),
  }).then((found) => count = found);
  await world.run(world.nowMs + 2_500);
  assert.equal(count, ids.length - 2 * 64, "what was answered in time does not count");
  assert.equal(asked.length, 3 * 64);
});

for (const f of [0, 1]) {
  Deno.test(`a site that is to stop knows which of its logs nobody else has (f = ${f})`, async () => {
    const all = await Cluster.start(4, f);
    for (const id of ["open", "rests", "before"]) {
      const home = await all.home(1, id);
      await all.of(home.commit(commitOf("r")));
      if (id !== "open") await all.of(home.rest());
    }
    const born = (await all.of(all.homes(1).create({ app: "shop", class: "cart" }, "v1"))).start([]);
    await all.of(born.commit(commitOf("r")));
    assert.equal(await all.of(all.homes(1).sole()), f === 0 ? 4 : 0);
    all.site(1).crash(false);
    await all.of(all.site(1).start());
    await all.pass(1_000);
    assert.equal(await all.of(all.homes(1).sole()), f === 0 ? 4 : 0, "nothing is in memory");
    if (f === 0) return;
    const others = [2, 3].filter((at) => all.logs(at).length > 0);
    for (const at of others) all.site(at).crash(false);
    await all.pass(3_000);
    assert.equal(await all.of(all.homes(1).sole()), 4, "their other owners are away");
  });
}
