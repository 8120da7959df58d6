/** Files with probes, and files that hold all their mutants: they do what they did, and each mutant does what its text would. */
import assert from "node:assert/strict";
import { instrument } from "./instrument.ts";
import { mutantsOf, mutated } from "./mutant.ts";
import { type Change, changesOf } from "./operators.ts";
import { isSwitchable, switched } from "./switched.ts";
import { parse, syntaxErrors } from "./syntax.ts";

/** Something of everything that is changed. */
const PROGRAM = `
interface Item { readonly name: string; readonly size: number; readonly tags?: readonly string[] }

const LIMIT = 2 + 1;

export class Box {
  #items: Item[] = [];
  #isOpen = true;
  #log: string[] = [];
  #first: string | undefined;

  constructor(name: string) {
    this.#log.push("made");
    this.#log.push(name ?? "none");
  }

  add(item: Item): boolean {
    if (!this.#isOpen || this.#items.length >= LIMIT) return false;
    this.#first ??= item.name;
    const copy = { ...item, size: Math.max(item.size, 1), tags: item.tags ?? [] };
    if (copy.tags.some((tag) => tag === "heavy") && copy.size < 5) {
      this.#log.push("heavy");
      return false;
    }
    this.#items.push(copy);
    this.#log.push(item.name + "!");
    return true;
  }

  async close(): Promise<number> {
    const before = await this.#settled();
    this.#isOpen = false;
    await this.#settled();
    this.#log.push("closed");
    return before;
  }

  async #settled(): Promise<number> {
    await Promise.resolve();
    this.#log.push(this.#isOpen ? "open" : "shut");
    return this.#items.length + 1;
  }

  names(from: number): readonly string[] {
    const out: string[] = [];
    for (const { name } of this.#items.filter(({ size }) => size > 1)) {
      if (name === "skip") {
        this.#log.push("skipped");
        continue;
      }
      out.push(name);
    }
    let at = 0;
    while (at < from && out.length > 0) {
      at += 1;
      out.shift();
    }
    return [...out.toSorted(), this.#first ?? "", ...this.#log];
  }

  find(name: string): Item | undefined {
    const found = this.#items.find((item) => item.name === name);
    const tags = found?.tags?.filter((tag) => tag !== "x").length ?? -1;
    if (tags < 0) this.#log.push("without");
    else if (tags === 0) this.#log.push("bare");
    else this.#log.push("tagged");
    return found;
  }
}

export async function story(): Promise<unknown> {
  const box = new Box("b");
  const out: unknown[] = [];
  for (const [name, size, tags] of [["d", 0], ["a", 3, ["heavy"]], ["c", 2], ["skip", 4, ["x"]], ["e", 9], ["f", 1]] as const) {
    out.push(box.add(tags === undefined ? { name, size } : { name, size, tags }));
  }
  out.push(box.find("skip") !== undefined, box.find("none"), box.find("c")?.size);
  out.push(await box.close(), box.add({ name: "late", size: 1 }), box.names(0), box.names(1));
  return out;
}
`;

const parsed = parse("store/box.ts", PROGRAM);

interface Story {
  readonly story: () => Promise<unknown>;
}

let modules = 0;
async function load(text: string): Promise<Story> {
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(path, text);
    return await import(`file://${path}#${++modules}`) as Story;
  } finally {
    await Deno.remove(path);
  }
}

/** What a story comes to: its value, or that it threw, or that it does not end. */
async function endOf({ story }: Story): Promise<string> {
  try {
    return JSON.stringify(await story());
  } catch (error) {
    return `thrown: ${error instanceof Error ? error.message.replaceAll(/[()]/g, "") : error}`;
  }
}

const SWITCH = new URL("./switch.ts", import.meta.url).href;
const PROBES = new URL("./probes.ts", import.meta.url).href;

Deno.test("a file with probes does what it did, and says what it has passed", async () => {
  const { text, probeAt } = instrument(parsed, PROBES);
  assert.deepEqual(syntaxErrors("store/box.ts", text), []);
  const { takePasses } = await import("./probes.ts");
  const plain = await load(PROGRAM), probed = await load(text);
  takePasses();
  assert.equal(await endOf(probed), await endOf(plain));
  const passed = new Set(takePasses()["store/box.ts"]);
  const isPassed = (part: string) => passed.has(probeAt(PROGRAM.indexOf(part)) ?? -1);
  assert.ok(isPassed('this.#log.push("heavy")'));
  assert.ok(isPassed('this.#log.push("bare")'));
  assert.ok(!isPassed('this.#log.push("tagged")'));
  assert.ok(isPassed("found?.tags?.filter") && !isPassed('"none"'));
});

Deno.test("a file with all its mutants does what it did, and what each of them does while that one is in force (SW1)", async () => {
  // What would not end is not run here.
  const isEndless = ({ operator, start }: Change) =>
    operator === "left out" && ["at += 1;", "out.shift();"].some((text) => PROGRAM.startsWith(text, start));
  const changes = changesOf(parsed).filter((change) => isSwitchable(change) && !isEndless(change));
  assert.ok(changes.length > 80, `${changes.length} changes`);
  const numbered = changes.map((change, at) => ({ number: at + 1, change }));
  const all = await load(switched(parsed, numbered, SWITCH));
  const { activate } = await import("./switch.ts");
  const plain = await endOf(await load(PROGRAM));
  assert.equal(await endOf(all), plain);
  let differing = 0;
  for (const { number, change } of numbered) {
    const alone = await endOf(await load(mutated(PROGRAM, change)));
    activate(number);
    const together = await endOf(all);
    activate(0);
    const { operator, start, end, becomes } = change;
    const what = `${operator}: ${PROGRAM.slice(start, end)} → ${becomes}`;
    assert.equal(together, alone, what);
    if (alone !== plain) differing++;
    assert.equal(await endOf(all), plain, `after ${what}`);
  }
  assert.ok(differing > changes.length / 2, `${differing} of ${changes.length} do something else`);
});

Deno.test("what runs as a file is loaded can't be switched (SW2)", async () => {
  const fixed = changesOf(parsed).filter((change) => !isSwitchable(change));
  assert.deepEqual(fixed.map(({ start, end }) => PROGRAM.slice(start, end)), ["2 + 1"]);
  assert.equal((await mutantsOf(parsed, [])).length, changesOf(parsed).length);
});
