/** Sites that stop while others write to them, and sites that are lost while they are written to. */
import { strict as assert } from "node:assert";
import { Cluster, commitOf, name } from "./cluster.ts";

for (const what of ["disk", "arbiterDisk"] as const) {
  Deno.test(`a site that stops under traffic leaves its ${what} alone when it has stopped`, async () => {
    const all = await Cluster.start(2, 1);
    const home = await all.home(1, "x"), root = all.site(0);
    await all.of(home.commit(commitOf("r")));
    for (let i = 0; i < 40; i++) {
      all.world.after(i, () => void home.commit(commitOf(`r${i}`)).catch(() => {}));
      all.world.after(i, () => void all.homes(1).open(name(`y${i}`), "v1").catch(() => {}));
    }
    await all.pass(20);
    const { commits } = root[what] ?? { commits: 0 };
    await all.of(all.homes(0).close());
    assert.ok(commits > 10, "it is busy");
    // As one that is closed: a step that begins now, or is under way, stops the site as a fault does.
    root[what]?.fail("it is closed");
    await all.pass(50);
  });
}

Deno.test("a root that stops at any moment of an answer of its arbiter has stopped soon", async () => {
  const READ_MS = 1, STEP_MS = 0.5, UNTIL_MS = 20;
  const answered = new Set<boolean>();
  for (const isFirst of [true, false]) {
    for (let ms = 0; ms < UNTIL_MS; ms += STEP_MS) {
      const all: Cluster = await Cluster.start(2, 1, {
        arbiterStorage: (storage) => ({
          ...storage,
          getMany: async (keys) => {
            await all.world.sleep(READ_MS);
            return await storage.getMany(keys);
          },
        }),
      });
      if (!isFirst) await all.open(1, "before");
      const opening = all.homes(1).open(name("x"), "v1");
      let isAnswered = false;
      opening.then(() => isAnswered = true, () => {});
      await all.pass(ms);
      answered.add(isAnswered);
      await all.of(all.homes(0).close());
    }
  }
  assert.deepEqual([...answered].sort(), [false, true], "it stopped before it had answered, and after");
});

Deno.test("an owner that is lost as a session ends is not told so for ever", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r")));
  assert.deepEqual(all.logs(2), ["x"]);
  all.site(2).crash(false);
  await all.of(home.end()); // before it is suspected
  await all.pass(30_000);
  const { packets } = all;
  await all.pass(30_000);
  assert.equal(all.packets - packets, 0);
});
