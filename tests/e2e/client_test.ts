/** The client library against real sites that are killed: programs of Deno, and a page in a real browser. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { connect, fileStorage, type Move } from "../../functions/client/mod.ts";
import { Browser, findBrowser } from "./browser.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "notebook");

interface Line {
  readonly number: number;
  readonly line: string;
  readonly id: string;
}

const opened = (socket: WebSocket) =>
  new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve());
    socket.addEventListener("close", ({ code, reason }) => reject(new Error(`closed: ${code} ${reason}`)));
  });

/**
 * Writes lines over a socket and by requests, and a note to KV that it reads back, while the site that it is at, which
 * is the session's home at first, is killed; then the next one.
 */
async function throughTwoDeaths(cluster: TestCluster): Promise<void> {
  const edges = ["edge-1", "edge-2", "edge-3"].map((site) => `${cluster.url(site)}/notebook`);
  const client = await connect({ sites: edges });
  const moves: string[] = [];
  client.addEventListener("move", (event) => {
    const { from, to, why } = (event as CustomEvent<Move>).detail;
    moves.push(`${from.id} ${to.id} ${why}`);
  });
  const socket = new client.WebSocket("/lines/ann");
  const got: Line[] = [];
  const events: string[] = [];
  for (const name of ["away", "back", "error", "close"]) {
    socket.addEventListener(name, () => events.push(name));
  }
  socket.onmessage = ({ data }) => got.push(JSON.parse(data) as Line);
  await opened(socket);
  const sent: string[] = [], posted: [string, number][] = [];
  const write = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 3; i++) socket.send(sent[sent.push(`s${sent.length}`) - 1] ?? "");
      const line = `p${posted.length}`;
      const post = await client.fetch("/lines/ann", { method: "POST", body: line });
      assert.equal(post.status, 200, await post.clone().text());
      posted.push([line, Number(await post.text())]);
      const note = `note ${posted.length}`;
      const put = await client.fetch("/note", { method: "PUT", body: note });
      assert.equal(put.status, 200, await put.text());
      const read = await client.fetch("/note");
      assert.equal(await read.text(), note, `what it wrote it reads, at ${client.status().site.id}`);
    }
  };
  await write(5);
  await cluster.control("kill", "edge-1");
  await write(10);
  const second = client.status().site.id ?? "";
  assert.notEqual(second, "edge-1", `${moves}`);
  await cluster.control("restart", "edge-1");
  await cluster.ready("edge-1");
  await cluster.control("kill", second);
  await write(10);
  assert(moves.some((move) => move.startsWith(`${second} `)), `${moves}`);
  await eventually("all answers", () => Promise.resolve(got.length >= sent.length));

  const lines = await (await client.fetch("/lines/ann")).json() as string[];
  assert.deepEqual(lines.filter((line) => line.startsWith("s")), sent, "each message once, in order");
  assert.deepEqual(
    lines.filter((line) => line.startsWith("p")),
    posted.map(([line]) => line),
    "each request once",
  );
  for (const [line, number] of posted) assert.equal(lines[number - 1], line, "and answered with what it did");
  assert.deepEqual(got.map(({ line }) => line), sent, "each answer once, in order");
  for (const { line, number } of got) assert.equal(lines[number - 1], line);
  assert.equal(new Set(got.map(({ id }) => id)).size, 1, "one client throughout");
  assert.deepEqual(new Set(events), new Set(["away", "back"]), `${events}`);

  const rejected = new Promise((resolve) =>
    socket.addEventListener("rejected", (event) => resolve((event as CustomEvent).detail.code))
  );
  socket.send("throw");
  assert.equal(typeof await rejected, "string");
  const closed = new Promise((resolve) => socket.onclose = ({ code }) => resolve(code));
  socket.close(3000, "done");
  assert.equal(await closed, 3000);
  await client.close();
  await cluster.control("restart", second);
  await cluster.ready(second);
}

/** A program that ends and is started again goes on as the same client, with what it had not been told. */
async function overARestart(cluster: TestCluster): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "client-", suffix: ".state" });
  const ids = new Set<string>();
  let last = 0;
  for (let run = 0; run < 3; run++) {
    const storage = await fileStorage(path);
    const client = await connect({ sites: `${cluster.url("edge-3")}/notebook`, storage });
    const socket = new client.WebSocket("/lines/bob");
    const got: Line[] = [];
    socket.onmessage = ({ data }) => got.push(JSON.parse(data) as Line);
    await opened(socket);
    socket.send(`run ${run}`);
    await eventually("its answer", () => Promise.resolve(got.at(-1)?.line === `run ${run}`));
    for (const { id } of got) ids.add(id);
    last = got.at(-1)?.number ?? 0;
    await client.close();
    await storage.close();
  }
  assert.deepEqual([ids.size, last], [1, 3]);
  await Deno.remove(path);
}

/** A page at a site that dies, comes back, and is reloaded. */
async function aPage(cluster: TestCluster, browser: Browser): Promise<void> {
  const page = await browser.open(`${cluster.url("edge-2")}/notebook/`);
  const lines = async () => JSON.parse(String(await page.evaluate("JSON.stringify(got)"))) as Line[];
  const say = (...words: string[]) =>
    page.evaluate(`for (const word of ${JSON.stringify(words)}) socket.send(word)`);
  await page.until("it is connected", "socket.readyState === 1");
  await say("one", "two");
  await page.until("two answers", "got.length === 2");
  await cluster.control("kill", "edge-2");
  await say("three", "four");
  await page.until("two more", "got.length === 4");
  assert.notEqual(await page.evaluate("client.status().site.id"), "edge-2");
  const note = await page.evaluate(`(async () => {
    await client.fetch("/note", { method: "PUT", body: "from the page" });
    return await (await client.fetch("/note")).text();
  })()`);
  assert.equal(note, "from the page", "across origins");
  const before = await lines();
  assert.deepEqual(before.map(({ number, line }) => [number, line]), [[1, "one"], [2, "two"], [3, "three"], [
    4,
    "four",
  ]]);

  await cluster.control("restart", "edge-2");
  await cluster.ready("edge-2");
  await page.evaluate("globalThis.isOld = true; location.reload()").catch(() => {});
  await page.until("it is connected again", "globalThis.isOld === undefined && socket.readyState === 1");
  await say("five");
  await page.until("its answer", `got.at(-1)?.line === "five"`);
  const after = await lines();
  assert.equal(after.at(-1)?.number, 5);
  assert.deepEqual(
    new Set([...before, ...after].map(({ id }) => id)).size,
    1,
    "the notebook has not noticed",
  );
  await page.close();
}

Deno.test("a client goes on when sites die", async (t) => {
  await using cluster = await startCluster({ apps: [APP], f: 1 });
  await t.step(
    "requests and messages are done once, in order, and read back, through two deaths",
    () => throughTwoDeaths(cluster),
  );
  await t.step("a program that is started again is the same client", () => overARestart(cluster));
  const path = await findBrowser();
  await t.step({
    name: "a page goes on at another site, and after a reload",
    ignore: path === null,
    fn: async () => {
      const browser = await Browser.start(path ?? "");
      try {
        await aPage(cluster, browser);
      } finally {
        await browser.stop();
      }
    },
  });
});
