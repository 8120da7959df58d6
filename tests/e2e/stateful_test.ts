/** Stateful sessions on real processes: one home, whatever becomes of it. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask, HeaderClient } from "./client.ts";
import { loseTheHome, refuseSockets, restUnderSockets, sit } from "./attach_walk.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";
import { isReadied } from "./readiness_walk.ts";
import { losesAPlayer, losesTheDisk, losesTheSite } from "./hosts_walk.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "counter");
const DESK = join(import.meta.dirname ?? ".", "apps", "desk");
const DUEL = join(import.meta.dirname ?? ".", "apps", "duel");
const link = (rttMs: number) => ({ rttMs, mbps: 1_000 });
/** A home at edge-1 or edge-2 may be lost; one at edge-3 has no owner but itself. */
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core-1", parent: "cloud", link: link(10) },
    { id: "edge-1", parent: "core-1", link: link(2), f: 1, owners: { sites: ["edge-2", "edge-3"] } },
    { id: "edge-2", parent: "core-1", link: link(2), f: 1, owners: { sites: ["edge-1", "edge-3"] } },
    { id: "edge-3", parent: "core-1", link: link(2) },
  ],
};

const at = (cluster: TestCluster, site: string, path: string) => `${cluster.url(site)}/counter/${path}`;

/** Calls a method through an edge; the answer's result. */
async function call(
  cluster: TestCluster,
  site: string,
  id: string,
  method: string,
  ...args: readonly unknown[]
): Promise<unknown> {
  const answer = await ask(at(cluster, site, `${encodeURIComponent(id)}/call/${method}`), {
    method: "POST",
    body: JSON.stringify(args),
  });
  assert.equal(answer.status, 200, `${site} ${id}.${method}: ${answer.status} ${answer.text}`);
  return (JSON.parse(answer.text) as { result: unknown }).result;
}

/** The problem that a call is answered with. */
async function refused(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const answer = await ask(at(cluster, site, `${encodeURIComponent(id)}/call/${method}`), {
    method: "POST",
    body: JSON.stringify(args),
  });
  return { status: answer.status, ...JSON.parse(answer.text) as { code: string; detail: string } };
}

