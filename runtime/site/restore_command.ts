/**
 * `sojourn restore FILE`: puts back a copy that `sojourn backup` made, on the machine of the copied site, while that is
 * stopped; or, with `--verify`, only compares the file with its digests.
 */
import { ArchiveError } from "../backup/archive.ts";
import {
  type Restoration,
  RestoreError,
  restoreSite,
  type Verified,
  verifyBackup,
} from "../backup/restore.ts";
import { sizeText } from "../cli/backup.ts";
import { type Command, EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "../cli/command.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { ConfigError, readSiteConfig, type SiteConfig } from "./config.ts";

/** Milliseconds of work after which progress is told, and told again. */
const QUIET_MS = 1_000;

/** The `restore` command. */
export const restoreCommand: Command = {
  name: "restore",
  usage: "FILE --config FILE --secret FILE [--replace] | FILE --verify [--secret FILE]",
  summary: [
    "Puts the data of a stopped site back from a backup. The site file says where; it has to name a new secret, the same",
    "at all sites that are restored, and --secret a file with the one that was in force when the backup was made: who has",
    "that may have seen what the backup lacks, and is kept out. Stateful sessions go on where all sites are restored from",
    "one `sojourn backup --tree`. With --verify nothing is written: the file is compared with its digests, and where",
    "--secret is given, it is found out whether the cluster wrote it.",
  ].join("\n"),
  options: {
    config: { type: "string", value: "FILE", says: "the site file (SOJOURN_* variables go over it)" },
    secret: { type: "string", value: "FILE", says: "the secret of the cluster when the backup was made" },
    replace: { type: "boolean", says: "move aside what is in the site's data folder, within it" },
    verify: { type: "boolean", says: "only compare the file with its digests" },
  },
  words: [1, 1],
  async run(args, shell) {
    const [file = ""] = args.words;
    try {
      return args.flag("verify") ? await verify(file, args, shell) : await restore(file, args, shell);
    } catch (error) {
      if (error instanceof ConfigError) throw new AdminError("site_file_invalid", error.message);
      if (!(error instanceof ArchiveError || error instanceof RestoreError)) throw error;
      throw new AdminError(
        error.code,
        error instanceof ArchiveError ? `${file}: ${error.message}` : error.message,
      );
    }
  },
};

async function verify(file: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  if (args.text("config") !== undefined || args.flag("replace")) {
    throw new UsageError("--verify writes nothing: --config and --replace make no sense with it");
  }
  const secretFile = args.text("secret");
  const secrets = secretFile === undefined ? null : await secretsIn({ secretFile });
  const verified = await verifyBackup(file, secrets, progress(shell));
  if (args.json) shell.out(JSON.stringify(summary(verified)));
  else {
    shell.out(describe(verified));
    shell.out(
      verified.isSigned === true
        ? "  whole, and signed by the cluster"
        : "  whole; who wrote it is only known with --secret",
    );
  }
  return EXIT.done;
}

async function restore(file: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const configFile = args.text("config"), secretFile = args.text("secret");
  if (configFile === undefined || secretFile === undefined) {
    throw new UsageError("--config and --secret are needed, or --verify");
  }
  const config = await readSiteConfig(configFile, Deno.env.toObject());
  const restored = await restoreSite({
    file,
    site: { id: config.id, isRoot: config.parent === null, engine: config.engine, data: config.data },
    secrets: await secretsIn(config),
    formerSecrets: await secretsIn({ secretFile }),
    replace: args.flag("replace"),
    now: new Date().toISOString(),
    progress: progress(shell),
  });
  if (args.json) {
    shell.out(JSON.stringify({ ...summary(restored), data: config.data, aside: restored.aside }));
  } else tell(restored, config.data, shell);
  return EXIT.done;
}

/**
 * Reads the secrets. The code that opens data is loaded only when it is needed: the command line has this table, too.
 */
async function secretsIn(config: Pick<SiteConfig, "secretFile">): Promise<readonly Uint8Array[]> {
  const { readSecrets } = await import("./data_folder.ts");
  return await readSecrets(config);
}

function tell(restored: Restoration, data: string, shell: Shell): void {
  shell.out(describe(restored));
  shell.out(
    `  is in ${data}; start the site when all sites are restored from backups of moment ${restored.manifest.cut}`,
  );
  if (restored.aside !== null) shell.out(`  what was there is in ${restored.aside}`);
}

const describe = ({ manifest: { site, at, release }, bytes, sha256 }: Verified): string =>
  `${site} as of ${at}, ${sizeText(bytes)}, of release ${release}, SHA-256 ${sha256}`;

function summary({ manifest, bytes, sha256, isSigned }: Verified): Record<string, unknown> {
  const { site, parent, tier, engine, release, at, cut, incarnation, position, pending, parts } = manifest;
  return {
    ...{ site, parent, tier, engine, release, at, cut, incarnation, position, pending, bytes, sha256 },
    signed: isSigned,
    parts,
  };
}

function progress(shell: Shell): (says: string, bytes: number, of: number) => void {
  let toldMs = performance.now();
  return (says, bytes, of) => {
    if (performance.now() - toldMs < QUIET_MS) return;
    toldMs = performance.now();
    shell.err(`${says}: ${sizeText(bytes)} of ${sizeText(of)}`);
  };
}
