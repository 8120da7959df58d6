/**
 * `sojourn site --config FILE`: one site, until it is told to stop.
 *
 * The site's code is imported only when the command runs: the command line, `dev` included, has this table of commands,
 * and loading all of a site takes longer than most of them.
 *
 * SIGTERM and SIGINT stop it in order; a second one, or `--supervised` with its standard input closed for long, ends it
 * at once. A site whose disk has failed and works again ends with exit code 1, to be started anew; one with an
 * exception that nothing caught ends with exit code 70. SIGHUP makes a site read again what its file says of owners.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import { type Command, EXIT, type ExitCode, type Shell } from "../cli/command.ts";
import { type ChaosFile, chaosFileSchema } from "../chaos/site_chaos.ts";
import { ConfigError, explain, readSiteConfig } from "./config.ts";
import { describe, onUnexpected } from "./faults.ts";
import type { Site } from "./site.ts";

/**
 * Milliseconds after which a broken site that has not stopped in order ends without: what it has acknowledged is on
 * disk.
 */
const BROKEN_STOP_MS_MAX = 15_000;

/** The `site` command. */
export const siteCommand: Command = {
  name: "site",
  usage: "--config FILE",
  summary: "Runs one site.",
  options: {
    config: { type: "string", value: "FILE", says: "the site file (SOJOURN_* variables go over it)" },
    supervised: { type: "boolean", says: "stop when standard input closes" },
    chaos: {
      type: "string",
      value: "FILE",
      says: "faults to begin with, where the site file has chaos: true",
    },
  },
  words: [0, 0],
  async run(args, shell) {
    const file = args.text("config");
    if (file === undefined) {
      shell.err("site: --config FILE is missing");
      return EXIT.usage;
    }
    return await runSite(file, args.text("chaos"), args.flag("supervised"), shell);
  },
};

async function runSite(
  file: string,
  chaosFile: string | undefined,
  supervised: boolean,
  shell: Shell,
): Promise<ExitCode> {
  // A signal that comes while the site starts waits: without a listener it would end the process.
  let isAsked = false;
  let reload = () => void (isAsked = true);
  Deno.addSignalListener("SIGHUP", () => reload());
  let unexpected = (error: unknown): void => {
    shell.err(`site: unexpected, while it starts: ${describe(error)}`);
    Deno.exit(EXIT.broken);
  };
  onUnexpected((error) => unexpected(error));
  let site: Site;
  try {
    const config = await readSiteConfig(file, Deno.env.toObject());
    const { Site } = await import("./site.ts");
    site = await Site.start(config, chaosFile === undefined ? null : await readChaosFile(chaosFile));
  } catch (error) {
    if (
      !(error instanceof ConfigError || error instanceof StoreUnavailable ||
        error instanceof Deno.errors.AddrInUse)
    ) {
      throw error;
    }
    shell.err(error.message);
    return EXIT.failed;
  }
  reload = () => void site.reload(() => readSiteConfig(file, Deno.env.toObject()));
  if (isAsked) reload();
  unexpected = (error) => site.unexpected(error);
  const code = await Promise.race<ExitCode>([
    Promise.race([stopAsked(supervised), site.drained]).then(() => EXIT.done),
    site.recovered.then(() => EXIT.failed),
    site.broken.then(() => EXIT.broken),
  ]);
  const { promise: late, resolve } = Promise.withResolvers<void>();
  if (code === EXIT.broken) setTimeout(resolve, BROKEN_STOP_MS_MAX);
  // A site that can't be stopped in order ends all the same, and says why.
  const stopped = site.stop().catch((error) => site.faults.unexpected(error));
  await Promise.race([stopped, late]);
  return code === EXIT.done && site.faults.isBroken ? EXIT.broken : code;
}

/** Reads the faults that the dev process wrote for this site. @throws ConfigError */
async function readChaosFile(file: string): Promise<ChaosFile> {
  let raw: unknown;
  try {
    raw = JSON.parse(await Deno.readTextFile(file));
  } catch (error) {
    throw new ConfigError(
      `cannot read the faults in ${file}: ${error instanceof Error ? error.message : error}`,
    );
  }
  const parsed = chaosFileSchema.safeParse(raw);
  if (!parsed.success) {
    throw new ConfigError(`the faults in ${file} are invalid:\n${explain(parsed.error, raw)}`);
  }
  return parsed.data;
}

/** Resolves at the first request to stop; the second ends the process. */
async function stopAsked(supervised: boolean): Promise<void> {
  const asked = Promise.withResolvers<void>();
  let count = 0;
  const onSignal = () => {
    asked.resolve();
    if (++count > 1) Deno.exit(EXIT.failed);
  };
  Deno.addSignalListener("SIGTERM", onSignal);
  Deno.addSignalListener("SIGINT", onSignal);
  if (supervised) void stdinClosed().then(() => asked.resolve());
  await asked.promise;
}

async function stdinClosed(): Promise<void> {
  const buffer = new Uint8Array(64);
  try {
    while (await Deno.stdin.read(buffer) !== null);
  } catch {
    // Closed another way.
  }
}
