/**
 * Whatever becomes of sites, sockets and requests: a WebSocket of the client library is closed, or open, or something
 * that ends wakes it. So it goes on soon after the world does.
 */
import { strict as assert } from "node:assert";
import { type Client, connectWith } from "../../../functions/client/client.ts";
import type { ClientHost } from "../../../functions/client/ports.ts";
import { Draws } from "../../sim/random.ts";
import { FakeSession } from "./fake_session.ts";
import { VirtualHost } from "./virtual_host.ts";

/** From a world in which all is well to an answer: every limit of a lost try, and a pause between two. */
const WELL_MS = 40_000;

interface Run {
  readonly world: VirtualHost;
  readonly session: FakeSession;
  readonly client: Client;
  readonly socket: WebSocket;
  readonly got: string[];
}

async function begun(change: (host: VirtualHost) => ClientHost): Promise<Run> {
  const world = new VirtualHost(["edge-1", "edge-2", "core-1", "cloud"]);
  const session = new FakeSession(world);
  const client = await world.run(connectWith(change(world), { sites: "http://edge-1.test/table" }));
  const socket = new client.WebSocket("/7");
  const got: string[] = [];
  socket.addEventListener("message", ({ data }) => got.push(String(data)));
  return { world, session, client, socket, got };
}

/** Something happens to the cluster, or to what is on its way. */
function happens({ world, session, client, socket }: Run, draws: Draws): void {
  const site = draws.pick(world.sites);
  switch (draws.integer(0, 13)) {
    case 0:
      return session.kill(draws.integer(0, 4_000));
    case 1:
      return session.lose(site);
    case 2:
      return session.cut();
    case 3:
      site.state = "frozen";
      return;
    case 4:
      site.state = "draining";
      return;
    case 5:
      session.takes = draws.pick(["session", "refuses"]);
      return;
    case 6: {
      const path = draws.pick(["/_sojourn/session", "/_sojourn/readyz", "/_sojourn/sites"]);
      world.losesCall = (call) => call.path === path;
      return;
    }
    case 7:
      world.losesCall = () => false;
      return;
    case 8:
      site.rttMs = draws.pick([5, 50, 6_000]);
      return;
    case 9:
      site.isCutOff = !site.isCutOff;
      return;
    case 10:
      // A request that changes something makes the client look at its sites again.
      void client.fetch("/x").then((answer) => answer.body?.cancel(), () => {});
      return;
    default:
      if (socket.readyState === 1) socket.send("m");
      for (const each of world.sites) if (draws.chance(0.4)) each.state = "up";
  }
}

/** All is well from now on. */
function heals({ world, session }: Run): void {
  world.losesCall = () => false;
  session.takes = "session";
  for (const site of world.sites) Object.assign(site, { state: "up", rttMs: 10, isCutOff: false });
}

/** @throws where the socket is not open or closed soon after the world is well again */
async function survives(seed: number, change: (host: VirtualHost) => ClientHost): Promise<string> {
  const draws = new Draws(`liveness ${seed}`);
  const run = await begun(change);
  const { world, socket, got, client } = run;
  world.app = (call, site) => world.answer(call, site, "");
  for (let step = draws.integer(1, 40); step > 0; step--) {
    happens(run, draws);
    await world.pass(draws.pick([0, 3, 40, 700, 6_000]));
  }
  heals(run);
  const untilMs = world.nowMs() + WELL_MS;
  const state = (): number => socket.readyState;
  while (state() === 0 && world.nowMs() < untilMs) await world.pass(200);
  assert.notEqual(state(), 0, `seed ${seed}: nothing wakes it`);
  const isAnswered = () => got.at(-1)?.endsWith(" end") === true;
  if (state() === 1) {
    socket.send("end");
    // One that was away for longer than a session keeps a peer is told so.
    while (state() === 1 && !isAnswered() && world.nowMs() < untilMs) await world.pass(200);
    assert(state() === 3 || isAnswered(), `seed ${seed}: it says that it is open, and no answer comes`);
    socket.close(1000, "");
    const closedMs = world.nowMs();
    while (state() !== 3 && world.nowMs() < closedMs + WELL_MS) await world.pass(200);
    assert.equal(state(), 3, `seed ${seed}: it does not close`);
  }
  await client.close();
  await world.pass(60_000);
  assert.equal(world.timers, 0, `seed ${seed} leaves timers`);
  return isAnswered() ? "open" : "closed";
}

Deno.test("a socket goes on or ends soon after the world is well again, whatever happened to it", async () => {
  const ends = { open: 0, closed: 0 };
  for (let seed = 1; seed <= 150; seed++) {
    const end = await survives(seed, (world) => world);
    ends[end as keyof typeof ends]++;
  }
  assert(ends.open > 100 && ends.closed > 0, JSON.stringify(ends));
});
