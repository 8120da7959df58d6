/** Where a session is at home, as sites tell each other while the arbiter does not answer. */
import assert from "node:assert/strict";
import { ASK_AFTER_MS, WHERE_KIND, Whereabouts } from "../../../../functions/sessions/serve/whereabouts.ts";
import { World } from "../../../sim/world.ts";

const NAME = { app: "shop", class: "cart", id: "ann" };
const PARENTS: Record<string, string | null> = {
  root: null,
  core: "root",
  e1: "core",
  e2: "core",
  far: "root",
};
const never = new Promise<never>(() => {});

/** The sites of a tree; `homes` says where each believes the session to be. */
function tree(homes: Record<string, string>, silent: readonly string[] = []) {
  const world = new World(), asked: string[] = [], heard: string[] = [];
  const sites = () => new Map(Object.entries(PARENTS).map(([id, parent]) => [id, { parent }]));
  const all = new Map<string, Whereabouts>();
  for (const site of Object.keys(PARENTS)) {
    const one = new Whereabouts({
      site,
      sites,
      clock: { nowMs: () => world.nowMs, after: (ms, callback) => world.after(ms, callback) },
      homes: {
        where: () => homes[site] ?? null,
        heard: (_, at) => void heard.push(`${site}: ${at}`),
      },
      links: {
        request: async (to, kind, head) => {
          assert.equal(kind, WHERE_KIND);
          asked.push(`${site} ${to}`);
          if (silent.includes(to)) return await never;
          const there = all.get(to);
          if (there === undefined) throw new Error(`${to} is down`);
          return { head: there.serve({ head }).head, body: null };
        },
      },
    });
    all.set(site, one);
  }
  const at = (site: string): Whereabouts => {
    const one = all.get(site);
    assert.ok(one);
    return one;
  };
  return { world, all, asked, heard, at };
}

async function outcome(world: World, promise: Promise<string | null>, ms: number) {
  let found: string | null | undefined;
  void promise.then((one) => found = one);
  await world.run(world.nowMs + ms);
  return found;
}

Deno.test("a site that has waited for the arbiter asks the others, but the root, and those beside it first (WA2, WA3)", async () => {
  const { world, at, asked, heard } = tree({ far: "far", e2: "far" });
  const finding = at("e1").meanwhile(NAME, never);
  assert.equal(await outcome(world, finding, ASK_AFTER_MS - 1), undefined);
  assert.deepEqual(asked, []);
  assert.equal(await outcome(world, finding, 2), "far");
  assert.deepEqual(asked, ["e1 e2", "e1 core", "e1 far"]);
  assert.deepEqual(heard, ["e1: far"]);
});

Deno.test("nobody is asked where the opening is known in time, nor at the root (WA2)", async () => {
  const { world, at, asked } = tree({ far: "far" });
  assert.equal(await outcome(world, at("e1").meanwhile(NAME, Promise.resolve(1)), 1_000), null);
  assert.equal(await outcome(world, at("e1").meanwhile(NAME, Promise.reject(new Error())), 1_000), null);
  assert.equal(await outcome(world, at("root").meanwhile(NAME, never), 1_000), null);
  assert.deepEqual(asked, []);
});

Deno.test("who has only heard of the home is not believed, and who is silent not waited for beyond a second (WA1)", async () => {
  const { world, at, asked } = tree({ e2: "far" }, ["core"]);
  const finding = at("e1").find(NAME);
  const again = at("e1").find(NAME);
  assert.equal(await outcome(world, finding, 900), undefined);
  assert.equal(asked.length, 3, "two who wait ask once");
  assert.deepEqual([await outcome(world, finding, 200), await outcome(world, again, 1)], [null, null]);
});

Deno.test("a site of a version that does not know the question is not the home (WA1)", async () => {
  const { world, at, all } = tree({ far: "far" });
  all.set("far", { serve: () => ({ head: new Uint8Array([1, 2, 3]) }) } as unknown as Whereabouts);
  assert.equal(await outcome(world, at("e1").find(NAME), 1_000), null);
});
