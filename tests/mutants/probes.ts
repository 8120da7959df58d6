/**
 * Where a run has been. Files that are instrumented (instrument.ts) import this, and count here what they pass.
 *
 * What was passed is taken by whoever runs trials one by one, or written to the folder that the environment names when
 * a test's module is unloaded.
 */
const passes = new Map<string, Uint8Array>();

/** Called once by each instrumented file: what marks its probes. */
export function probesOf(file: string, count: number): (probe: number) => void {
  const marks = passes.get(file) ?? new Uint8Array(count);
  passes.set(file, marks);
  return (probe) => {
    marks[probe] = 1;
  };
}

/** Probes passed since this was asked last, by file. */
export function takePasses(): Record<string, number[]> {
  const found: Record<string, number[]> = {};
  for (const [file, marks] of passes) {
    const passed = [...marks.entries()].flatMap(([probe, mark]) => mark > 0 ? [probe] : []);
    if (passed.length > 0) found[file] = passed;
    marks.fill(0);
  }
  return found;
}

/** What a module has passed as it was loaded counts for whatever runs in it. */
export const PASSES_FOLDER = "MUTANTS_PASSES";

const folder = Deno.permissions.querySync({ name: "env" }).state === "granted"
  ? Deno.env.get(PASSES_FOLDER)
  : undefined;
if (folder !== undefined) {
  globalThis.addEventListener("unload", () => {
    const found = takePasses();
    if (Object.keys(found).length === 0) return;
    Deno.writeTextFileSync(`${folder}/${crypto.randomUUID()}.json`, JSON.stringify(found));
  });
}
