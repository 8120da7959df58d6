/** What the end of an incarnation says where a disk was lost (store/change/enrolment.ts). */
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { Enrolment } from "../../../store/change/enrolment.ts";
import { Child } from "../../../store/core/child.ts";
import { decodeJson, endedKey } from "../../../store/members/topology.ts";
import { Least } from "../../../store/model/least.ts";
import type { ChildHello, MovedSite } from "../../../store/wire/message.ts";
import { Scene } from "../../sim/scene.ts";
import { learns, loneCore } from "../lone_core.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  inner: { parent: "root", linkMs: 1 },
  edge: { parent: "inner", linkMs: 1 },
} as const;

async function startBlank(scene: Scene, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) scene.site(id).wipe();
  await scene.pass(20);
  for (const id of ids) void scene.site(id).start();
  await scene.until(() => ids.every((id) => scene.site(id).process?.ready === true));
}

Deno.test("what a child had pushed before its disk was lost is not called lost, though the root has not heard of it", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  scene.network.partition("inner", "root", scene.world.nowMs + 1_500);
  const session = await scene.attach("edge");
  await scene.write(session, 0, 1);
  await scene.pass(1_000); // the parent has all of it, and nobody above
  const token = session.token(false);
  scene.site("edge").wipe();
  await scene.pass(600);
  void scene.site("edge").start();
  await scene.until(() => scene.site("edge").process?.ready === true);
  for (const id of ["inner", "edge", "root"]) {
    strictEqual(await scene.read(await scene.attach(id, token), 0), 1, id);
  }
});

Deno.test("an incarnation that nobody below the root remembers ends at what the root had of it (N2, N3)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const session = await scene.attach("edge");
  await scene.write(session, 0, 1);
  await scene.pass(2_000); // all of it is at the root
  const token = session.token(false);
  await startBlank(scene, "inner", "edge");
  await scene.pass(2_000);
  for (const id of ["root", "inner", "edge"]) {
    strictEqual(await scene.read(await scene.attach(id, token), 0), 1, id);
  }
});

Deno.test("what an incarnation pushed is acknowledged to no later one, whose positions are others (I8)", async () => {
  const taken: number[] = [], wrong: number[] = [];
  let number = 0;
  const scene = new Scene(TREE, {
    tap: (from, to, message) => {
      const isDown = from === "root" && to === "inner";
      if (isDown && message.kind === "welcome" && message.replica !== number) {
        number = message.replica;
        taken.splice(0, taken.length, 0);
      } else if (from === "inner" && to === "root" && message.kind === "push") taken.push(message.upTo);
      else if (isDown && message.kind === "feed" && !taken.includes(message.acked)) wrong.push(message.acked);
    },
  });
  await scene.start();
  const session = await scene.attach("edge"), first = number;
  scene.site("root").slowDisk(300);
  await scene.write(session, 0, 1);
  await scene.pass(20); // the root has taken it in, and its disk has not
  await startBlank(scene, "inner");
  await scene.pass(2_000);
  strictEqual(number > first, true);
  deepStrictEqual(wrong, []);
});

/** A root that enrols one child, without its links. `isTold`: the number comes after the row that tells of it. */
function enrolling(isTold = true) {
  let clock = 0;
  const core = loneCore(["root"], 1);
  let number = 5;
  const enrolment = new Enrolment(core, {
    isGivenUp: ({ moved }) => moved !== undefined && moved.lost.includes(moved.from),
    number: ({ path, from }) => {
      if (isTold) learns(core, ++number, path, { parent: 1, from });
      return Promise.resolve(number);
    },
    durable: () => Promise.resolve(),
  });
  const child = new Child("e", 0, { stables: new Least<Child>(), floors: new Least<Child>() });
  const hello = (moved: Pick<MovedSite, "from" | "lost">): ChildHello => ({
    kind: "hello",
    replica: 4,
    parentReplica: 3,
    cursor: 0,
    attempt: 1,
    clock: ++clock,
    tier: "edge",
    url: "",
    linkAddress: "",
    coverage: [],
    moved: { siblings: [], floor: 0, ...moved } as MovedSite,
  });
  const ended = async () => {
    const [row] = await core.rows.lookup([endedKey(4)]);
    return decodeJson(row?.value ?? null);
  };
  return { core, enrolment, child, hello, ended };
}

Deno.test("a loss that a child tells of later is noted once, with what the root had by then (moving.ts M1)", async () => {
  const { core, enrolment, child, hello, ended } = enrolling();
  await enrolment.enroll(child, hello({ from: "", lost: [] }), child.connection);
  deepStrictEqual(await ended(), { stable: 0, next: 6 });
  core.watermark = 20;
  await enrolment.noteLoss(child, hello({ from: "", lost: [] }));
  deepStrictEqual(await ended(), { stable: 0, next: 6 }, "nothing is lost");
  await enrolment.noteLoss(child, hello({ from: "old", lost: ["old"] }));
  deepStrictEqual(await ended(), { stable: 0, next: 6, gap: 20 });
  core.watermark = 30;
  await enrolment.noteLoss(child, hello({ from: "old", lost: ["old"] }));
  deepStrictEqual(await ended(), { stable: 0, next: 6, gap: 20 }, "what it may have seen by then stays lost");
});

Deno.test("nobody is enrolled under a number of which nothing is told (N2)", async () => {
  const { enrolment, child, hello } = enrolling(false);
  await rejects(enrolment.enroll(child, hello({ from: "", lost: [] }), child.connection), /N2/);
});
