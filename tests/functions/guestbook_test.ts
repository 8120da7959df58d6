/** The guestbook example over the in-memory store. */
import assert from "node:assert/strict";
import app from "../../examples/guestbook/app.ts";
import type { AppContext, EnvOf } from "sojourn";
import { buildEnv } from "../../functions/env.ts";
import { readManifest } from "../../functions/manifest.ts";
import { MemoryStore } from "./memory_store.ts";

function open() {
  const store = new MemoryStore();
  const ctx: AppContext = {
    waitUntil: () => {},
    passThroughOnException: () => {},
    props: {},
    session: { id: "s" },
    site: "edge-1",
    version: "0".repeat(64),
  };
  const send = async (path: string, init?: RequestInit): Promise<Response> => {
    const env = buildEnv(app, { store, vars: {} }) as EnvOf;
    const request = new Request(`http://guestbook.localhost${path}`, init);
    request.headers.set("x-forwarded-prefix", "/guestbook");
    const response = await app.fetch?.(request, env, ctx);
    assert.ok(response);
    return response;
  };
  return { store, send };
}

const form = (name: string, text: string): RequestInit => ({
  method: "POST",
  body: new URLSearchParams({ name, text }),
});
const json = (value: unknown): RequestInit => ({ method: "POST", body: JSON.stringify(value) });

Deno.test("the guestbook shows what was signed, escaped, newest first, with the site", async () => {
  const { send } = open();
  const signed = await send("/", form("Ann", "Hello <b>all</b>"));
  assert.deepEqual([signed.status, signed.headers.get("location")], [303, "/guestbook/"]);
  const page = await (await send("/")).text();
  assert.match(page, /served by edge-1/);
  assert.match(page, /Hello &lt;b&gt;all/);
  assert.match(page, /action="\/guestbook\/"/);
  assert.match(page, /1 entry</);
});

Deno.test("the guestbook's JSON pages through all entries", async () => {
  const { send } = open();
  for (let i = 0; i < 25; i++) {
    assert.equal((await send("/entries", json({ name: "Ann", text: `${i}` }))).status, 201);
  }
  const seen = new Set<string>();
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: { entries: { text: string }[]; cursor: string | null; count: number } = await (await send(
      `/entries?cursor=${cursor}`,
    )).json();
    for (const { text } of page.entries) seen.add(text);
    assert.equal(page.count, 25);
    cursor = page.cursor;
  }
  assert.equal(seen.size, 25);
});

Deno.test("the guestbook refuses an empty or long entry", async () => {
  const { store, send } = open();
  for (const body of [{}, { name: "", text: "x" }, { name: "a", text: "x".repeat(501) }, null, []]) {
    assert.equal((await send("/entries", json(body))).status, 400);
  }
  assert.equal((await send("/", form("", ""))).status, 400);
  assert.equal(store.rows.size, 0);
});

Deno.test("the guestbook tells of changes until the client goes", async () => {
  const { store, send } = open();
  const abort = new AbortController();
  const events = (await send("/changes", { signal: abort.signal })).body?.pipeThrough(
    new TextDecoderStream(),
  );
  const reader = events?.getReader();
  assert.equal((await reader?.read())?.value, "data: 0\n\n");
  await send("/entries", json({ name: "Ann", text: "Hi" }));
  assert.equal((await reader?.read())?.value, "data: 1\n\n");
  await reader?.cancel();
  assert.equal(store.watching, 0);
});

Deno.test("the guestbook can be deployed", () => {
  assert.deepEqual(readManifest(app).handlers, ["fetch"]);
});
