/** Duels whose players hold the log, when the only site that has it on a disk is lost. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { type Client, connect, fileStorage } from "../../functions/client/mod.ts";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

/** Its home has no owner but itself. */
const HOME = "edge-3";

interface Move {
  readonly number: number;
  readonly by: string;
  readonly text: string;
  readonly total: number;
}

interface Player {
  readonly client: Client;
  readonly socket: WebSocket;
  readonly got: Move[];
  readonly ends: string[];
}

/** Somebody who plays, first at the first of the sites. */
async function player(
  cluster: TestCluster,
  id: string,
  sites: readonly string[],
  storage?: Awaited<ReturnType<typeof fileStorage>>,
): Promise<Player> {
  const client = await connect({
    sites: sites.map((site) => `${cluster.url(site)}/duel`),
    ...storage === undefined ? {} : { storage },
  });
  const socket = new client.WebSocket(`/${id}`);
  const got: Move[] = [], ends: string[] = [];
  socket.onmessage = ({ data }) => got.push(JSON.parse(data));
  socket.onclose = ({ code, reason }) => ends.push(`${code} ${reason}`);
  await eventually(`${id} opens`, () => Promise.resolve(socket.readyState === 1));
  return { client, socket, got, ends };
}

const say = ({ socket }: Player, ...texts: readonly string[]) => texts.forEach((text) => socket.send(text));
const heard = (what: string, players: readonly Player[], text: string) =>
  eventually(
    `${what}: all hear ${text}`,
    () => Promise.resolve(players.every(({ got }) => got.some((move) => move.text === text))),
  );

async function sessions(cluster: TestCluster, ...args: readonly string[]) {
  const out: string[] = [], err: string[] = [];
  const shell = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) };
  const code = await runCli(["sessions", ...args, "--data", cluster.data], {
    ...shell,
    env: () => undefined,
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

const shown = async (cluster: TestCluster, id: string): Promise<string[]> =>
  JSON.parse((await sessions(cluster, "show", "duel", "duel", id, "--json")).out).owners;

/** Resolves when so many players are on record as holding the log. */
async function onRecord(cluster: TestCluster, id: string, count: number): Promise<void> {
  await eventually(
    `${count} players of ${id} are on record`,
    async () => (await shown(cluster, id)).filter((owner) => owner.startsWith("@")).length === count,
  );
}

const movesOf = async (cluster: TestCluster, site: string, id: string): Promise<Move[]> => {
  const answer = await ask(`${cluster.url(site)}/duel/${id}`);
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text);
};

/** What players were told is what the session says, and each of their moves is there once, in order. */
async function agree(
  cluster: TestCluster,
  id: string,
  told: readonly (readonly Move[])[],
  said: readonly string[][],
) {
  const moves = await movesOf(cluster, "edge-1", id);
  for (const [at, { number }] of moves.entries()) assert.equal(number, at + 1);
  for (const got of told) {
    for (const move of got) assert.deepEqual(move, moves[move.number - 1], `${id}: what a player was told`);
  }
  for (const texts of said) {
    assert.deepEqual(
      moves.map(({ text }) => text).filter((text) => texts.includes(text)),
      texts,
      `${id}: once, in order`,
    );
  }
  assert.equal(moves.length, said.flat().length);
}

/** The home dies, and what was on its disk with it where that is said. */
async function lose(cluster: TestCluster, what: "site" | "site and disk"): Promise<void> {
  await cluster.control("kill", HOME);
  if (what === "site and disk") {
    await Deno.remove(join(cluster.data, "sites", HOME, "data"), { recursive: true });
  }
}

async function back(cluster: TestCluster): Promise<void> {
  await cluster.control("start", HOME);
  await cluster.ready(HOME);
}

const texts = (of: string, count: number) => Array.from({ length: count }, (_, at) => `${of}${at}`);

/** Home and only disk are lost; one of the players is a page that is reloaded meanwhile. */
export async function losesTheDisk(cluster: TestCluster): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "duel-", suffix: ".state" });
  const storage = await fileStorage(path);
  const ann = await player(cluster, "disk", [HOME, "edge-2"], storage);
  const ben = await player(cluster, "disk", ["edge-1", "edge-2"]);
  const [first, second] = [texts("a", 10), texts("b", 10)];
  say(ann, ...first);
  say(ben, ...second);
  await heard("before", [ann, ben], "a9");
  await heard("before", [ann, ben], "b9");
  await onRecord(cluster, "disk", 2);
  await lose(cluster, "site and disk");
  say(ann, "a10");
  await ann.client.close(); // the page ends, and comes back with what it has kept
  await storage.close();
  const again = await fileStorage(path);
  const page = await player(cluster, "disk", ["edge-2", "edge-1"], again);
  say(page, "a11");
  say(ben, "b10");
  await heard("after", [page, ben], "a11");
  await heard("after", [page, ben], "b10");
  assert.equal(
    page.got.filter(({ by }) => by === ann.got.find(({ text }) => text === "a0")?.by).length > 0,
    true,
  );
  await agree(cluster, "disk", [ann.got, ben.got, page.got], [[...first, "a10", "a11"], [...second, "b10"]]);
  assert.deepEqual([...ben.ends, ...page.ends], [], "nobody was sent away");
  await Promise.all([page.client.close(), ben.client.close()]);
  await again.close();
  await Deno.remove(path);
  await back(cluster);
}

