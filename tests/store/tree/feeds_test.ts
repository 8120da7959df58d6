/** What a parent feeds its children of what it has committed (store/tree/downlinks.ts). */
import assert from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { holds, prefixRange } from "../../../store/model/range.ts";
import { decodeMessage } from "../../../store/wire/message.ts";
import { Tree } from "../owners/tree.ts";

const RANGE = prefixRange(packKey(["row"]));
const keyOf = (name: string) => packKey(["row", name]);

/** A root with two edges, and the rows that it feeds each. */
async function feeding() {
  const tree = new Tree(), fed: string[] = [];
  const send = tree.network.send.bind(tree.network);
  tree.network.send = (endpoint, from, to, bytes) => {
    const message = decodeMessage(bytes);
    if (from === "root" && message.kind === "feed") {
      for (const { key, value } of message.rows) if (holds(RANGE, key)) fed.push(`${to} ${value?.[0]}`);
    }
    return send(endpoint, from, to, bytes);
  };
  const [root, e1, e2] = [
    await tree.start("root", null),
    await tree.start("e1", null),
    await tree.start("e2", null),
  ];
  await tree.pass(2_000);
  const write = async (at: typeof root, name: string, value: number) => {
    await (await at.attach(null)).write([{ kind: "set", key: keyOf(name), value: Uint8Array.of(value) }]);
    await tree.pass(500);
  };
  const taken = () => fed.splice(0).toSorted();
  return { tree, root, e1, e2, write, taken };
}

Deno.test("a child is fed what it covers as it changes, each change once, and nothing of what it pushed itself (D1, D3)", async () => {
  const { tree, root, e1, e2, write, taken } = await feeding();
  await write(root, "a", 1);
  assert.deepEqual(taken(), [], "nobody covers it");
  for (const [at, names] of [[e1, ["a", "b"]], [e2, ["a"]]] as const) {
    const session = await at.attach(null);
    const read = session.get(names.map(keyOf));
    await tree.pass(500);
    await read;
  }
  taken();
  await write(root, "a", 2);
  assert.deepEqual(taken(), ["e1 2", "e2 2"]);
  await write(root, "b", 3);
  assert.deepEqual(taken(), ["e1 3"]);
  await write(root, "c", 4);
  await write(root, "a", 5);
  assert.deepEqual(taken(), ["e1 5", "e2 5"]);
  await write(e1, "a", 6);
  assert.deepEqual(taken(), ["e2 6"]);
  await write(e2, "a", 7);
  assert.deepEqual(taken(), ["e1 7"]);
  const [[row]] = await Promise.all([(await e1.attach(null)).get([keyOf("a")])]);
  assert.equal(row?.value?.[0], 7);
});