async function cli(cluster: TestCluster, ...args: readonly string[]) {
  const out: string[] = [], err: string[] = [];
  const shell = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) };
  const code = await runCli([...args, "--data", cluster.data], { ...shell, env: () => undefined });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function shown(cluster: TestCluster, id: string) {
  const { code, out, err } = await cli(cluster, "sessions", "show", "counter", "counter", id, "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out) as { home: string; epoch: number; owners: string[]; version: string };
}

/** With an `Idempotency-Key` a request that is sent again, to another site, is answered as before and adds nothing. */
async function askedTwice(cluster: TestCluster): Promise<void> {
  const token = async (...presented: string[]) => {
    const headers: HeadersInit = presented.length === 0 ? {} : { "sojourn-session": presented.join(", ") };
    const { status, headers: told } = await ask(`${cluster.url("edge-3")}/_sojourn/session`, { headers });
    assert.equal(status, 204);
    return told.get("sojourn-session") ?? "";
  };
  const mine = await token();
  const add = async (site: string, key: string, session: string) => {
    const init = {
      method: "POST",
      body: "[1]",
      headers: { "idempotency-key": key, "sojourn-session": session },
    };
    const answer = await ask(at(cluster, site, "twice/call/add"), init);
    assert.equal(answer.status, 200, answer.text);
    return [
      (JSON.parse(answer.text) as { result: unknown }).result,
      answer.headers.get("sojourn-session") ?? "",
    ];
  };
  const [first, seen] = await add("edge-1", "k1", mine);
  const [again, seenThere] = await add("edge-2", "k1", mine);
  assert.deepEqual([first, again], [1, 1], "the answer that was kept");
  const merged = await token(String(seen), String(seenThere));
  assert.deepEqual((await add("edge-3", "k1", merged))[0], 1, "the session is the same, as one token too");
  assert.equal((await add("edge-3", "k2", merged))[0], 2);
  assert.equal((await add("edge-2", "k1", await token()))[0], 3, "another client's key is another");
}

async function oneHome(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "ann", "add", 1), 1);
  const sums = await Promise.all(
    ["edge-1", "edge-2", "edge-3", "cloud"].flatMap((site) =>
      [1, 1].map((by) => call(cluster, site, "ann", "add", by))
    ),
  );
  assert.deepEqual((sums as number[]).sort((a, b) => a - b), [2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal((await shown(cluster, "ann")).home, "edge-1");

  await askedTwice(cluster);

  const answer = await ask(at(cluster, "edge-2", "ann/http"), { method: "POST", body: "5" });
  assert.deepEqual([answer.status, JSON.parse(answer.text).count], [200, 14]);
  assert.equal(answer.headers.get("x-counter"), "ann");

  const made = JSON.parse((await ask(at(cluster, "edge-2", "new"), { method: "POST" })).text);
  assert.equal(made.count, 1);
  assert.match(made.id, /^edge-2\./);
  assert.equal(await call(cluster, "edge-3", made.id, "add", 1), 2);
}

async function throwsAndLoops(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "bob", "add", 7), 7);
  const caught = await ask(at(cluster, "edge-2", "bob/caught"), { method: "POST" });
  assert.deepEqual(JSON.parse(caught.text), { message: "the counter is stuck", code: "counter_stuck" });
  assert.equal(await call(cluster, "edge-2", "bob", "get"), 7, "what a handler that throws did is undone");
  const [looped, other] = await Promise.all([
    refused(cluster, "edge-1", "bob", "loop"),
    call(cluster, "edge-1", "bystander", "add", 1),
  ]);
  assert.equal(looped.code, "isolate_killed", JSON.stringify(looped));
  assert.equal(other, 1, "another session of the same isolate goes on");
  assert.equal(await call(cluster, "edge-3", "bob", "get"), 7);
  await call(cluster, "edge-1", "bob", "spin");
  await eventually(
    "a timer whose handler loops is given up",
    async () => {
      assert.deepEqual(await call(cluster, "edge-3", "bob", "heard"), []);
      return /bob.*rejected timer.*spin.*it is given up: isolate_killed/.test(cluster.log());
    },
  );
  assert.equal((await refused(cluster, "edge-1", "bob", "around", ["carl", "bob"])).code, "cycle");
  assert.equal(await call(cluster, "edge-1", "bob", "around", ["carl", "dora"]), "reached");
  assert.equal(await call(cluster, "edge-1", "bob", "addThere", "carl", 3), 3);
  assert.equal(await call(cluster, "edge-2", "carl", "get"), 3);
}

async function storeAndTimers(cluster: TestCluster): Promise<void> {
  // Its home is edge-1; who asks at edge-3 reads there what it wrote.
  await call(cluster, "edge-1", "eve", "add", 2);
  const client = new HeaderClient();
  const kept = await client.fetch(at(cluster, "edge-3", "eve/keep"), { method: "POST", body: "tea" });
  assert.deepEqual(JSON.parse(kept.text), { told: "tea 2", read: "tea 2" });

  await call(cluster, "edge-1", "eve", "ring", 50);
  await eventually("the timer rings", async () => {
    return JSON.stringify(await call(cluster, "edge-2", "eve", "heard")) === '["bell"]';
  });
  const dice = await call(cluster, "edge-1", "eve", "dice") as string[];
  assert.equal(dice[2], "later");
  await call(cluster, "edge-1", "eve", "ring", 3_000);
  await cluster.control("restart", "edge-1");
  await cluster.ready("edge-1");
  assert.equal(await call(cluster, "edge-1", "eve", "lastDice"), dice[0], "what was drawn is drawn again");
  assert.equal(await call(cluster, "edge-2", "eve", "get"), 2);
  await eventually("a timer rings after a restart", async () => {
    return JSON.stringify(await call(cluster, "edge-2", "eve", "heard")) === '["bell","bell"]';
  });
}

