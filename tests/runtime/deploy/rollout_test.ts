/** Gradual rollout: which sessions get which version, and what other changes do to one that runs. */
import assert from "node:assert/strict";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { APP_VERSIONS_MAX } from "../../../runtime/deploy/records.ts";
import { parseWeight, shareOf, takesPart } from "../../../runtime/deploy/rollout.ts";
import { MemorySystem } from "./memory_system.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const session = (i: number) => {
  const id = new Uint8Array(16);
  new DataView(id.buffer).setUint32(0, i);
  return id;
};

async function setUp() {
  const system = new MemorySystem();
  let clockMs = 1000;
  const deployments = new Deployments({
    system,
    evaluate: () => Promise.resolve({ ok: true, manifest: {} }),
    nowMs: () => clockMs++,
  });
  const deploy = async (body: string, weight?: number) => {
    const more = weight === undefined ? {} : { weight };
    return await deployments.deploy({ bundle: bytes(body), app: "shop", ...more });
  };
  const version = async (body: string, weight?: number) => {
    const result = await deploy(body, weight);
    assert(result.ok, JSON.stringify(result));
    return result.version;
  };
  const table = await AppTable.open(system);
  const state = async () => {
    await table.refresh();
    const live = table.get("shop");
    const { rollout } = live ?? {};
    return [live?.current.version, rollout?.next.version, rollout?.weight];
  };
  return { system, deployments, deploy, version, table, state };
}

Deno.test("a session keeps the version that it has got while the weight grows, and shares follow weights (rollout.ts ROT1, ROT2)", () => {
  const next = "a".repeat(64);
  const sessions = Array.from({ length: 4000 }, (_, i) => session(i));
  let before = new Set<number>();
  for (const weight of [0, 0.5, 1, 10, 25, 50, 90, 100]) {
    const now = new Set(sessions.keys().filter((i) => takesPart(session(i), next, weight)));
    assert([...before].every((i) => now.has(i)), `nobody loses it at ${weight} %`);
    assert(Math.abs(now.size / 40 - weight) < 3, `${now.size / 40} % at ${weight} %`);
    before = now;
  }
  assert.equal(before.size, sessions.length);
  const other = sessions.filter((id) => takesPart(id, next, 50) !== takesPart(id, "b".repeat(64), 50));
  assert(other.length > 1000, "another rollout finds other sessions");
  // The same at every site and in every release: where sessions stand is not to change.
  assert.equal(shareOf(session(7), next).toFixed(9), "59.694099368");
});

Deno.test("a weight is a number with a percent sign or without", () => {
  const rows: [string, number | null][] = [
    ["10%", 10],
    ["0", 0],
    ["0.25%", 0.25],
    ["100%", 100],
    ["100.01%", null],
    ["101", null],
    ["-1", null],
    ["1e1", null],
    ["", null],
    ["%", null],
    ["0.123", null],
    ["ten", null],
  ];
  for (const [text, weight] of rows) assert.equal(parseWeight(text), weight, text);
});

Deno.test("a rollout begins, grows, and ends for all or for nobody", async () => {
  const { deployments, version, table, state } = await setUp();
  const one = await version("1");
  const two = await version("2", 0);
  assert.deepEqual(await state(), [one, two, 0]);
  assert((await deployments.rollout("shop", two.slice(0, 12), 10)).ok);
  assert.deepEqual(await state(), [one, two, 10]);
  const again = await deployments.rollout("shop", two, 10);
  assert(again.ok && !again.changed);
  assert((await deployments.endRollout("shop", "abort")).ok);
  assert.deepEqual(await state(), [one, undefined, undefined]);
  assert((await deployments.rollout("shop", two, 50)).ok);
  assert((await deployments.endRollout("shop", "finish")).ok);
  assert.deepEqual(await state(), [two, undefined, undefined]);
  table.close();
});

Deno.test("while a rollout runs, a deploy and a rollback end it, and no second one begins", async () => {
  const { deployments, deploy, version, table, state } = await setUp();
  const one = await version("1");
  const two = await version("2", 10);
  const refused = await deploy("3", 10);
  assert(!refused.ok && refused.code === "rollout_running", JSON.stringify(refused));
  assert(!(await deployments.rollout("shop", one, 10)).ok, "what serves already");
  await deployments.rollback("shop");
  assert.deepEqual(await state(), [one, undefined, undefined]);
  await deployments.rollout("shop", two, 10);
  const three = await version("3");
  assert.deepEqual(await state(), [three, undefined, undefined]);
  await deployments.rollout("shop", two, 10);
  await deployments.rollback("shop", one);
  assert.deepEqual(await state(), [one, undefined, undefined]);
  const none = await deployments.endRollout("shop", "finish");
  assert(!none.ok && none.code === "rollout_none");
  table.close();
});

Deno.test("a first version is not rolled out beside nothing, and an unknown one not at all", async () => {
  const { deployments, deploy, version, table } = await setUp();
  const first = await deploy("1", 10);
  assert(!first.ok && first.code === "version_unknown");
  assert(!(await deployments.rollout("shop", "abc", 10)).ok, "no app yet");
  await version("1");
  assert(!(await deployments.rollout("shop", "f".repeat(64), 10)).ok);
  assert(!(await deployments.rollout("shop", "", 10)).ok);
  table.close();
});

Deno.test("versions that serve stay when there are too many", async () => {
  const { version, table, state } = await setUp();
  const one = await version("1");
  const two = await version("2", 10);
  for (let i = 3; i < APP_VERSIONS_MAX + 5; i++) await version(`${i}`, undefined);
  assert.notEqual((await state())[0], one);
  const app = table.get("shop");
  assert.equal(app?.record.versions.length, APP_VERSIONS_MAX);
  assert(!app.record.versions.some((entry) => entry.version === one || entry.version === two));
  table.close();
});

Deno.test("a site that has followed shows the row, and keeps a version's object while it serves", async () => {
  const { deployments, version, table } = await setUp();
  await version("1");
  const two = await version("2", 10);
  await table.refresh();
  const next = table.get("shop")?.rollout?.next;
  const grown = await deployments.rollout("shop", two, 20);
  assert(grown.ok);
  assert(!table.shows("shop", "f".repeat(20)));
  await table.refresh();
  assert(table.shows("shop", grown.stamp));
  assert.equal(table.get("shop")?.rollout?.next, next);
  assert.equal(await table.version("shop", two), next);
  assert.equal(await table.version("shop", two.slice(0, 63)), undefined, "a version is named whole");
  table.close();
});
