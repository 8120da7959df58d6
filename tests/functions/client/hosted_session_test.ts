/**
 * The client library and a session whose clients hold the log, in virtual time: homes die with the only disk, pages are
 * gone and come back with what they have kept.
 */
import { strict as assert } from "node:assert";
import type { ClientStorage, StorageChange } from "../../../functions/client/ports.ts";
import { MemoryClientStorage } from "../../../functions/client/storage.ts";
import { Draws } from "../../sim/random.ts";
import { HostedSession } from "./hosted_session.ts";
import { opened, pageOf, SlowStorage, until } from "./pages.ts";
import { VirtualHost } from "./virtual_host.ts";

const LOADS = 4;
/** In the last one a channel breaks before anything of it has arrived, and the next one too, and then home and disk. */
const SEEDS = [...Array.from({ length: 14 }, (_, at) => at + 1), 28];

/** Who plays: one page after the other, with what is kept, and somebody who stays. @throws where anything is contradicted */
async function plays(seed: number, Storage: typeof SlowStorage): Promise<number> {
  const world = new VirtualHost(["edge-1", "edge-2", "cloud"]);
  const session = new HostedSession(world);
  const draws = new Draws(`hosted ${seed}`);
  // In every second game nobody else holds the log.
  const ben = seed % 2 === 0 ? null : await opened(world);
  await until(world, () => ben === null || ben.socket.readyState === 1, `seed ${seed}: ben opens`);
  let kept: ClientStorage = new MemoryClientStorage();
  const told: (readonly string[])[] = ben === null ? [] : [ben.got];
  let sent = 0, bens = 0;
  for (let load = 0; load < LOADS; load++) {
    const page = pageOf(world);
    const storage: ClientStorage = kept = new Storage(world, await kept.list(""), page.isGone);
    const { socket, got, events } = await opened(world, page.host, { storage });
    told.push(got);
    await until(world, () => socket.readyState === 1, `seed ${seed}, load ${load}: it opens`);
    for (let step = 0; step < 14; step++) {
      for (let i = draws.integer(0, 2); i > 0; i--) socket.send(`p${sent++}`);
      for (let i = ben === null ? 0 : draws.integer(0, 2); i > 0; i--) ben?.socket.send(`b${bens++}`);
      if (draws.chance(0.08)) session.cut();
      if (draws.chance(0.1)) session.kill(draws.chance(0.7));
      await world.pass(draws.pick([0, 3, 20, 90, 300]));
    }
    // What it has sent and shown is on its disk within two commits.
    await world.pass(10);
    page.gone();
    // Then the home may go, too, before anybody has noticed.
    if (draws.chance(0.7)) session.kill(draws.chance(0.7));
    assert.deepEqual(events.filter((each) => each !== "away" && each !== "back"), ["open"], `seed ${seed}`);
  }
  const storage = new Storage(world, await kept.list(""), () => false);
  const last = await opened(world, world, { storage });
  told.push(last.got);
  await until(world, () => last.socket.readyState === 1, `seed ${seed}: it opens at last`);
  last.socket.send("end");
  const here = ben === null ? [last] : [last, ben];
  for (const { got } of here) {
    await until(world, () => got.at(-1)?.endsWith(" end") === true, `seed ${seed}: the end`);
  }
  assert.equal(session.peers, here.length, `seed ${seed}: the same peers throughout`);
  const { heard } = session;
  for (const [letter, count] of [["p", sent], ["b", bens]] as const) {
    const all = Array.from({ length: count }, (_, at) => `${letter}${at}`);
    assert.deepEqual(
      heard.filter((each) => each.startsWith(letter)),
      all,
      `seed ${seed}: each once, in order`,
    );
  }
  for (const got of told) {
    const numbers = got.map((each) => Number(each.split(" ", 1)[0]));
    assert.deepEqual(
      got,
      numbers.map((number) => `${number} ${heard[number - 1]}`),
      `seed ${seed}: what was told holds`,
    );
    assert(
      numbers.every((number, at) => at === 0 || number === (numbers[at - 1] ?? 0) + 1),
      `seed ${seed}: in order`,
    );
  }
  assert.equal(ben?.got.length ?? heard.length, heard.length, `seed ${seed}: who stays is told all`);
  await world.run(Promise.all(here.map(({ client }) => client.close())));
  return session.fromHosts;
}

Deno.test("homes and disks are lost, pages are gone and come back, and nothing that was told is taken back (L4, K1, K3)", async () => {
  let fromHosts = 0;
  for (const seed of SEEDS) fromHosts += await plays(seed, SlowStorage);
  assert(fromHosts > 15, `${fromHosts} recoveries from clients`);
});

/** Broken: of what a page holds of the log the newest records are not kept. */
class ForgetfulStorage extends SlowStorage {
  override commit(changes: readonly StorageChange[]): Promise<void> {
    return super.commit(changes.filter(([name]) => !/\/r\/\d*[5-9]$/.test(name)));
  }
}

/** Broken: who it is is kept, and not what it holds. */
class HollowStorage extends SlowStorage {
  override commit(changes: readonly StorageChange[]): Promise<void> {
    return super.commit(changes.filter(([name]) => !/\/(?:r\/\d+|log)$/.test(name)));
  }
}

for (const [name, Storage] of Object.entries({ ForgetfulStorage, HollowStorage })) {
  Deno.test(`where a page keeps less than it says, the same test finds it: ${name}`, async () => {
    let found = 0;
    for (let seed = 1; seed <= 20 && found === 0; seed++) await plays(seed, Storage).catch(() => found++);
    assert(found > 0);
  });
}

