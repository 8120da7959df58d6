/** The chat example's messages over the in-memory store. */
import assert from "node:assert/strict";
import { type Env, follow, history, resources, say, WINDOW_ROWS } from "../../examples/chat/messages.ts";
import { buildEnv } from "../../functions/env.ts";
import { MemoryStore } from "./memory_store.ts";

function open() {
  const { tables: { messages } } = buildEnv(resources, { store: new MemoryStore(), vars: {} }) as Env;
  const put = (at: number, text: string) =>
    messages.put({ room: "lobby", at, id: crypto.randomUUID(), site: "edge-1", name: "Ann", text });
  const add = (text: string) =>
    say(messages, { room: "lobby", site: "edge-2", draft: { name: "Bob", text } });
  return { messages, put, add };
}

Deno.test("an answer stands below what it answers when that came from a clock ahead (M1)", async () => {
  const { messages, put, add } = open();
  await put(Date.now() + 60_000, "question");
  await add("answer");
  await add("and more");
  assert.deepEqual((await history(messages, "lobby")).map(({ text }) => text), [
    "question",
    "answer",
    "and more",
  ]);
});

Deno.test("a draft is refused with what is wrong with it", async () => {
  const { messages } = open();
  const cases: readonly (readonly [unknown, RegExp])[] = [
    [null, /a message is JSON/],
    [{ name: " ", text: "x" }, /say who you are/],
    [{ name: "Ann", text: "" }, /write something/],
    [{ name: "Ann", text: "x".repeat(2001) }, /2,000/],
  ];
  for (const [draft, problem] of cases) {
    const said = await say(messages, { room: "lobby", site: "edge-1", draft });
    assert(!said.ok);
    assert.match(said.problem, problem);
  }
  assert.deepEqual(await history(messages, "lobby"), []);
});

Deno.test("a follower gets the window, then each message once, late ones too (M2)", async () => {
  const { messages, put, add } = open();
  for (let at = 1; at <= WINDOW_ROWS + 5; at++) await put(at * 10, `old ${at}`);
  const gone = new AbortController();
  const got: string[] = [];
  let arrived = Promise.withResolvers<void>();
  const following = (async () => {
    for await (const fresh of follow(messages, "lobby", gone.signal)) {
      got.push(...fresh.map(({ text }) => text));
      arrived.resolve();
    }
  })();
  const next = async () => {
    await arrived.promise;
    arrived = Promise.withResolvers();
  };
  await next();
  assert.deepEqual(got, Array.from({ length: WINDOW_ROWS }, (_, i) => `old ${i + 6}`));
  got.length = 0;
  await put(1_005, "late");
  await next();
  await add("new");
  await next();
  assert.deepEqual(got, ["late", "new"]);
  gone.abort();
  await following;
});
