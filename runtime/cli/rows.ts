/**
 * Commands that look into an app's data: kv and tables. They decode here, in the operator's own process.
 */
import { decodeValue } from "../../functions/values/value.ts";
import { type Key, keyFromBytes, type KeyPart, packKey, unpackKey } from "../../store/model/key.ts";
import { type AdminClient, type StoredRowSummary } from "../deploy/client.ts";
import { AdminError, ROWS_A_CALL_MAX } from "../deploy/admin_api.ts";
import { jsonValue } from "../observe/json_value.ts";
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

/**
 * Bounds of `--limit`: the rows that a list shows by default, and a number that says "all" of what a person would look
 * at.
 */
const LIMIT = { min: 1, max: 1_000_000, or: 20 };
const LIST_OPTIONS: Record<string, OptionSpec> = {
  limit: { type: "string", value: "N", says: `at most so many rows, ${LIMIT.or} by default` },
  cursor: { type: "string", value: "KEY", says: "begin after this key, as a list before showed it" },
};

/**
 * Parses a key as people type it: a JSON array of strings, numbers, booleans, {"$bytes": base64} and {"$bigint":
 * digits}, or one bare word for a key of one part.
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
  const read = Array.isArray(parts) ? parts.map(keyPart) : [undefined];
  if (read.every((part) => part !== undefined)) return read;
  throw new UsageError(
    `${text} is no key: its parts are strings, numbers, booleans, {"$bytes": …} and {"$bigint": …}`,
  );
}

function keyPart(part: unknown): KeyPart | undefined {
  if (typeof part === "string" || typeof part === "number" || typeof part === "boolean") return part;
  const [field, ...more] = Object.entries(part ?? {});
  if (field === undefined || more.length > 0 || typeof field[1] !== "string") return undefined;
  try {
    if (field[0] === "$bigint") return BigInt(field[1]);
    return field[0] === "$bytes" ? Uint8Array.fromBase64(field[1]) : undefined;
  } catch {
    return undefined; // neither digits nor base64: refused as no key part
  }
}

/** Place of rows: the app, the parts that all their keys begin with, and how many of those are not shown. */
interface Place {
  readonly app: string;
  readonly lead: readonly KeyPart[];
  /** True where the rows may be at the root only, as a table's may; those have one part more. */
  readonly atRoot?: boolean;
}

const keyOf = ({ lead, atRoot }: Place, parts: readonly KeyPart[]): Key =>
  (atRoot ? packKey(["root"]) : "") + packKey([...lead, ...parts]) as Key;

/** Decodes a row; its key is without the parts that only say where it lives. */
function openRow(row: StoredRowSummary, place: Place) {
  const skip = place.lead.length + (place.atRoot ? 1 : 0);
  return {
    key: jsonValue(unpackKey(keyFromBytes(Uint8Array.fromHex(row.key))).slice(skip)),
    value: jsonValue(decodeValue(Uint8Array.fromBase64(row.value))),
    versionstamp: row.versionstamp,
  };
}

function showRow(row: ReturnType<typeof openRow>, args: Parsed, shell: Shell): void {
  shell.out(args.json ? JSON.stringify(row) : `${JSON.stringify(row.key)}  ${JSON.stringify(row.value)}`);
}

/** Shows one row; an absent one is told as an error. */
async function getRow(
  client: AdminClient,
  places: readonly Place[],
  text: string,
  args: Parsed,
  shell: Shell,
) {
  for (const place of places) {
    const [row] = await client.rows(place.app, { key: keyOf(place, parseKey(text)) });
    if (row === undefined) continue;
    showRow(openRow(row, place), args, shell);
    return EXIT.done;
  }
  throw new AdminError("row_absent", `${text} is absent`);
}

/** Shows rows below a prefix, one a line, and tells on stderr how to go on where there are more; returns how many. */
async function listRows(
  client: AdminClient,
  places: readonly Place[],
  list: Listed,
  args: Parsed,
  shell: Shell,
) {
  for (const place of places) {
    let shown = 0;
    let last = "";
    for await (const row of rowsBelow(client, place, list)) {
      if (shown === list.limit) {
        shell.err(`there are more: --cursor '${last}'`);
        break;
      }
      const open = openRow(row, place);
      showRow(open, args, shell);
      last = JSON.stringify(open.key);
      shown++;
    }
    if (shown > 0) return shown;
  }
  return 0;
}

