/** What owners hear of a configuration (store/wards/source.ts). */
import { strict as assert } from "node:assert";
import { packKey } from "../../../store/model/key.ts";
import { decodeJson } from "../../../store/members/topology.ts";
import { type Configuration, wardsKey } from "../../../store/members/configuration.ts";
import { Scene } from "../../sim/scene.ts";

const OWNED = { parent: "root", linkMs: 5, owners: { f: 1, beatMs: 50, suspectMs: 250, deadMs: 1_200 } };

Deno.test("nobody hears of a configuration that a crash of its site would undo (wards/source.ts G2)", async () => {
  let onDisk = Infinity;
  const heard: { config: number; onDisk: number }[] = [];
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    e1: OWNED,
    e2: OWNED,
    e3: OWNED,
  }, {
    tap: (from, _to, message) => {
      if (from !== "e1" || message.kind !== "ward") return;
      heard.push({ config: message.config, onDisk });
    },
  });
  await scene.start();
  const { replica, storage } = scene.process("e1");
  const key = wardsKey(replica.status().replica), commit = storage.commit.bind(storage);
  storage.commit = async (given) => {
    await commit(given);
    const row = given.rows.find((each) => each.key === key);
    if (row !== undefined) onDisk = (decodeJson(row.value) as Configuration).number;
  };
  const session = await scene.attach("e1");
  // Commits follow one another all the while, and the owner is cut off again and again: another is chosen in one of them.
  const untilMs = scene.world.nowMs + 10_000;
  for (let i = 0; scene.world.nowMs < untilMs; i++) {
    const [owner = "root"] = replica.status().wards.owners;
    if (i % 600 === 0) scene.network.partition("e1", owner, scene.world.nowMs + 400);
    void session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
    await scene.pass(1);
  }
  const configs = new Set(heard.map(({ config }) => config));
  assert.ok(configs.size > 3, `the owner was replaced ${configs.size} times`);
  assert.deepEqual(heard.filter(({ config, onDisk }) => config > onDisk), []);
});
