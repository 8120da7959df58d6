/** The page on queues has every queue of the code, with its bound as the code has it. */
import { strict as assert } from "node:assert";
import { join, relative, resolve } from "node:path";
import { DEFAULT_LINK_LIMITS as LINK } from "../../runtime/link/limits.ts";
import { DEFAULT_ISOLATE_LIMITS as ISOLATE } from "../../runtime/isolate/limits.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
const RUNTIME = join(ROOT, "runtime");
/** Folders with queues of a site, each with what the page's paths are relative to. */
const FOLDERS = [
  { folder: RUNTIME, from: RUNTIME },
  { folder: join(ROOT, "functions", "sessions", "serve"), from: ROOT },
  { folder: join(ROOT, "functions", "sessions", "attach"), from: ROOT },
];

/** How a constant is called that bounds what waits. */
const BOUND =
  /^(?:export )?const ((?:[A-Z]+_)*(?:QUEUED?|QUEUES|WAITING|WINDOW|BACKLOG|UNREAD|BUFFERED|COMING|OUTPUTS|KEPT|RING|WATCHES|INLINE|HELD|WATCHED)(?:_[A-Z]+)*) = (.+);$/gm;
/** So called, and no queue. */
const OTHERS: ReadonlySet<string> = new Set([
  "observe/traffic.ts WINDOW_S",
  "storage/sqlite.ts INLINE_VALUE_BYTES",
]);
/** Of the page, what is a field of limits that are configured. */
const FIELDS: Readonly<Record<string, number>> = {
  waitingMax: ISOLATE.waitingMax,
  bodyWindowBytes: LINK.bodyWindowBytes,
  messageWindowBytes: LINK.messageWindowBytes,
  queueBytesMax: LINK.queueBytesMax,
};

async function* sources(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory && entry.name !== "inside") yield* sources(path);
    else if (entry.name.endsWith(".ts") && !entry.name.endsWith("_test.ts")) yield path;
  }
}

/** By "file NAME". */
async function bounds(): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const { folder, from } of FOLDERS) {
    for await (const path of sources(folder)) {
      for (const [, name = "", value = ""] of (await Deno.readTextFile(path)).matchAll(BOUND)) {
        if (!name.endsWith("_MS")) found.set(`${relative(from, path)} ${name}`, numberOf(value));
      }
    }
  }
  return found;
}

/** The product, or the shift, that a constant is written as. */
function numberOf(text: string): number {
  const known = text.replace("CHUNK_BYTES_MAX", "65536");
  const [left = "", right] = known.split(" << ");
  const product = left.split(" * ").reduce(
    (product, factor) => product * Number(factor.replaceAll("_", "")),
    1,
  );
  const value = product * 2 ** Number(right ?? 0);
  assert.ok(Number.isSafeInteger(value), text);
  return value;
}

/** As the page writes it. */
function told(value: number): RegExp {
  const of = (count: number, unit: string) =>
    new RegExp(`(?<![\\d,])${count.toLocaleString("en")}${unit}(?!\\d|,\\d)`);
  if (value >= 1 << 20 && value % (1 << 20) === 0) return of(value / (1 << 20), " MiB");
  if (value >= 1 << 16 && value % (1 << 10) === 0) return of(value / (1 << 10), " KiB");
  return of(value, "");
}

Deno.test("every queue is on the page with its bound, and the page has none that is not there", async () => {
  const page = await Deno.readTextFile(join(ROOT, "docs", "queues.md"));
  const rows = page.split("\n").filter((line) => line.startsWith("| ")).slice(2)
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
  const known = await bounds();
  const unseen = new Set(known.keys());
  for (const name of OTHERS) assert.ok(unseen.delete(name), `${name} is not in the code any more`);
  for (const [queue = "", bound = "", beyond = "", counts = "", code = ""] of rows) {
    assert.ok(queue !== "" && beyond !== "", `${queue}: what happens at its bound?`);
    assert.match(counts, /^(?:yes|no|as the row before)$/, queue);
    let cited = 0;
    for (const part of code.split(";").map((part) => part.trim())) {
      const field = /^`(\w+)` of `([\w/.]+)`$/.exec(part);
      if (field !== null) {
        const value = FIELDS[field[1] ?? ""];
        assert.ok(value !== undefined, `${queue}: ${part}`);
        assert.match(bound, told(value), `${queue}: ${part} is ${value}`);
        cited++;
        continue;
      }
      const [, file = "", names = ""] = /^`([\w/.]+)` ([\w, ]+)$/.exec(part) ?? [];
      for (const name of names.split(", ")) {
        const value = known.get(`${file} ${name}`);
        assert.ok(value !== undefined, `${queue}: the code has no ${file} ${name}`);
        assert.match(bound, told(value), `${queue}: ${name} is ${value}`);
        unseen.delete(`${file} ${name}`);
        cited++;
      }
    }
    assert.ok(cited > 0, `${queue}: which code bounds it?`);
  }
  assert.deepEqual([...unseen], [], "bounds of queues that docs/queues.md does not have");
});