/** Ann and Ben hold the log; Ben's page is gone, and then the home and its disk are. */
async function withoutBen() {
  const world = new VirtualHost(["edge-1", "edge-2", "cloud"]);
  const session = new HostedSession(world);
  session.tells = true;
  const annsPage = pageOf(world), bensPage = pageOf(world);
  const anns = new SlowStorage(world, [], annsPage.isGone),
    bens = new SlowStorage(world, [], bensPage.isGone);
  const ann = await opened(world, annsPage.host, { storage: anns, resumeMs: 30_000 });
  const ben = await opened(world, bensPage.host, { storage: bens });
  await until(world, () => session.recorded.size === 2, "both hold the log");
  ann.socket.send("hello");
  await until(world, () => ann.got.length === 1 && ben.got.length === 1, "both are told");
  await world.pass(20);
  bensPage.gone();
  const bensAgain = async () => {
    const storage = new SlowStorage(world, await bens.list(""), () => false);
    return await opened(world, world, { storage });
  };
  return { world, session, ann, annsPage, anns, bensAgain };
}

/** What a socket was refused with. */
function refusals(socket: WebSocket): string[] {
  const told: string[] = [];
  socket.addEventListener("refused", (event) => {
    const { code, message } = (event as CustomEvent<{ code: string; message: string }>).detail;
    told.push(`${code} ${message}`);
  });
  return told;
}

Deno.test("who is new to a session that waits for a client hears for whom, and is closed soon (L3, L6)", async () => {
  const { world, session, ann, bensAgain } = await withoutBen();
  session.kill(true);
  const begunMs = world.nowMs();
  const cleo = await opened(world);
  const told = refusals(cleo.socket);
  await until(world, () => told.length > 0, "she hears why");
  assert(world.nowMs() - begunMs < 1_000);
  assert.match(told[0] ?? "", /^stateful_unreachable missing: .*peer-2/);
  await until(world, () => cleo.socket.readyState === 3, "she is closed");
  assert(world.nowMs() - begunMs < 6_500, `after ${world.nowMs() - begunMs} ms`);
  assert.deepEqual(cleo.events, ["error", "close 1013 stateful_unreachable false"]);
  const ben = await bensAgain();
  await until(world, () => ben.socket.readyState === 1 && ann.events.at(-1) === "back", "it goes on");
  const dora = await opened(world);
  await until(world, () => dora.socket.readyState === 1, "now there is room for one more");
  await world.run(Promise.all([cleo, ben, dora, ann].map(({ client }) => client.close())));
  await world.pass(10_000);
  assert.equal(world.timers, 0);
});

Deno.test("who holds the log of a session that waits for another client waits with it, and is told (L6)", async () => {
  const { world, session, ann, bensAgain } = await withoutBen();
  const told = refusals(ann.socket);
  session.kill(true);
  await world.pass(120_000);
  assert.deepEqual(ann.events, ["open", "away"], "four times as long as for one that finds no site");
  assert.deepEqual(told, ["stateful_unreachable missing: peer-2"], "once for each reason");
  const ben = await bensAgain();
  await until(world, () => ben.socket.readyState === 1 && ann.events.at(-1) === "back", "it goes on");
  assert.deepEqual(session.heard, ["hello"]);
  await world.run(Promise.all([ben, ann].map(({ client }) => client.close())));
});

Deno.test("a page that comes back to such a session does not drop what it holds, also where it is closed (L6)", async () => {
  const { world, session, annsPage, anns, bensAgain } = await withoutBen();
  annsPage.gone();
  session.kill(true);
  const storage = new SlowStorage(world, await anns.list(""), () => false);
  const closed = await opened(world, world, { storage });
  const told = refusals(closed.socket);
  await until(world, () => told.length > 0, "it hears why");
  closed.socket.close();
  await until(world, () => closed.socket.readyState === 3, "it is closed");
  assert.deepEqual(closed.events, ["error", "close 1006  false"]);
  await world.pass(1_000);
  const again = await opened(world, world, { storage, resumeMs: 30_000 });
  await world.pass(120_000);
  assert.deepEqual(again.events, [], "it waits");
  const ben = await bensAgain();
  await until(world, () => ben.socket.readyState === 1 && again.socket.readyState === 1, "it goes on");
  ben.socket.send("there");
  await until(world, () => again.got.at(-1) === "2 there", "as before");
  assert.deepEqual(session.heard, ["hello", "there"]);
  assert.equal(session.peers, 2, "nobody is somebody new");
  await world.run(Promise.all([closed, ben, again].map(({ client }) => client.close())));
});

Deno.test("who holds the log and finds no site for too long leaves it to the next socket, also where it is closed then; but not after a reset (L6)", async () => {
  for (const how of ["given up", "closed", "reset"] as const) {
    const { world, session, ann, bensAgain } = await withoutBen();
    for (const site of world.sites) site.state = "dead";
    session.kill(true);
    await until(world, () => ann.events.at(-1) === "away", "it has no home");
    if (how === "closed") ann.socket.close();
    if (how === "reset") void ann.client.reset();
    await until(world, () => ann.socket.readyState === 3, "it is closed");
    await world.pass(20);
    for (const site of world.sites) site.state = "up";
    const ben = await bensAgain();
    const socket = new ann.client.WebSocket("/7");
    await world.pass(20_000);
    const isOpen = how !== "reset";
    assert.deepEqual([ben.socket.readyState === 1, socket.readyState === 1, session.peers], [
      isOpen,
      isOpen,
      2,
    ], how);
    await world.run(Promise.all([ben, ann].map(({ client }) => client.close())));
  }
});
