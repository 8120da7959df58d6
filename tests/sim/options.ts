/** The command line of the simulator. */

/** What `deno task sim` is asked to do. */
export interface Options {
  readonly first: number;
  readonly count: number;
  /** So many sites a run, instead of a drawn few. */
  readonly sites: number | null;
  readonly isVerbose: boolean;
  readonly runsVariants: boolean;
  /** The only variant to run; with `shrinks`, the store to shrink on. */
  readonly variant: string | null;
  readonly shrinks: boolean;
  /** Changes of the plan, as `--shrink` prints them. */
  readonly plan: string | null;
  /** Virtual hours of the endurance run; 0: none. */
  readonly hours: number;
  /** The scenarios to crash in, or one of them, or one crossing of it; null: none. */
  readonly crashPoints: string | null;
}

export const USAGE = `deno task sim --seeds N [--seed S] [--sites N] [--plan JSON] [--json] [-v]
deno task sim --variants | --variant NAME
deno task sim --seed S --shrink [--variant NAME] [--sites N]
deno task sim --crash-points [SCENARIO[/CROSSING]] [-v]
deno task sim --hours N [--seed S]`;

const WITH_VALUE = ["--seeds", "--seed", "--sites", "--variant", "--plan", "--hours"];
const WITHOUT = ["--variants", "--json", "-v", "--shrink"];
const SEEDS = 200;

/**
 * Reads the arguments.
 *
 * @throws Error that says what is wrong and what there is.
 */
export function parseOptions(args: readonly string[]): Options {
  const flags = flagsOf(args);
  const number = (name: string, otherwise: number, most = 999_999_999) => {
    const text = flags.get(name);
    if (text === undefined) return otherwise;
    if (!/^\d{1,9}$/.test(text) || Number(text) > most) {
      throw new Error(`${name} needs a number up to ${most}, not '${text}'`);
    }
    return Number(text);
  };
  const isSingle = flags.has("--seed") && !flags.has("--seeds");
  const isOther = ["--variants", "--variant", "--hours", "--crash-points"].some((name) => flags.has(name));
  const sites = number("--sites", 0, 2_000);
  if (flags.has("--sites") && sites < 2) throw new Error("--sites needs 2 at least: a root and an edge");
  return {
    first: number("--seed", 0),
    count: number("--seeds", isOther ? 0 : isSingle ? 1 : SEEDS),
    sites: sites === 0 ? null : sites,
    isVerbose: flags.has("-v"),
    runsVariants: flags.has("--variants") || flags.has("--variant") && !flags.has("--shrink"),
    variant: flags.get("--variant") ?? null,
    shrinks: flags.has("--shrink"),
    plan: flags.get("--plan") ?? null,
    hours: number("--hours", 0, 1_000),
    crashPoints: flags.get("--crash-points") ?? null,
  };
}

function flagsOf(args: readonly string[]): Map<string, string> {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    const [name = ""] = arg.split("=");
    const inline = arg.includes("=") ? arg.slice(name.length + 1) : undefined;
    const next = args[i + 1];
    if (WITH_VALUE.includes(name)) {
      const value = inline ?? args[++i];
      if (value === undefined) throw new Error(`${name} needs a value:\n${USAGE}`);
      flags.set(name, value);
    } else if (name === "--crash-points") {
      if (inline === undefined && next !== undefined && !next.startsWith("-")) i++;
      flags.set(name, inline ?? (next === undefined || next.startsWith("-") ? "" : next));
    } else if (WITHOUT.includes(arg)) flags.set(arg, "");
    else throw new Error(`cannot take '${arg}':\n${USAGE}`);
  }
  return flags;
}
