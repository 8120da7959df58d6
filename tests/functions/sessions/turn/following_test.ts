/** Followers: what is replayed piece by piece comes to the same as what is replayed at once. */
import assert from "node:assert/strict";
import { Session } from "../../../../functions/class/session.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { readEntries } from "../../../../functions/sessions/turn/log_entry.ts";
import type { Commit, OpenedProgram, OpenSession } from "../../../../functions/sessions/turn/mod.ts";
import { ProgramStore } from "../../../../functions/sessions/turn/session_store.ts";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { Robot } from "./robot.ts";
import { type Bias, inMacrotask, runSeed } from "./run.ts";
import { joined } from "./entries.ts";
import { Solo, type SoloEnv } from "./solo.ts";

const OPEN: OpenSession = {
  ...{ class: "robot", id: "r", epoch: 1, replica: 1, code: "code", checkpoint: null, out: {} },
  ...{ seed: Uint8Array.from({ length: 32 }, (_, i) => i), entries: new Uint8Array(0), effectsApplied: 0 },
};

/** A follower that has been given pieces. */
function following(
  Class: new () => SessionObject,
  open: Partial<OpenSession>,
  pieces: readonly Uint8Array[],
  envOf?: ConstructorParameters<typeof Solo>[1],
): Solo {
  const solo = new Solo(Class, envOf);
  solo.loop.follow(1, { ...OPEN, ...open });
  for (const piece of pieces) {
    solo.loop.piece(1, piece);
    solo.run();
  }
  return solo.run();
}

function promoted(solo: Solo, epoch: number): Solo {
  solo.loop.promote(1, { epoch, replica: 1, out: {}, effectsApplied: 0 });
  return solo.run();
}

/** What commits a seed's session makes. */
async function commitsOf(seed: string, bias: Bias): Promise<Commit[]> {
  const commits: Commit[] = [];
  await inMacrotask(() =>
    runSeed(seed, {
      sink: (sink) => ({
        ...sink,
        commit: (channel: number, commit: Commit) => {
          commits.push(commit);
          sink.commit(channel, commit);
        },
      }),
    }, bias)
  );
  return commits;
}

const seen = (opened: OpenedProgram | null) => JSON.stringify(opened);
const robots = () => (program: ConstructorParameters<typeof ProgramStore>[0]) => new ProgramStore(program);

Deno.test("a follower that is promoted after any piece stands where a replay of the log does (RC4)", async () => {
  let open = 0, took = 0, checkpoints = 0;
  for (let seed = 0; seed < 16; seed++) {
    const plan = { lossEveryMs: 0, isCheckpointing: seed % 2 === 0 };
    const commits = (await commitsOf(`${seed}`, { plan })).filter(({ count }) => count > 0);
    const pieces = commits.map(({ entries }) => entries);
    for (let kept = 0; kept <= pieces.length; kept++) {
      const entries = joined(commits.slice(0, kept));
      const [cold, warm] = await inMacrotask(() => [
        new Solo(Robot, robots()).open({ ...OPEN, entries, epoch: 2 }),
        promoted(following(Robot, {}, pieces.slice(0, kept), robots()), 2),
      ]);
      const at = `seed ${seed}, ${kept} pieces`;
      assert.equal(warm.parked, null, at);
      assert.equal(seen(warm.opened), seen(cold.opened), at);
      assert.equal(
        JSON.stringify((warm.object as Robot).state()),
        JSON.stringify((cold.object as Robot).state()),
        at,
      );
      assert.deepEqual(warm.commits, cold.commits, at);
      if (warm.opened?.handling !== null) open++;
    }
    const all = readEntries(joined(commits));
    took += all.filter((entry) =>
      entry.kind === "turn" && entry.input.kind === "rejected" && entry.input.voids > 0
    )
      .length;
    checkpoints += all.filter(({ kind }) => kind === "checkpoint").length;
  }
  assert.ok(open > 10 && took > 0 && checkpoints > 10, `${open} open, ${took} taken back, ${checkpoints}`);
});

class Counter extends Session<SoloEnv> {
  n = 0;
  add(by: number): number {
    return this.n += by;
  }
}
class Other extends Counter {
  override add(by: number): number {
    return this.n += 2 * by;
  }
}
const add = (request: string) => ({
  ...{ kind: "request", request, chain: [] } as const,
  bytes: encodeCall({ kind: "rpc", method: "add", args: encodeValue([1]) }),
});
const counting = (n: number): Uint8Array[] => {
  const solo = new Solo(Counter).open();
  for (let i = 0; i < n; i++) solo.deliver(add(`r${i}`));
  return solo.commits.map(({ entries }) => entries);
};
const SOLO = { class: "solo", id: "s" };

