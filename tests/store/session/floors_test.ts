/**
 * Why rows older than the horizon are carried no more (decision 15): the site that takes them has said that none of
 * that age would come to it. Seeds do not find it; here each step is put in its place.
 */
import { ok, rejects, strictEqual } from "node:assert/strict";
import type { OpenReplica, TokenState } from "../../../store/api/api.ts";
import { CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";
import { hooked } from "../../sim/broken/hooks.ts";
import { Scene } from "../../sim/scene.ts";

const HORIZON_MS = 300;
const TREE = {
  root: { parent: null, linkMs: 0 },
  e1: { parent: "root", linkMs: 1 },
  e2: { parent: "root", linkMs: 1 },
  e3: { parent: "root", linkMs: 1 },
} as const;

/** Writes a row at e1, which has no way up, and waits until it is older than the horizon. */
async function agedAtE1(open?: OpenReplica): Promise<{ scene: Scene; token: TokenState }> {
  const scene = new Scene(TREE, { horizonMs: HORIZON_MS, ...(open === undefined ? {} : { open }) });
  await scene.start();
  for (const site of ["e2", "e3"]) await scene.read(await scene.attach(site), 0);
  scene.network.partition("e1", "root", Infinity);
  const writer = await scene.attach("e1");
  await scene.write(writer, 0, 1);
  await scene.pass(3 * HORIZON_MS);
  return { scene, token: writer.token(false) };
}

Deno.test("a session is told to wait when what it wrote is older than the horizon and has no way up", async () => {
  const { scene, token } = await agedAtE1();
  await rejects(scene.attach("e2", token), { code: "source_unreachable" });
  scene.network.block("e1", "root", 0);
  const there = await scene.attach("e2", token);
  strictEqual(await scene.read(there, 0), 1);
});

Deno.test("a session waits for rows that are too old to be carried, and goes on when they arrive by themselves (handoff.ts H7)", async () => {
  const { scene, token } = await agedAtE1();
  const attached = scene.process("e2").replica.attach(token);
  await scene.pass(600);
  scene.network.block("e1", "root", 0);
  const session = await scene.done(Promise.resolve(attached));
  strictEqual(session.how, "wait");
  strictEqual(await scene.read(session, 0), 1);
});

/** Sites that carry rows of any age, and promise what others promise. */
const careless: OpenReplica = (config, ports) => {
  if (config.site === "root") return hooked(() => ({}))(config, ports);
  return hooked(() => ({
    sends: (_, message) => [
      // Nothing else is pending here: the scene sees to that.
      message.kind === "push"
        ? { ...message, floor: message.clock - HORIZON_MS * CLOCK_TICKS_PER_MS }
        : message,
    ],
  }))({ ...config, horizonMs: 1_000 * HORIZON_MS }, ports);
};

Deno.test("a write that a session was told of would be gone if rows of any age were carried", async () => {
  const { scene, token } = await agedAtE1(careless);
  const carried = await scene.attach("e2", token);
  strictEqual(await scene.read(carried, 0), 1);
  await scene.done(carried.durable());
  const told = carried.token(false);
  // It goes no further for now; its writer's disk is lost, so that nothing else holds the watermark back.
  scene.network.stall("e2", "root", scene.world.nowMs + 5 * HORIZON_MS);
  scene.site("e1").wipe();
  scene.network.block("e1", "root", 0);
  await scene.site("e1").start();
  await scene.pass(10 * HORIZON_MS);
  const counters = scene.process("root").replica.status().counters;
  ok((counters["refused_collected"] ?? 0) > 0, "it comes when all that old is taken for known");
  const after = await scene.attach("e3", told);
  strictEqual(await scene.read(after, 0), null);
});