/** Its home's clock is not believed, and a timer of one that rests rings all the same. */
async function ringsByTheTime(cluster: TestCluster): Promise<void> {
  await call(cluster, "edge-1", "una", "ring", 8_000);
  const skew = async (ms: number) => {
    const { code, err } = await cli(cluster, "chaos", "skew", "edge-1", "--ms", String(ms));
    assert.equal(code, 0, err);
  };
  await skew(-3_600_000);
  try {
    // Nobody calls it: that would open it.
    await eventually("a timer rings at a home whose clock is an hour behind", async () => {
      const { out } = await sessionsCommand(cluster, "log", "una");
      return /"timer".*"bell"/s.test(out);
    });
    assert.deepEqual(await call(cluster, "edge-1", "una", "heard"), ["bell"]);
  } finally {
    await skew(0);
  }
}

async function losesItsHome(cluster: TestCluster): Promise<void> {
  for (let i = 1; i <= 5; i++) assert.equal(await call(cluster, "edge-2", "fay", "add", 1), i);
  const before = await shown(cluster, "fay");
  assert.deepEqual([before.home, before.owners.length], ["edge-2", 2]);
  await cluster.control("kill", "edge-2");
  let told = 5;
  await eventually("it goes on elsewhere", async () => {
    const answer = await ask(at(cluster, "edge-1", "fay/call/add"), { method: "POST", body: "[1]" });
    assert.equal(answer.status, 200, answer.text);
    told = JSON.parse(answer.text).result;
    return true;
  });
  assert.equal(told, 6, "nothing is lost, and nothing was done twice");
  assert.notEqual((await shown(cluster, "fay")).home, "edge-2");
  await cluster.control("start", "edge-2");
  await cluster.ready("edge-2");
  assert.equal(await call(cluster, "edge-2", "fay", "add", 1), 7, "its former home sends on");
}

/** Asks a counter of a class that has a standby. */
async function ready(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const answer = await ask(at(cluster, site, `ready/${id}/call/${method}`), {
    method: "POST",
    body: JSON.stringify(args),
  });
  assert.equal(answer.status, 200, `${site} ${id}.${method}: ${answer.status} ${answer.text}`);
  return (JSON.parse(answer.text) as { result: unknown }).result;
}

const standbysAt = async (cluster: TestCluster, site: string): Promise<number> =>
  JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text).stateful.standbys;

const promotedAt = async (cluster: TestCluster, site: string): Promise<number> =>
  Number(
    /stateful_standbys_promoted\S* (\d+)/.exec((await ask(`${cluster.url(site)}/_sojourn/metrics`)).text)
      ?.[1] ?? 0,
  );

/** A site that follows a session goes on with it, where it stands, when its home is killed. */
async function isTakenOverInPlace(cluster: TestCluster): Promise<void> {
  for (let i = 1; i <= 5; i++) assert.equal(await ready(cluster, "edge-2", "ned", "add", 1), i);
  let standby = "";
  await eventually("the other owner follows it", async () => {
    for (const site of ["edge-1", "edge-3"]) if (await standbysAt(cluster, site) > 0) standby = site;
    return standby !== "";
  });
  await ready(cluster, "edge-2", "ned", "dice");
  for (let i = 6; i <= 20; i++) assert.equal(await ready(cluster, "edge-2", "ned", "add", 1), i);
  const drawn = await ready(cluster, "edge-2", "ned", "lastDice");
  const promoted = await promotedAt(cluster, standby);
  Deno.kill((await cluster.site("edge-2")).pid, "SIGKILL");
  // Another site that is asked may be the first to ask for it: then it is opened there, from the log.
  assert.equal(
    await ready(cluster, standby, "ned", "add", 1),
    21,
    "nothing is lost, and nothing was done twice",
  );
  assert.equal(await promotedAt(cluster, standby), promoted + 1, "it was replayed before, not now");
  assert.equal(await ready(cluster, standby, "ned", "lastDice"), drawn);
  await cluster.control("start", "edge-2");
  await cluster.ready("edge-2");
}