interface Listed {
  readonly prefix: readonly KeyPart[];
  readonly limit: number;
  readonly cursor: readonly KeyPart[] | undefined;
}

function listed(args: Parsed, prefix: string | undefined): Listed {
  const cursor = args.text("cursor");
  return {
    prefix: prefix === undefined ? [] : parseKey(prefix),
    limit: numberOption(args, "limit", LIMIT),
    cursor: cursor === undefined ? undefined : parseKey(cursor),
  };
}

/** Yields rows page by page, and one more than the limit, which tells that there are more. */
async function* rowsBelow(client: AdminClient, place: Place, list: Listed): AsyncIterable<StoredRowSummary> {
  const prefix = keyOf(place, list.prefix);
  let after = list.cursor === undefined ? undefined : keyOf(place, list.cursor);
  for (let left = list.limit + 1; left > 0;) {
    const limit = Math.min(left, ROWS_A_CALL_MAX);
    const rows = await client.rows(place.app, { prefix, limit, after });
    yield* rows;
    left -= rows.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    after = keyFromBytes(Uint8Array.fromHex(last.key));
  }
}

/** `sojourn kv get|list` */
export const kv: Command = {
  name: "kv",
  usage: "get APP KEY | list APP [PREFIX]",
  summary: 'Shows an app\'s KV rows as the root has them. KEY is a word, or a JSON array: ["guests",1].',
  details: ["With --json one row a line: key, value, versionstamp."],
  verbs: { at: 0, names: ["get", "list"] },
  options: { ...CLUSTER_OPTIONS, ...LIST_OPTIONS },
  words: [2, 3],
  async run(args, shell) {
    const [verb, app = "", text] = args.words;
    const places = [{ app, lead: ["kv"] }];
    if (verb === "get") {
      if (text === undefined) throw new UsageError("kv get takes an app and a key");
      parseKey(text);
      return await getRow(await findCluster(args, shell), places, text, args, shell);
    }
    if (verb !== "list") throw new UsageError(`kv has get and list, not ${verb}`);
    const list = listed(args, text);
    await listRows(await findCluster(args, shell), places, list, args, shell);
    return EXIT.done;
  },
};

/** `sojourn tables APP`, `tables get APP TABLE KEY`, `tables list APP TABLE [PREFIX]` */
export const tables: Command = {
  name: "tables",
  usage: "APP [TABLE [PREFIX]] | get APP TABLE KEY | list APP TABLE [PREFIX]",
  summary: "Lists an app's tables, or shows a table's rows as the root has them.",
  details: ["With --json one row a line: key, value, versionstamp."],
  verbs: { at: 0, names: ["get", "list"] },
  options: { ...CLUSTER_OPTIONS, ...LIST_OPTIONS },
  words: [1, 4],
  async run(args, shell) {
    const [first = ""] = args.words;
    const hasVerb = args.words.length > 2 && (first === "get" || first === "list");
    const [app = "", table, text, more] = hasVerb ? args.words.slice(1) : args.words;
    if (more !== undefined) throw new UsageError(`${JSON.stringify(more)} is one argument too many`);
    if (table === undefined) return await listTables(await findCluster(args, shell), app, args, shell);
    const places = [{ app, lead: ["t", table] }, { app, lead: ["t", table], atRoot: true }];
    if (hasVerb && first === "get") {
      if (text === undefined) throw new UsageError("tables get takes an app, a table and a key");
      parseKey(text);
      return await getRow(await findCluster(args, shell), places, text, args, shell);
    }
    const list = listed(args, text);
    const client = await findCluster(args, shell);
    const shown = await listRows(client, places, list, args, shell);
    const declared = (shown > 0 ? [] : await client.apps()).find((found) => found.app === app)?.tables;
    if (declared?.includes(table) === false) {
      shell.err(`note: ${app} declares no table called ${table}; it has: ${declared.join(", ") || "none"}`);
    }
    return EXIT.done;
  },
};

async function listTables(client: AdminClient, app: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const found = (await client.apps()).find((candidate) => candidate.app === app);
  if (found === undefined) throw new AdminError("app_unknown", `no app is called ${JSON.stringify(app)}`);
  if (args.json) shell.out(JSON.stringify(found.tables));
  else for (const name of found.tables) shell.out(name);
  return EXIT.done;
}