/** The home is killed, and its disk can't be asked. */
export async function losesTheSite(cluster: TestCluster): Promise<void> {
  const players = [
    await player(cluster, "site", [HOME, "edge-2"]),
    await player(cluster, "site", ["edge-1", "edge-2"]),
  ];
  const said = players.map((each, at) => {
    say(each, ...texts(`${at}-`, 5));
    return texts(`${at}-`, 10);
  });
  for (const at of [0, 1]) await heard("before", players, `${at}-4`);
  await onRecord(cluster, "site", 2);
  await lose(cluster, "site");
  for (const [at, each] of players.entries()) say(each, ...texts(`${at}-`, 10).slice(5));
  for (const at of [0, 1]) await heard("after", players, `${at}-9`);
  await agree(cluster, "site", players.map(({ got }) => got), said);
  await back(cluster);
  say(players[0] ?? assert.fail(), "end");
  await heard("with the old home back", players, "end");
  await agree(cluster, "site", players.map(({ got }) => got), [...said, ["end"]]);
  for (const each of players) await each.client.close();
}

/** Somebody new hears by his socket who is missing, and is not kept waiting. */
async function isToldWhy(cluster: TestCluster, id: string, missing: string): Promise<void> {
  const client = await connect({ sites: [`${cluster.url("edge-2")}/duel`] });
  const socket = new client.WebSocket(`/${id}`);
  const told: string[] = [];
  socket.addEventListener("refused", (event) => {
    const { code, message } = (event as CustomEvent<{ code: string; message: string }>).detail;
    told.push(`${code}: ${message}`);
  });
  const { promise, resolve } = Promise.withResolvers<CloseEvent>();
  socket.onclose = resolve;
  const { code, reason } = await promise;
  assert.deepEqual([code, reason], [1013, "stateful_unreachable"], told.join());
  assert(told.some((each) => each.startsWith(reason) && each.includes(missing)), told.join());
  await client.close();
}

/** One of the players is lost together with the home: the other waits, until an operator goes on without him. */
export async function losesAPlayer(cluster: TestCluster): Promise<void> {
  const id = "player";
  const [ann, ben] = [
    await player(cluster, id, [HOME, "edge-2"]),
    await player(cluster, id, ["edge-1", "edge-2"]),
  ];
  const said = texts("b", 5);
  say(ben, ...said);
  await heard("before", [ann, ben], "b4");
  await onRecord(cluster, id, 2);
  // Before she can take what she holds elsewhere, and before the home knows that she has gone.
  await cluster.control("pause", HOME);
  const gone = ann.client.close(); // without a storage: what she held is gone
  await lose(cluster, "site and disk");
  await gone;
  say(ben, "b5");
  let why = "";
  await eventually("callers are told why", async () => {
    const answer = await ask(`${cluster.url("edge-1")}/duel/${id}`);
    why = answer.text;
    assert.ok(answer.status === 503 && why.includes("have not come back"), `${answer.status} ${why}`);
    return true;
  });
  const lost = (await shown(cluster, id)).filter((owner) =>
    owner.startsWith("@") && why.includes(owner.slice(1))
  );
  assert.equal(lost.length, 1, `who is missing is named: ${why}`);
  assert.equal(ben.got.length, 5);
  await isToldWhy(cluster, id, lost[0]?.slice(1) ?? "");
  assert.equal(ben.socket.readyState, WebSocket.OPEN, "who holds the log waits");
  await eventually("an operator sees who is missing", async () => {
    const { out } = await sessions(cluster, "show", "duel", "duel", id);
    return /^held by +2 clients or agents, on record$/m.test(out) &&
      out.includes(`${lost[0]?.slice(1)}, missing`);
  });
  const opened = await sessions(cluster, "resume", "duel", "duel", id, "--without-clients", "--yes");
  assert.equal(opened.code, 0, opened.err);
  await heard("without her", [ben], "b5");
  await agree(cluster, id, [ann.got, ben.got], [[...said, "b5"]]);
  await ben.client.close();
  await back(cluster);
}