/** Calls one counter from a site until told to end; nothing may be refused, and each call counts once. */
function load(cluster: TestCluster, site: string, id: string, from: number) {
  let isOver = false;
  const told: number[] = [];
  const done = (async () => {
    while (!isOver) told.push(await call(cluster, site, id, "add", 1) as number);
  })();
  return {
    atLeast: (count: number) => eventually(`${id} was called`, () => Promise.resolve(told.length >= count)),
    get count() {
      return told.length;
    },
    end: async () => {
      isOver = true;
      await done;
      assert.deepEqual(told, told.map((_, i) => from + i + 1), "each call counts once");
      return from + told.length;
    },
  };
}

const move = (cluster: TestCluster, id: string, to: string, ...more: string[]) =>
  cli(cluster, "sessions", "move", "counter", "counter", id, to, ...more);

/** A session that lingers is asked to move meanwhile, also on a busy machine; a move waits for ten seconds. */
const LINGER_MS = 5_000;

async function movesOnPurpose(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "kim", "add", 1), 1);
  const callers = load(cluster, "edge-2", "kim", 1);
  const owners = (await shown(cluster, "kim")).owners.length;
  for (const to of ["core-1", "edge-1"]) {
    await callers.atLeast(callers.count + 3);
    const moved = await move(cluster, "kim", to);
    assert.deepEqual([moved.code, moved.out], [0, `counter kim of counter is at home at ${to}`], moved.err);
    await callers.atLeast(callers.count + 3);
    await eventually("its owners are as many as before", async () => {
      const { home, owners: now } = await shown(cluster, "kim");
      return home === to && (to === "core-1" || now.length === owners);
    });
  }
  const sum = await callers.end();
  assert.equal(await call(cluster, "edge-3", "kim", "get"), sum);

  for (const [to, code] of [["nowhere", "site_unknown"], ["edge-1", "move_refused"]] as const) {
    const refused = await move(cluster, "kim", to);
    assert.deepEqual([refused.code, refused.err.split(":")[0]], [1, code], refused.err);
  }
  assert.match((await move(cluster, "nobody", "edge-2")).err, /not_found/);
  await call(cluster, "edge-1", "kim", "linger", LINGER_MS);
  const lingers = await move(cluster, "kim", "edge-2", "--wait", "100");
  assert.match(lingers.err, /move_refused: .*a timeout that it has set has not gone off/);
  assert.equal((await shown(cluster, "kim")).home, "edge-1");
  const waited = await move(cluster, "kim", "edge-2");
  assert.equal(waited.code, 0, `it waits for that: ${waited.err}`);
  assert.deepEqual(await call(cluster, "edge-1", "kim", "heard"), ["lingered"]);
  const all = await cli(cluster, "sessions", "move", "--all-from", "edge-2", "edge-1", "--json");
  assert.equal(JSON.parse(all.out).stayed, 0, all.err);
  assert.equal((await shown(cluster, "kim")).home, "edge-1");
}

async function movesAtAStop(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "liz", "add", 1), 1);
  const callers = load(cluster, "edge-2", "liz", 1);
  await callers.atLeast(3);
  await cluster.control("stop", "edge-1");
  const { home } = await shown(cluster, "liz");
  assert.notEqual(home, "edge-1", "it has moved before its site stopped");
  await callers.atLeast(callers.count + 3);
  await callers.end();
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
}

const sessionsCommand = (cluster: TestCluster, verb: string, id: string, ...more: string[]) =>
  cli(cluster, "sessions", verb, "counter", "counter", id, ...more);

