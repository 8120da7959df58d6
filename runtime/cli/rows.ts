/**
 * Commands that look into an app's data: kv and tables. They decode here, in the operator's own process.
 */
import { decodeValue } from "../../functions/value.ts";
import { type Key, keyFromBytes, type KeyPart, packKey, unpackKey } from "../../store/key.ts";
import type { AdminClient, StoredRowSummary } from "../deploy/client.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import {
  type Command,
  EXIT,
  type ExitCode,
  numberOption,
  type OptionSpec,
  type Parsed,
  type Shell,
  UsageError,
} from "./command.ts";

const LIMIT = { min: 1, max: 100, or: 20 };
const LIMIT_OPTION: Record<string, OptionSpec> = {
  limit: { type: "string", value: "N", says: `at most so many rows (${LIMIT.or}, up to ${LIMIT.max})` },
};

/**
 * A key as people type it: a JSON array of strings, numbers and booleans, or one bare word for a key of one part.
 *
 * @throws UsageError
 */
export function parseKey(text: string): KeyPart[] {
  if (!text.startsWith("[")) return [text];
  let parts: unknown;
  try {
    parts = JSON.parse(text);
  } catch {
    throw new UsageError(`${text} is no key: expected a word, or a JSON array like ["guests",1]`);
  }
  const isPart = (part: unknown): part is string | number | boolean =>
    typeof part === "string" || typeof part === "number" || typeof part === "boolean";
  if (!Array.isArray(parts) || !parts.every(isPart)) {
    throw new UsageError(`${text} is no key: its parts are strings, numbers and booleans`);
  }
  return parts;
}

/** A value as JSON, with what JSON lacks told by its type. */
export function jsonValue(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_name, field: unknown) => {
      if (typeof field === "bigint") return { $bigint: `${field}` };
      if (field instanceof Uint8Array) return { $bytes: field.toBase64() };
      if (field instanceof Map) return { $map: [...field] };
      if (field instanceof Set) return { $set: [...field] };
      return field;
    }) ?? "null",
  );
}

/** A row in the open; the first `skip` parts of its key say where it lives, not what it is called. */
function openRow(row: StoredRowSummary, skip: number) {
  return {
    key: jsonValue(unpackKey(keyFromBytes(Uint8Array.fromHex(row.key))).slice(skip)),
    value: jsonValue(decodeValue(Uint8Array.fromBase64(row.value))),
    versionstamp: row.versionstamp,
  };
}

function showRows(rows: readonly StoredRowSummary[], skip: number, args: Parsed, shell: Shell): ExitCode {
  const open = rows.map((row) => openRow(row, skip));
  if (args.json) shell.out(JSON.stringify(open));
  else for (const row of open) shell.out(`${JSON.stringify(row.key)}  ${JSON.stringify(row.value)}`);
  return EXIT.done;
}

/** `sojourn kv get|list` */
export const kv: Command = {
  name: "kv",
  usage: "get APP KEY | list APP [PREFIX]",
  summary: 'Shows an app\'s KV rows as the root has them. KEY is a word, or a JSON array: ["guests",1].',
  options: { ...CLUSTER_OPTIONS, ...LIMIT_OPTION },
  words: [2, 3],
  async run(args, shell) {
    const [verb, app = "", text] = args.words;
    if (verb === "get") {
      if (text === undefined) throw new UsageError("kv get takes an app and a key");
      const client = await findCluster(args, shell);
      const rows = await client.rows(app, { key: packKey(["kv", ...parseKey(text)]) });
      if (rows.length > 0) return showRows(rows, 1, args, shell);
      if (args.json) shell.out("[]");
      shell.err(`${text} is absent`);
      return EXIT.failed;
    }
    if (verb !== "list") throw new UsageError(`kv has get and list, not ${verb}`);
    const limit = numberOption(args, "limit", LIMIT);
    const prefix = packKey(["kv", ...text === undefined ? [] : parseKey(text)]);
    const client = await findCluster(args, shell);
    return showRows(await client.rows(app, { prefix, limit }), 1, args, shell);
  },
};

/** `sojourn tables APP [TABLE [PREFIX]]` */
export const tables: Command = {
  name: "tables",
  usage: "APP [TABLE [PREFIX]]",
  summary: "Lists an app's tables, or a table's rows as the root has them.",
  options: { ...CLUSTER_OPTIONS, ...LIMIT_OPTION },
  words: [1, 3],
  async run(args, shell) {
    const [app = "", table, text] = args.words;
    const limit = numberOption(args, "limit", LIMIT);
    const rest = text === undefined ? [] : parseKey(text);
    const client = await findCluster(args, shell);
    if (table === undefined) return await listTables(client, app, args, shell);
    const below = packKey(["t", table, ...rest]);
    const rows = await client.rows(app, { prefix: below, limit });
    if (rows.length > 0) return showRows(rows, 2, args, shell);
    const atRoot = packKey(["root"]) + below as Key;
    return showRows(await client.rows(app, { prefix: atRoot, limit }), 3, args, shell);
  },
};

async function listTables(client: AdminClient, app: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const found = (await client.apps()).find((candidate) => candidate.app === app);
  if (found === undefined) {
    shell.err(`app_unknown: no app is called ${JSON.stringify(app)}`);
    return EXIT.failed;
  }
  if (args.json) shell.out(JSON.stringify(found.tables));
  else for (const name of found.tables) shell.out(name);
  return EXIT.done;
}