Deno.test("a follower tells what it can't follow once, with what it did, and gives nothing out (FO1, FO2)", () =>
  inMacrotask(() => {
    const pieces = counting(3);
    const solo = following(Other, SOLO, pieces);
    assert.equal(solo.parked?.code, "diverged");
    assert.match(JSON.stringify(solo.parked?.detail["did"]), /output 1 to r0/);
    solo.parked = null;
    promoted(solo, 2);
    assert.deepEqual([solo.parked, solo.opened, solo.commits, solo.calls], [null, null, [], []]);
    const garbage = following(Counter, SOLO, [Uint8Array.of(0xff, 1, 2)]);
    assert.equal(garbage.parked?.code, "log_corrupt");
    const other = following(Counter, { ...SOLO, code: "other code" }, pieces);
    assert.equal(other.parked?.code, "code_differs");
  }));

Deno.test("pieces that wait for their turn are followed in the order of the log (FO3)", () =>
  inMacrotask(() => {
    const solo = new Solo(Counter);
    solo.loop.follow(1, { ...OPEN, ...SOLO });
    for (const piece of counting(3)) solo.loop.piece(1, piece);
    promoted(solo.run(), 2);
    assert.deepEqual([solo.parked, (solo.object as Counter).n], [null, 3]);
  }));

Deno.test("a follower begins with a checkpoint and what is behind it, and goes on when it is promoted", () =>
  inMacrotask(() => {
    const home = new Solo(Counter).open();
    home.deliver(add("r0"));
    home.loop.checkpointNow(1);
    home.run();
    const [checkpoint] = home.checkpoints;
    assert.ok(checkpoint !== undefined);
    const before = home.commits.length;
    home.deliver(add("r1")).deliver(add("r2"));
    const after = home.commits.slice(before).map(({ entries }) => entries);
    const solo = following(
      Counter,
      { ...SOLO, checkpoint, entries: after[0] ?? new Uint8Array(0) },
      after.slice(1),
    );
    promoted(solo, 2);
    assert.equal(solo.opened?.sequence, checkpoint.at + 2);
    solo.deliver(add("r3"));
    assert.equal((solo.object as Counter).n, 4);
    assert.equal(solo.commits.at(-1)?.outputs[0]?.to, "r3");
    // What it writes is replayed as any other log: its epoch is in it.
    const entries = joined([...home.commits.slice(before), ...solo.commits]);
    const cold = new Solo(Counter).open({ ...SOLO, checkpoint, entries, epoch: 3 });
    assert.deepEqual([cold.parked, (cold.object as Counter).n], [null, 4]);
  }));

Deno.test("a follower that is closed, or promoted twice, does nothing more", () =>
  inMacrotask(() => {
    const pieces = counting(2);
    const closed = following(Counter, SOLO, pieces);
    closed.loop.close(1);
    closed.loop.piece(1, pieces[0] ?? new Uint8Array(0));
    promoted(closed, 2);
    assert.equal(closed.opened, null);
    const twice = promoted(following(Counter, SOLO, pieces), 2);
    const commits = twice.commits.length;
    promoted(twice, 3);
    assert.equal(twice.commits.length, commits);
  }));

let outside: number[] = [];

/** A checkpoint puts a copy into a plain field: who has it otherwise, as this class must not, has the one before. */
class Shared extends Session<SoloEnv> {
  a: number[] = [];
  constructor() {
    super();
    outside = this.a;
  }
  add(by: number): number {
    outside.push(by);
    return this.a.length;
  }
}

Deno.test("a follower sees what a checkpoint does to fields, alone in its piece or behind a turn", () =>
  inMacrotask(() => {
    for (const isAlone of [true, false]) {
      const home = new Solo(Shared).open().deliver(add("r0"));
      home.loop.checkpointNow(1);
      if (isAlone) home.run();
      home.deliver(add("r1")).deliver(add("r2"));
      assert.equal(home.checkpoints.length, 1);
      const { a } = home.object as Shared;
      const pieces = home.commits.map(({ entries }) => entries);
      const [, , ...rest] = pieces;
      const whole = isAlone ? pieces : [joined(home.commits.slice(0, 3)), ...rest.slice(1)];
      const solo = promoted(following(Shared, SOLO, whole), 2);
      assert.deepEqual([solo.parked, (solo.object as Shared).a], [null, a]);
      assert.equal(a.length, 1, "what came after the checkpoint went to the array before it");
    }
  }));