async function standsStill(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-2", "jon", "add", 3), 3);
  assert.equal((await move(cluster, "jon", "core-1")).code, 0);
  assert.equal((await move(cluster, "jon", "edge-2")).code, 0);
  assert.equal(await call(cluster, "edge-2", "pat", "add", 1), 1);
  // More than any number of replays of the second would come to.
  await call(cluster, "edge-2", "pat", "escape", 1_000);
  assert.equal(await call(cluster, "edge-2", "jon", "escape", 1), 1_001);
  assert.match((await sessionsCommand(cluster, "resume", "jon")).err, /stateful_running/);
  await cluster.control("kill", "edge-2");
  const lying = await sessionsCommand(cluster, "log", "jon");
  assert.match(lying.err, /^as \S+ keeps it: its home edge-2 does not show it \(edge-2: /, lying.err);
  assert.match(lying.out, /"method":"escape"/, "the log lies at an owner, too");
  await eventually("it stands still at its next home", async () => {
    return (await refused(cluster, "edge-1", "jon", "add", 1)).code === "stateful_parked";
  });
  await eventually("every site knows it", async () => {
    const { out } = await cli(cluster, "sessions", "list", "counter", "counter");
    return /jon .*parked: diverged/.test(out);
  });
  const { out: told } = await sessionsCommand(cluster, "show", "jon");
  assert.match(
    told,
    /replay of entry \d+ \(request\) did other things: its check is [0-9a-f]{16}, the log's [0-9a-f]{16}/,
  );
  assert.match(told, /did:\n {2}output 1 to [^\n]* bytes/);
  assert.match(told, /logged: \{"kind":"request"/);
  const log = (await sessionsCommand(cluster, "log", "jon")).out.split("\n").map((line) => JSON.parse(line));
  assert.deepEqual([log[0].kind, log.at(-1).method], ["log", "escape"]);

  const again = await sessionsCommand(cluster, "resume", "jon");
  assert.deepEqual([again.code, /stands still again: diverged/.test(again.err)], [1, true], again.err);
  const trial = await sessionsCommand(cluster, "resume", "jon", "--from-checkpoint");
  assert.deepEqual([trial.code, /would take back \d+ entries .* 1 requests/.test(trial.out)], [1, true]);
  assert.equal((await refused(cluster, "edge-1", "jon", "get")).code, "stateful_parked");
  const resumed = await sessionsCommand(cluster, "resume", "jon", "--from-checkpoint", "--yes");
  assert.equal(resumed.code, 0, resumed.err);
  assert.equal(await call(cluster, "edge-3", "jon", "get"), 3);
  assert.equal((await sessionsCommand(cluster, "reset", "jon")).code, 1, "not without --yes");
  assert.match(
    (await sessionsCommand(cluster, "reset", "jon", "--yes")).out,
    /is blank, and at home at \S+$/m,
  );
  assert.match(
    (await sessionsCommand(cluster, "log", "jon", "--ended")).out,
    /^\{"kind":"log",.*"ended":"20/,
  );
  const { home } = await shown(cluster, "jon");
  const other = home === "core-1" ? "edge-1" : "core-1";
  assert.equal((await move(cluster, "jon", other)).code, 0);
  const elsewhere = await sessionsCommand(cluster, "log", "jon", "--ended");
  assert.deepEqual([elsewhere.code, JSON.parse(elsewhere.out.split("\n", 1)[0] ?? "").by], [0, home]);
  assert.match(elsewhere.err, /not asked: edge-2: /, "which is down");
  assert.equal(await call(cluster, "edge-3", "jon", "get"), 0);
  await cluster.control("start", "edge-2");
  await cluster.ready("edge-2");
}

async function waitsForItsHome(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-3", "gus", "add", 4), 4);
  await cluster.control("kill", "edge-3");
  const gone = await refused(cluster, "edge-1", "gus", "add", 1);
  assert.deepEqual([gone.status, gone.code], [503, "stateful_unreachable"], JSON.stringify(gone));
  await cluster.control("start", "edge-3");
  await cluster.ready("edge-3");
  await eventually("it goes on when its home is back", async () => {
    const answer = await ask(at(cluster, "edge-1", "gus/call/get"), { method: "POST", body: "[]" });
    return answer.status === 200 && JSON.parse(answer.text).result === 4;
  });
}

async function isDeployedAgain(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "ida", "add", 3), 3);
  assert.equal(await call(cluster, "edge-1", "ida", "version"), "1");
  const before = await shown(cluster, "ida");
  const folder = await Deno.makeTempDir({ prefix: "sojourn-counter-" });
  try {
    const source = await Deno.readTextFile(join(APP, "app.ts"));
    await Deno.writeTextFile(
      join(folder, "app.ts"),
      source.replace('VERSION: string = "1"', 'VERSION: string = "2"'),
    );
    const deployed = await cli(cluster, "deploy", join(folder, "app.ts"), "--app", "counter");
    assert.equal(deployed.code, 0, deployed.err);
    await eventually("the open session runs the new version", async () => {
      return await call(cluster, "edge-2", "ida", "version") === "2";
    });
    assert.equal(await call(cluster, "edge-2", "ida", "get"), 3, "with its state");
    assert.equal((await shown(cluster, "ida")).home, before.home);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A later version of the counter, which counts in tens. */
const IN_TENS = `
  static shape = 1;

  override migrate(old: Record<string, unknown>): void {
    this.count.set((old["count"] as { get(): number }).get() * 10);
    for (const note of old["notes"] as Iterable<string>) this.notes.push(note);
  }
`;

async function isTakenOn(cluster: TestCluster): Promise<void> {
  assert.equal(await call(cluster, "edge-1", "kay", "add", 5), 5);
  assert.equal((await move(cluster, "kay", "core-1")).code, 0);
  assert.equal((await move(cluster, "kay", "edge-1")).code, 0);
  assert.equal(await call(cluster, "edge-1", "kay", "add", 2), 7);
  assert.equal(await call(cluster, "edge-1", "lou", "add", 1), 1);
  await call(cluster, "edge-1", "lou", "escape", 1_000);
  await call(cluster, "edge-1", "kay", "escape", 1);
  await cluster.control("kill", "edge-1");
  const isParked = async () => (await refused(cluster, "edge-2", "kay", "get")).code === "stateful_parked";
  await eventually("it stands still at its next home", isParked);
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  const folder = await Deno.makeTempDir({ prefix: "sojourn-counter-" });
  try {
    const source = await Deno.readTextFile(join(APP, "app.ts"));
    const begin = "  count = value(0);";
    await Deno.writeTextFile(join(folder, "app.ts"), source.replace(begin, `${IN_TENS}\n${begin}`));
    const deployed = await cli(cluster, "deploy", join(folder, "app.ts"), "--app", "counter");
    assert.equal(deployed.code, 0, deployed.err);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  await eventually("its log needs the version before", isParked);
  const trial = await sessionsCommand(cluster, "resume", "kay", "--from-log");
  assert.deepEqual([trial.code, trial.err], [1, "nothing was changed; --yes does it"]);
  assert.match(trial.out, /^its log can be kept up to entry \d+: the replay of entry \d+ \(request\)/);
  assert.match(trial.out, /this would take back 1 entries after entry \d+: 1 requests/);
  const resumed = await sessionsCommand(cluster, "resume", "kay", "--from-log", "--yes");
  assert.equal(resumed.code, 0, resumed.err);
  assert.equal(await call(cluster, "edge-3", "kay", "get"), 70, "what was in the log only, migrated");
}

async function isOperated(cluster: TestCluster): Promise<void> {
  const listed = JSON.parse((await cli(cluster, "sessions", "list", "counter", "--json")).out) as {
    id: string;
  }[];
  for (const id of ["ann", "bob", "fay", "gus"]) assert.ok(listed.some((one) => one.id === id), id);
  assert.match(
    (await cli(cluster, "sessions", "show", "counter", "counter", "ann")).out,
    /^home +edge-1, epoch/,
  );
  const gone = await cli(cluster, "sessions", "delete", "counter", "counter", "ann");
  assert.equal(gone.code, 0, gone.err);
  assert.equal(await call(cluster, "edge-2", "ann", "get"), 0, "the next of that id begins anew");
  for (const id of ["nobody", "nobody \u{1f600}"]) {
    const { code, err } = await cli(cluster, "sessions", "show", "counter", "counter", id);
    assert.equal(code, 1);
    assert.match(err, /not_found: counter has no stateful session/);
  }
  await call(cluster, "edge-1", "hal", "add", 9);
  await call(cluster, "edge-1", "hal", "close");
  assert.equal(await call(cluster, "edge-1", "hal", "get"), 0, "one that ended begins anew");
  assert.equal(await call(cluster, "edge-1", "ivy", "add", 2), 2);
  await call(cluster, "edge-1", "ivy", "close");
  await eventually("its log can be read when it has ended", async () => {
    const { out } = await sessionsCommand(cluster, "log", "ivy");
    return /"ended":"20.*"method":"close"/s.test(out);
  });
  assert.equal((await sessionsCommand(cluster, "delete", "ivy")).code, 0);
  assert.match((await sessionsCommand(cluster, "log", "ivy")).err, /not_found: there is no log/);
  const status = JSON.parse((await ask(`${cluster.url("edge-1")}/_sojourn/status`)).text);
  assert.ok(status.sessions > 0);
  assert.equal(status.stateful.parked, 0);
}

Deno.test("stateful sessions keep one home, their state, and what they promised", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-stateful-" });
  const file = join(folder, "topology.json");
  await Deno.writeTextFile(file, JSON.stringify(TOPOLOGY));
  await using cluster = await startCluster({
    topology: file,
    apps: [APP, DESK, DUEL],
    env: {
      SOJOURN_LIMITS_STATEFULIDLEMS: "2000",
      SOJOURN_LIMITS_CPUMS: "400",
      SOJOURN_OWNERS_DEADMS: "3000",
      SOJOURN_OWNERS_SUSPECTMS: "1000",
    },
  });
  await Deno.remove(folder, { recursive: true });
  await t.step("a process waits where the first log is kept", () => isReadied(cluster));
  await t.step("a counter has one home, by RPC and HTTP, from every site", () => oneHome(cluster));
  await t.step(
    "a handler that throws, loops or calls in a circle changes nothing",
    () => throwsAndLoops(cluster),
  );
  await t.step(
    "what it writes its caller sees; timers ring, after a restart too",
    () => storeAndTimers(cluster),
  );
  await t.step(
    "a timer of one that rests rings though its home's clock is not believed",
    () => ringsByTheTime(cluster),
  );
  await t.step("with f = 1 it goes on when its home is killed", () => losesItsHome(cluster));
  await t.step("one that is followed goes on in place", () => isTakenOverInPlace(cluster));
  await t.step("it moves where it is told, and back, while it is called", () => movesOnPurpose(cluster));
  await t.step("a site that stops as planned moves what is open there", () => movesAtAStop(cluster));
  await t.step(
    "a replay that does otherwise stands still, and is resumed or reset",
    () => standsStill(cluster),
  );
  await t.step("with f = 0 it is unreachable until its home is back", () => waitsForItsHome(cluster));
  await t.step("an open session goes on with the next version", () => isDeployedAgain(cluster));
  await t.step(
    "one whose log can't be replayed to its end is taken on by another version",
    () => isTakenOn(cluster),
  );
  await t.step("sessions are listed, shown, deleted, and end", () => isOperated(cluster));
  await t.step("WebSockets at any site are attached, and hear what the session says", () => sit(cluster));
  await t.step("sockets that can't be attached, and garbage, are refused", () => refuseSockets(cluster));
  await t.step(
    "sockets elsewhere go on when the home is killed under traffic",
    () =>
      loseTheHome(cluster, async (id, to) => {
        const { code, err } = await cli(cluster, "sessions", "move", "desk", "desk", id, to);
        assert.equal(code, 0, err);
      }),
  );
  await t.step(
    "a session rests under its sockets, and comes back",
    () =>
      restUnderSockets(cluster, async (id) => {
        const { out } = await cli(cluster, "sessions", "show", "desk", "desk", id, "--json");
        return (JSON.parse(out) as { at: { state: string; attached: number } | null }).at;
      }),
  );
  await t.step(
    "what its clients hold is enough where the only disk can't be asked",
    () => losesTheSite(cluster),
  );
  await t.step("and where it is gone, and a client was reloaded meanwhile", () => losesTheDisk(cluster));
  await t.step(
    "who is lost together with the home is waited for, until an operator says so",
    () => losesAPlayer(cluster),
  );
});
