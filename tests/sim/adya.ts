/**
 * The outside checker: crate `adya`, an implementation of Elle in Rust. Cargo builds it once into the checkout's
 * cache (some 40 s); where there is no cargo, or no way to fetch the crate, there is no second opinion.
 */
import { join, resolve } from "node:path";

const VERSION = "0.1.0";
const ROOT = resolve(import.meta.dirname ?? ".", "..", "..", ".cache", `adya-${VERSION}`);
const PROGRAM = join(ROOT, "bin", "adya");
/**
 * What sessions are promised: no cycle that has at most one anti-dependency, process order included. `causal` by
 * its own name misses violations of it.
 */
const CHECK = [
  "check",
  "--model=list-append",
  "--consistency-models=read-committed",
  "--anomalies=G0-process,G1c-process,G-single-process",
];

/** What it says of a history; nothing of an empty one. */
export type Opinion = "valid" | "violated" | "unknown";

/** The checker, or why there is none. */
export type OutsideChecker = { readonly check: (history: string) => Promise<Opinion> } | {
  readonly why: string;
};

/** Finds the checker, or builds it. */
export async function outsideChecker(): Promise<OutsideChecker> {
  if (await isThere()) return { check };
  const built = await run("cargo", [
    ...["install", "adya", "--version", VERSION, "--no-default-features", "--locked", "--quiet"],
    ...["--root", ROOT],
  ]);
  if (built === null) return { why: "there is no cargo" };
  if (await isThere()) return { check };
  return { why: `cargo cannot build it: ${built.errors.trim().split("\n").at(-1)}` };
}

const isThere = () => Deno.stat(PROGRAM).then(() => true, () => false);

async function check(history: string): Promise<Opinion> {
  if (history.trim() === "") return "unknown";
  const file = await Deno.makeTempFile({ suffix: ".jsonl" });
  try {
    await Deno.writeTextFile(file, history);
    const ended = await run(PROGRAM, [...CHECK, file]);
    if (ended?.code === 0) return "valid";
    if (ended?.code === 1) return "violated";
    if (ended?.output.includes("\tunknown") === true) return "unknown"; // no transaction depends on another
    throw new Error(`adya ended with ${ended?.code}: ${ended?.errors}`);
  } finally {
    await Deno.remove(file);
  }
}

async function run(
  program: string,
  args: readonly string[],
): Promise<{ code: number; output: string; errors: string } | null> {
  try {
    const { code, stdout, stderr } = await new Deno.Command(program, { args: [...args] }).output();
    const text = new TextDecoder();
    return { code, output: text.decode(stdout), errors: text.decode(stderr) };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
