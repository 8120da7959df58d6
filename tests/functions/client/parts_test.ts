/** The small parts of the client library: addresses, lists, tokens, verdicts, storage. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import fc from "fast-check";
import { appPath, appUrl, platformUrl } from "../../../functions/client/address.ts";
import { ClientError } from "../../../functions/client/client_error.ts";
import { fileStorage, platformHost } from "../../../functions/client/host.ts";
import { KeptSession } from "../../../functions/client/kept_session.ts";
import { KeptPeer } from "../../../functions/client/kept_peer.ts";
import type { ClientStorage } from "../../../functions/client/ports.ts";
import { listedSites } from "../../../functions/client/site_list.ts";
import { MemoryClientStorage } from "../../../functions/client/storage.ts";
import { type Presented, TokenSet } from "../../../functions/client/token_set.ts";
import { verdictOf, wayMs } from "../../../functions/client/verdict.ts";
import { problem } from "./virtual_host.ts";
import { Writer } from "../../../store/model/codec.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("an app's address is a path's beginning, absolute or of the page", () => {
  const rows: [given: string, base: string | null, found: string | null][] = [
    ["http://h:1/shop/", null, "http://h:1/shop"],
    ["wss://h/shop?x#y", null, "https://h/shop"],
    [".", "http://shop.localhost:8003/", "http://shop.localhost:8003"],
    ["..", "https://h/shop/pages/one", "https://h/shop"],
    ["/shop", null, null],
    ["mailto:ann@h", null, null],
  ];
  for (const [given, base, found] of rows) {
    if (found !== null) assert.equal(appUrl(given, base), found);
    else assert.throws(() => appUrl(given, base), (error) => (error as ClientError).code === "site_invalid");
  }
  assert.equal(platformUrl("http://h:1/shop", "readyz"), "http://h:1/_sojourn/readyz");
});

Deno.test("keys are drawn on a page that came over plain HTTP, too, where there is no randomUUID", () => {
  const own = Object.getOwnPropertyDescriptor(crypto, "randomUUID");
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
  try {
    const drawn = [platformHost().draw(), platformHost().draw()];
    assert.notEqual(drawn[0], drawn[1]);
    for (const key of drawn) assert.match(key, /^[0-9a-z]{1,7}(-[0-9a-z]{1,7}){3}$/);
  } finally {
    if (own === undefined) Reflect.deleteProperty(crypto, "randomUUID");
    else Object.defineProperty(crypto, "randomUUID", own);
  }
});

Deno.test("a path is the app's own, and so is a whole address below one of its sites", () => {
  const apps = ["http://h:1/shop", "https://shop.example"];
  const rows: [given: string, found: string | null][] = [
    ["/x?q=1", "/x?q=1"],
    ["x", "/x"],
    ["", "/"],
    ["http://h:1/shop/x?q#f", "/x?q#f"],
    ["ws://h:1/shop", "/"],
    ["wss://shop.example/x", "/x"],
    ["http://h:1/shopping", null],
    ["http://h:2/shop/x", null],
    ["//h:1/shop", null],
    ["https://elsewhere/x", null],
    ["data:text/plain,x", null],
  ];
  for (const [given, found] of rows) assert.equal(appPath(given, apps), found, given);
});

Deno.test("a list of sites begins with the one that was named, and leaves out what can't be used", () => {
  const text = JSON.stringify([
    { id: "cloud", url: "http://c:1", tier: "root" },
    { id: "edge-1", url: "http://127.0.0.1:3", tier: "edge" },
    { id: "edge-2", url: "http://127.0.0.1:4/", tier: "edge" },
    { id: 7, url: "no address", tier: "edge" },
    null,
    "x",
  ]);
  const at = (own: string, app: string | null, from: string | null) =>
    listedSites(text, { own, app, from }).map(({ id, url }) => `${id} ${url}`);
  assert.deepEqual(at("http://localhost:3/shop", null, "edge-1"), [
    "edge-1 http://localhost:3/shop",
    "edge-2 http://127.0.0.1:4/shop",
    "cloud http://c:1/shop",
  ]);
  assert.deepEqual(at("http://shop.localhost:3", "shop", "edge-1")[1], "edge-2 http://127.0.0.1:4/shop");
  assert.deepEqual(at("http://shop.example", "shop", null), [
    "null http://shop.example",
    "edge-1 http://127.0.0.1:3/shop",
    "edge-2 http://127.0.0.1:4/shop",
    "cloud http://c:1/shop",
  ]);
  assert.deepEqual(at("https://shop.example", "shop", null), ["null https://shop.example"], "none but https");
  const kept = JSON.stringify(
    listedSites(text, { own: "http://localhost:3/shop", app: null, from: "edge-1" }),
  );
  assert.deepEqual(
    listedSites(kept, { own: "http://localhost:3/shop", app: null, from: null }).map(({ url }) => url),
    ["http://localhost:3/shop", "http://127.0.0.1:4/shop", "http://c:1/shop"],
    "as it was kept",
  );
  fc.assert(fc.property(fc.json(), (json) => {
    listedSites(json, { own: "http://h/shop", app: null, from: null });
  }));
});

type Tokens = Pick<TokenSet, "presented" | "surplus" | "answered" | "size">;

/** Whether some order of answers makes a session forget what it was told. */
function forgets(make: () => Tokens): { readonly failed: boolean; readonly counterexample: unknown } {
  // A token stands for facts: those of the tokens that its request presented, and one of its own.
  const step = fc.oneof(
    fc.constant({ kind: "ask" as const }),
    fc.record({ kind: fc.constant("answer" as const), which: fc.nat(9) }),
    fc.constant({ kind: "merge" as const }),
  );
  return fc.check(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const facts = new Map<string, Set<number>>();
    const told = new Set<number>();
    let issued = 0;
    const tokens = make();
    const flying: Presented[] = [];
    const answer = (presented: Presented, isMerge = false) => {
      const mine = new Set(presented.tokens.flatMap((token) => [...facts.get(token) ?? []]));
      if (!isMerge) mine.add(issued);
      const token = `t${issued++}`;
      facts.set(token, mine);
      for (const fact of mine) told.add(fact);
      tokens.answered(presented, token);
    };
    for (const each of steps) {
      if (each.kind === "ask") flying.push(tokens.presented);
      else if (each.kind === "merge") {
        if (tokens.surplus.tokens.length > 0) answer(tokens.surplus, true);
      } else {for (const presented of flying.splice(each.which % Math.max(1, flying.length), 1)) {
          answer(presented);
        }}
      const known = new Set(tokens.presented.tokens.flatMap((token) => [...facts.get(token) ?? []]));
      for (const fact of told) assert(known.has(fact), `fact ${fact} is forgotten`);
    }
    while (tokens.surplus.tokens.length > 0) answer(tokens.surplus, true);
    assert(tokens.size <= 8);
  }));
}

