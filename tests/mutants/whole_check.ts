/**
 * The whole tool, over a small tree of its own: what it finds, what it keeps, and what it never touches.
 *
 * Beside the gate, since it starts the tool a dozen times: `deno test -A tests/mutants/whole_check.ts`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";

const REPOSITORY = new URL("../../", import.meta.url).pathname;

/** A lamp with a rule that a test sees, one that a simulator sees, one that nobody does, and a loop. */
const LAMP = `/**
 * A lamp.
 *
 * L1  It is dark before it is switched on.
 * L2  It is switched on once.
 * L3  It says so.
 */
export class Lamp {
  #isOn = false; // L1
  readonly told: string[] = [];
  #core = { count: (_: string) => {} };

  isOn(): boolean {
    return this.#isOn;
  }

  on(): number {
    // L2
    if (this.#isOn) return 0;
    this.#isOn = true;
    this.#core.count("on");
    this.told.push("on"); // L3
    return 1;
  }

  /** Nobody asks. */
  steps(from: number): number {
    return from + 1;
  }

  async settle(limit: number): Promise<void> {
    let at = 0;
    while (at < limit) {
      at += 1;
      await Promise.resolve();
    }
    if (this.told.length > 1) void Promise.reject(new Error("told twice"));
  }
}
`;

/** An import of the small tree, which has files that this one has not. */
const imported = (what: string, from: string): string => `import ${what} from "${from}";`;

const LAMP_TEST = `import assert from "node:assert/strict";
${imported("{ Lamp }", "../../store/lamp.ts")}

Deno.test("a lamp is dark before it is switched on (L1)", () => {
  assert.equal(new Lamp().isOn(), false);
});
`;

const SIMULATOR = `${imported("{ Lamp }", "../../../store/lamp.ts")}
${imported("type { Simulator }", "./simulator.ts")}

export const simulator: Simulator = {
  trials: ["seed 0", "seed 1"],
  run: async (trial) => {
    const lamp = new Lamp();
    const count = lamp.on() + lamp.on();
    await lamp.settle(trial === "seed 0" ? 1 : 3);
    return count === 1 ? null : { checker: "switches", message: count + " times" };
  },
};
`;

/** The simulators of this tree. */
const withLamp = (text: string): string =>
  text.replace(/^ {2}store: [\s\S]*?^\};/m, '  lamp: { folder: "tests/lamp", file: "lamp.ts" },\n};');

/** A tree that has the tool, and nothing else of the repository. */
async function toyTree(): Promise<string> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const write = async (path: string, text: string) => {
    await Deno.mkdir(join(root, path, ".."), { recursive: true });
    await Deno.writeTextFile(join(root, path), text);
  };
  for (const path of ["deno.json", "deno.lock", "tests/structure/sources.ts", "tests/structure/walk.ts"]) {
    await write(path, await Deno.readTextFile(REPOSITORY + path));
  }
  for await (const { name, isFile } of Deno.readDir(REPOSITORY + "tests/mutants")) {
    if (!isFile || /_test\.ts$|^whole_check/.test(name)) continue;
    await write(`tests/mutants/${name}`, await Deno.readTextFile(`${REPOSITORY}tests/mutants/${name}`));
  }
  const simulators = "tests/mutants/simulators/";
  await write(`${simulators}simulator.ts`, await Deno.readTextFile(`${REPOSITORY}${simulators}simulator.ts`));
  await write(`${simulators}mod.ts`, withLamp(await Deno.readTextFile(`${REPOSITORY}${simulators}mod.ts`)));
  await write("tests/mutants/simulators/lamp.ts", SIMULATOR);
  await write("store/lamp.ts", LAMP);
  await write("tests/store/lamp_test.ts", LAMP_TEST);
  await write("docs/testing.md", "# Testing\n");
  await new Deno.Command("git", { args: ["init", "-q"], cwd: root }).output();
  return root;
}

