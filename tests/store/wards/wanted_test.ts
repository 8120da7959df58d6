/** Whose ward lies where (store/wards/wanted.ts). */
import { strict as assert } from "node:assert";
import type { SiteReplica } from "../../../store/replica.ts";
import { packKey } from "../../../store/model/key.ts";
import { decodeMessage, encodeMessage } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { Tree } from "../owners/tree.ts";

const owners = (replica: SiteReplica) => replica.status().wards.owners;
const changes = (replica: SiteReplica) => replica.status().counters["ward_configurations"];

for (
  const [how, areas] of [["none of them in an area", [null, null, null]], ["in areas", [
    "x",
    "y",
    "z",
  ]]] as const
) {
  Deno.test(`the ward leaves a site above its own when there is another, ${how} (W4)`, async () => {
    const tree = new Tree();
    await tree.start("root", areas[0]);
    const e1 = await tree.start("e1", areas[1]);
    await tree.pass(2_000);
    assert.deepEqual(owners(e1), ["root"], "nobody else was there");
    await tree.start("e2", areas[2]);
    await tree.pass(3_000);
    assert.deepEqual(owners(e1), ["e2"]);
    const { world, network } = tree;
    network.partition("e1", "e2", world.nowMs + 3_000);
    await tree.pass(2_500);
    assert.deepEqual(owners(e1), ["root"], "better than one that is cut off");
    await tree.pass(8_000);
    assert.deepEqual(owners(e1), ["e2"]);
  });
}

Deno.test("the ward leaves the area of its site when another area has a site (W3)", async () => {
  const tree = new Tree();
  await tree.start("root", "x");
  const e1 = await tree.start("e1", "x");
  await tree.start("e2", "x");
  await tree.pass(3_000);
  const before = owners(e1);
  await tree.start("e3", "y");
  await tree.pass(3_000);
  assert.deepEqual([before, owners(e1)], [["e2"], ["e3"]]);
});

Deno.test("the ward leaves a site that is near when there is one far enough, and then stays (W1, W5)", async () => {
  const tree = new Tree((a, b) => a === "e3" || b === "e3" ? 40 : 5);
  await tree.start("root", null);
  const e1 = await tree.start("e1", null, 50);
  await tree.start("e2", null);
  await tree.pass(3_000);
  const before = owners(e1);
  await tree.start("e3", null);
  await tree.pass(3_000);
  assert.deepEqual([before, owners(e1)], [["e2"], ["e3"]]);
  const settled = changes(e1);
  await tree.pass(60_000);
  assert.equal(changes(e1), settled);
});

Deno.test("the ward stays where all others are near, or above (W2)", async () => {
  const tree = new Tree();
  await tree.start("root", null);
  const [e1] = [await tree.start("e1", null, 50), await tree.start("e2", null), await tree.start("e3", null)];
  await tree.pass(5_000);
  const [before, settled] = [owners(e1), changes(e1)];
  await tree.pass(60_000);
  assert.deepEqual([owners(e1), changes(e1)], [before, settled]);
});

/** These sites have no room for anybody's rows from now on. */
function fill(tree: Tree, full: ReadonlySet<SiteId>): void {
  const { network } = tree, send = network.send.bind(network);
  network.send = (process, from, to, bytes) => {
    const message = decodeMessage(bytes);
    const refuses = full.has(from) && message.kind === "warded";
    return send(process, from, to, refuses ? encodeMessage({ ...message, refused: "full" }) : bytes);
  };
}

async function write(replica: SiteReplica): Promise<string> {
  const session = await replica.attach(null);
  await session.write([{ kind: "set", key: packKey(["x"]), value: new Uint8Array(1) }]);
  return await session.durable().then(() => "durable", (error) => String(error.code));
}

Deno.test("the ward leaves an owner that has no room while another has, and stays with that one (W6, wards/source.ts G5)", async () => {
  const tree = new Tree();
  await tree.start("root", null);
  const [e1] = [await tree.start("e1", null), await tree.start("e2", null), await tree.start("e3", null)];
  await tree.pass(5_000);
  const [first] = owners(e1);
  assert.ok(first === "e2" || first === "e3");
  fill(tree, new Set([first]));
  const written = write(e1);
  await tree.pass(2_500);
  assert.equal(await written, "durable");
  assert.deepEqual(owners(e1), [first === "e2" ? "e3" : "e2"]);
  const settled = changes(e1);
  await tree.pass(150_000);
  assert.equal(changes(e1), settled);
});

Deno.test("the ward stays where it is while nobody has room, and answers wait and fail", async () => {
  const tree = new Tree();
  await tree.start("root", null);
  const [e1] = [await tree.start("e1", null), await tree.start("e2", null), await tree.start("e3", null)];
  await tree.pass(5_000);
  const before = owners(e1);
  fill(tree, new Set(["root", "e2", "e3"]));
  const written = write(e1);
  await tree.pass(5_000);
  assert.equal(await written, "owners_unreachable");
  assert.deepEqual(owners(e1), before);
});