Deno.test("no order of answers makes a session forget what it was told (S1)", () => {
  const { failed, counterexample } = forgets(() => new TokenSet([], () => {}));
  assert(!failed, JSON.stringify(counterexample));
});

/** Broken: it keeps what came last. */
class LastToken {
  #last: readonly string[] = [];
  readonly size = 1;
  get presented(): Presented {
    return { tokens: this.#last, session: 0 };
  }
  get surplus(): Presented {
    return { tokens: [], session: 0 };
  }
  answered(_: Presented, token: string): void {
    this.#last = [token];
  }
}

Deno.test("where only the last token is kept, the same test finds it", () => {
  assert(forgets(() => new LastToken()).failed);
});

Deno.test("what is answered to a session before is nothing to the one after (S1)", () => {
  const tokens = new TokenSet(["old"], () => {});
  const presented = tokens.presented;
  tokens.clear();
  tokens.answered(presented, "old too");
  assert.equal(tokens.size, 0);
  tokens.answered(tokens.presented, "new");
  tokens.answered(presented, "old still");
  assert.deepEqual(tokens.presented.tokens, ["new"]);
});

Deno.test("an answer is the answer, unless the platform says what else it is", async () => {
  const rows: [Response, string][] = [
    [new Response("x"), "answer"],
    [new Response("x", { status: 503 }), "answer"],
    [new Response("{", { status: 503, headers: { "content-type": "application/problem+json" } }), "answer"],
    [problem(503, "draining", "retry"), "away"],
    [problem(503, "not_ready", "retry"), "away"],
    [problem(503, "overloaded", "retry"), "later"],
    [problem(503, "stateful_parked", "operator"), "answer"],
    [problem(401, "token_forged", "reset"), "session"],
    [problem(401, "admin_token_invalid", "fix"), "answer"],
    [problem(410, "source_lost", "reset"), "answer"],
    [problem(409, "superseded", "retry"), "answer"],
  ];
  for (const [answer, kind] of rows) {
    assert.equal((await verdictOf(answer)).kind, kind);
    assert.equal(answer.bodyUsed, false);
  }
});

Deno.test("a way's time is what the site did not use, where the site itself answered", () => {
  const rows: [timing: string | null, ran: string | null, ms: number | null][] = [
    ["handoff;desc=same;dur=1.5, store;dur=2, app;dur=30", "edge-1", 6.5],
    ["handoff;dur=0, store;dur=0, app;dur=99", "edge-1", 0],
    ["handoff;dur=0, store;dur=0, app;dur=1, app;dur=500", "edge-1", 39],
    ["handoff;dur=0, store;dur=0, app;dur=1", "cloud", null],
    ["db;dur=3", "edge-1", null],
    [null, "edge-1", null],
    ["handoff;dur=0, store;dur=0, app;dur=1", null, null],
  ];
  for (const [timing, ran, ms] of rows) {
    const headers = new Headers();
    if (timing !== null) headers.set("server-timing", timing);
    if (ran !== null) headers.set("sojourn-site", ran);
    assert.equal(wayMs(headers, { ms: 40, site: "edge-1" }), ms, `${timing} at ${ran}`);
  }
});

/** What every storage does. */
async function keeps(storage: ClientStorage): Promise<void> {
  await Promise.all([
    storage.commit([["a/1", bytes("one")], ["b", bytes("b")]]),
    storage.commit([["a/2", bytes("two")], ["a/1", null], ["a/10", new Uint8Array()]]),
  ]);
  const found = (await storage.list("a/")).map(([name, value]) => [name, new TextDecoder().decode(value)]);
  assert.deepEqual(found, [["a/10", ""], ["a/2", "two"]]);
  const mine = await storage.claim("x", true);
  assert(mine !== null);
  assert.equal(await storage.claim("x", true), null);
  mine();
  assert.notEqual(await storage.claim("x", true), null);
}

Deno.test("a storage keeps what was committed, in order, and gives a name to one", async () => {
  await keeps(new MemoryClientStorage());
});

Deno.test("a file keeps it over a restart, also where a line was torn off, and grows with what is kept only", async () => {
  const folder = await Deno.makeTempDir();
  const path = join(folder, "client.state");
  try {
    const first = await fileStorage(path);
    await keeps(first);
    await assert.rejects(fileStorage(path), (error) => (error as ClientError).code === "storage_unavailable");
    await first.close();
    await Deno.writeTextFile(path, '[["a/2",nu', { append: true });
    const second = await fileStorage(path);
    assert.deepEqual((await second.list("a/")).map(([name]) => name), ["a/10", "a/2"]);
    const large = new Uint8Array(50_000).fill(7);
    for (let i = 0; i < 20; i++) await second.commit([["large", large], ["b", bytes(`${i}`)]]);
    await second.close();
    assert((await Deno.stat(path)).size < 400_000);
    const third = await fileStorage(path);
    const [[, value] = ["", new Uint8Array()]] = await third.list("b");
    assert.equal(new TextDecoder().decode(value), "19");
    assert.deepEqual((await third.list("large"))[0]?.[1], large);
    await third.close();
    await Deno.writeTextFile(path, "not ours\n");
    await assert.rejects(fileStorage(path), (error) => (error as ClientError).code === "storage_unavailable");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a peer is kept with what it sent, one page each, and what is not whole is nothing", async () => {
  const storage = new MemoryClientStorage();
  const identity = { id: "p1", key: new Uint8Array(32).fill(1) };
  const first = await KeptPeer.open(storage, "/table/7");
  assert(first !== null && first.saved === null);
  const sent: string[] = [];
  const channel = first.channel({
    send: (frame) => sent.push(new TextDecoder().decode(frame)),
    close: () => {},
  }, () => assert.fail());
  first.head({ identity, epoch: 3, received: 5 }, 1);
  first.message(1, bytes("m1"));
  first.message(2, bytes("m2"));
  channel.send(bytes("frame"));
  assert.deepEqual(sent, [], "nothing leaves before it is kept (K1)");
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([sent, (await storage.list("ws/")).length], [["frame"], 4]);
  first.head({ identity, epoch: 3, received: 9 }, 2);
  const other = await KeptPeer.open(storage, "/table/7");
  assert.equal(other?.saved, null, "another page is another peer");
  await first.leave();

  const second = await KeptPeer.open(storage, "/table/7");
  assert.deepEqual(second?.saved, { identity, epoch: 3, received: 9, first: 2, messages: [bytes("m2")] });
  await second?.leave();
  const [[name, head] = ["", new Uint8Array()]] = await storage.list("ws/");
  await storage.commit([[name, head.subarray(1)]]);
  const third = await KeptPeer.open(storage, "/table/7");
  assert.equal(third?.saved, null);
  await third?.end();
  assert.deepEqual(
    (await storage.list("ws/")).map(([each]) => each.split("/").at(-1)).includes("head"),
    false,
  );
});

Deno.test("programs that go on with a peer are numbered before they say anything, also after one that was not (K5)", async () => {
  const storage = new MemoryClientStorage(), path = "/table/7", number = "ws/%2Ftable%2F7/0/program";
  const identity = { id: "p1", key: new Uint8Array(32).fill(1) };
  const programs: number[] = [];
  /** @param gone while its first frame is on its way. */
  const next = async (gone = false) => {
    const peer = await KeptPeer.open(storage, path) ?? assert.fail();
    programs.push(peer.program);
    if (gone) {
      const kept = new Promise<void>((sent) =>
        peer.channel({ send: () => sent(), close: () => {} }, () => assert.fail()).send(bytes("hello"))
      );
      await kept;
      const left = await storage.list("ws/");
      await peer.end();
      await storage.commit(left);
    } else {
      peer.head({ identity, epoch: 1, received: 0 }, 1);
      await peer.leave();
    }
  };
  for (const gone of [false, false, true, false]) await next(gone);
  assert.deepEqual(programs, [1, 2, 3, 4]);
  await storage.commit([[number, null]]);
  await next();
  await next();
  assert.deepEqual(programs.slice(4), [1, 2], "an earlier version's counts none");
  const peer = await KeptPeer.open(storage, path) ?? assert.fail();
  await peer.forget();
  assert.deepEqual(await storage.list("ws/"), []);
  peer.head({ identity: { ...identity, id: "p2" }, epoch: 1, received: 0 }, 1);
  await peer.leave();
  await next();
  assert.deepEqual([peer.program, programs.at(-1)], [3, 4], "who begins anew is counted on");
  await storage.commit([[number, new Writer(8).uint(2 ** 29 - 1).done()]]);
  await next();
  assert.equal(programs.at(-1), 2 ** 29 - 1, "the last number is that of all that follow");
  await storage.commit([[number, new Writer(8).uint(2 ** 29).done()]]);
  assert.deepEqual((await KeptPeer.open(storage, path))?.saved, null, "what is no number leaves nobody (K3)");
});

Deno.test("what earlier pages left is forgotten, and not what a page has open, when somebody logs out", async () => {
  const storage = new MemoryClientStorage();
  const identity = { id: "p1", key: new Uint8Array(32) };
  const [left, open] = [await KeptPeer.open(storage, "/a/b"), await KeptPeer.open(storage, "/a/b")];
  for (const page of [left, open]) {
    page?.head({ identity, epoch: 1, received: 1 }, 1);
    page?.message(1, bytes("m"));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await left?.leave();
  assert.equal((await storage.list("ws/")).length, 6, "of each a head, a message and its program's number");
  await KeptPeer.forgetAll(storage);
  const kept = (await storage.list("ws/")).map(([name]) => name);
  assert.ok(kept.length > 0 && kept.every((name) => name.includes("/1/")), `${kept}`);
  const next = await KeptPeer.open(storage, "/a/b");
  assert.equal(next?.saved, null);
  await next?.end();
  await open?.end();
});

Deno.test("two pages keep what each was told, and who comes after them knows it all (N1, N2)", async () => {
  const storage = new MemoryClientStorage();
  const [first, second] = [await KeptSession.open(storage), await KeptSession.open(storage)];
  first.keep(["a1", "a2"]);
  second.keep(["b"]);
  first.keep(["a3"]);
  const third = await KeptSession.open(storage);
  assert.deepEqual(third.tokens, [], "the others are there, and tell their own");
  await Promise.all([first.leave(), second.leave(), third.leave()]);

  const fourth = await KeptSession.open(storage);
  assert.deepEqual(fourth.tokens, ["a3", "b"]);
  fourth.keep(["merged"]);
  await fourth.leave();
  const fifth = await KeptSession.open(storage);
  assert.deepEqual([fifth.tokens, (await storage.list("session/")).length], [["merged"], 1]);
  fifth.keep([]);
  await fifth.leave();
  assert.deepEqual(await storage.list("session/"), []);
});