async function mutants(root: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "tests/mutants/main.ts", ...args],
    cwd: root,
    env: { NO_COLOR: "1" },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("mutants of a small tree: who catches which, what is kept, and what the page says", async () => {
  const root = await toyTree();
  try {
    assert.match(await mutants(root, "rules"), /store\/lamp\.ts L1 {2}code 1, asserts 0, tests 1/);
    assert.match(await mutants(root, "survey"), /3 trials, 0 that are not tried/);
    const said = await mutants(root, "run");
    const ended = (outcome: string, what: string) =>
      assert.ok(
        said.split("\n").some((line) => line.startsWith(outcome) && line.includes(what)),
        `${outcome} ${what}\n${said}`,
      );
    ended("caught", "truth: this.#isOn → true: tests/store/lamp_test.ts a lamp is dark");
    // A test of its own where a simulator sees it, too: it was first.
    ended("caught", "guard never: this.#isOn → false: lamp seed 0: switches: 2 times");
    ended("caught", "guard always: this.told.length > 1 → true: lamp seed 0: unhandled: Error: told twice");
    ended("survived", 'left out: this.told.push("on"); → nothing');
    ended("harmless", 'left out: this.#core.count("on"); → nothing');
    ended("not passed", "off by one: from + 1 → from");
    ended("hung", "left out: at += 1; → nothing");
    assert.equal(await Deno.readTextFile(join(root, "store/lamp.ts")), LAMP);

    const again = await mutants(root, "run");
    assert.match(again, /"outcomes":\{\}/);
    await Deno.writeTextFile(
      join(root, "store/lamp.ts"),
      LAMP.replace("return from + 1;", "return from + 2;"),
    );
    const changed = await mutants(root, "run");
    const [, ...tried] = changed.trim().split("\n").reverse();
    assert.ok(tried.length > 0 && tried.every((line) => line.includes(" Lamp.steps: ")), changed);

    const [line = ""] = (await mutants(root, "show")).split("\n").filter((each) =>
      each.includes("told.push")
    );
    const [, id = ""] = line.split(" ");
    await mutants(root, "judge", "equivalent", id, "--reason", "nobody reads what it told");
    assert.ok(!(await mutants(root, "show")).includes(id));
    await mutants(root, "table");
    const page = await Deno.readTextFile(join(root, "docs/mutants.md"));
    const shown = page.replaceAll(/\s+/g, " ");
    assert.match(shown, /Of 3 numbered rules .* 2 have a mutant that is caught; of 1 there is a reason/);
    assert.match(page, /\*\*L3\*\* It says so\. _nobody reads what it told_/);
    assert.match(shown, /- `Lamp.steps: arithmetic: \+ → -`: survived 3 trials/);
    const rules = JSON.parse(await Deno.readTextFile(join(root, "tests/mutants/rules.json"))) as {
      rule: string;
      by: Record<string, number>;
    }[];
    assert.deepEqual(rules.map(({ rule, by }) => [rule, Object.keys(by)]), [
      ["store/lamp.ts L1", ["tests/store/lamp_test.ts"]],
      ["store/lamp.ts L2", ["lamp: switches"]],
      ["store/lamp.ts L3", []],
    ]);
    await mutants(root, "judge", "rule", "store/lamp.ts L1", "--reason", "lamps are dark");
    await mutants(root, "table");
    assert.match(await Deno.readTextFile(join(root, "docs/mutants.md")), /\*\*L1\*\* .* _lamps are dark_/);

    // What was published is all that another checkout has.
    await Deno.remove(join(root, ".cache"), { recursive: true });
    await Deno.remove(join(root, "tests/mutants/verdicts/rules.json"));
    await mutants(root, "table");
    assert.equal(await Deno.readTextFile(join(root, "docs/mutants.md")), page);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("a mutant that leaves something behind is tried by itself, and so are its neighbours", async () => {
  const root = await toyTree();
  try {
    // What is once true there stays: whoever comes after it in its process would be caught by it.
    const told = 'this.told.push("on"); // L3';
    await Deno.writeTextFile(
      join(root, "store/lamp.ts"),
      LAMP.replace(told, "if (this.told.length > 0) Reflect.set(globalThis, 'spoiled', true);"),
    );
    await Deno.writeTextFile(
      join(root, "tests/mutants/simulators/lamp.ts"),
      SIMULATOR.replace(
        "return count",
        'if (Reflect.has(globalThis, "spoiled")) return { checker: "spoiled", message: "" };\n    return count',
      ),
    );
    await mutants(root, "survey");
    const said = await mutants(root, "run");
    const spoiled = said.split("\n").filter((line) => line.includes(": spoiled"));
    assert.ok(spoiled.length > 0 && spoiled.every((line) => line.includes(" store/lamp.ts:22 ")), said);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
