/** Files that `sojourn restore` is given: changed, put together of two, and with manifests that somebody with the key signed. */
import { createHash } from "node:crypto";
import {
  ArchiveError,
  ArchiveReader,
  assertSigned,
  type BackupManifest,
  encodeArchiveHead,
  fingerprintOf,
  PART_NAMES,
} from "../../runtime/backup/archive.ts";
import { type Dice, mutateBytes, mutateJson, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const SECRET = new TextEncoder().encode("a secret of the cluster, for files");
const OTHER = new TextEncoder().encode("another cluster's secret, for files");
const PIECE_BYTES_MAX = 700;

function fileOf(number: number, secret = SECRET): Uint8Array {
  const contents: [string, Uint8Array][] = [
    ["store/SOJOURN", new TextEncoder().encode("sojourn storage: sqlite 2\n")],
    ["homes/rows.db", new Uint8Array(300 * number).fill(number)],
    ["store/rows.db", new Uint8Array(1_000).map((_, at) => at * number)],
  ];
  const manifest: BackupManifest = {
    ...{ site: `edge-${number}`, parent: "core-1", tier: "edge", engine: "sqlite", release: "1.0.0" },
    ...{
      at: "2026-11-23T10:00:00.000Z",
      cut: `${number}`.repeat(32),
      incarnation: number,
      position: 8,
      pending: 0,
    },
    secrets: [fingerprintOf(secret)],
    parts: contents.map(([name, bytes]) => ({
      ...{ name, bytes: bytes.length },
      sha256: createHash("sha256").update(bytes).digest("hex"),
    })),
  };
  return joined([encodeArchiveHead(manifest, secret), ...contents.map(([, bytes]) => bytes)]);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** The codes of a file that is refused, or what it is. */
function read(file: Uint8Array, dice: Dice, secrets: readonly Uint8Array[] | null) {
  const parts: Uint8Array[] = [], names: string[] = [];
  try {
    const reader = new ArchiveReader({
      manifest: (_manifest, isSignedBy) => {
        if (secrets !== null) assertSigned(isSignedBy, secrets);
      },
      bytes: (_part, bytes) => void parts.push(bytes.slice()),
      part: ({ name }) => void names.push(name),
    });
    for (let at = 0; at < file.length;) {
      const length = 1 + dice.below(PIECE_BYTES_MAX);
      reader.push(file.subarray(at, at + length));
      at += length;
    }
    return { manifest: reader.end(), names, content: joined(parts) };
  } catch (error) {
    if (error instanceof ArchiveError) return error.code;
    throw error;
  }
}

/** What a changed file is taken for. */
export const backups: Target = {
  name: "backups",
  says: "refused, or the very file; without the secret a file whose parts are as it says",
  reaches: [
    ...["the same", "whole", "backup_invalid", "backup_damaged", "backup_cut_off", "backup_forged"],
    "manifest: backup_invalid",
  ],
  quick: 3_000,
  open() {
    const files = [1, 2, 3].map((number) => fileOf(number)), foreign = fileOf(4, OTHER);
    return {
      attempt(dice) {
        const original = dice.pick(files), other = dice.pick([...files, foreign]);
        if (dice.below(4) === 0) return manifestOf(dice, original, other);
        const file = dice.below(100) === 0 ? original : mutateBytes(dice, original, other);
        const isKnown = dice.below(4) > 0;
        const found = read(Uint8Array.from(file), dice, isKnown ? [SECRET] : null);
        if (typeof found === "string") return found;
        if (isKnown && !files.some((each) => same(each, Uint8Array.from(file)))) {
          throw new Finding("a file that nobody wrote is taken for one of the cluster");
        }
        if (found.names.length !== found.manifest.parts.length) throw new Finding("a part is missing");
        return isKnown ? "the same" : "whole";
      },
    };
  },
};

/** A manifest that has a right MAC names nothing but files of a site's data. */
function manifestOf(dice: Dice, original: Uint8Array, other: Uint8Array): string {
  let changed: unknown;
  try {
    changed = mutateJson(dice, jsonOf(original), jsonOf(other));
  } catch (error) {
    if (error instanceof SyntaxError) return "manifest: no JSON";
    throw error;
  }
  const json = new TextEncoder().encode(JSON.stringify(changed) ?? "");
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, json.length);
  const file = joined([
    original.subarray(0, 17),
    length,
    json,
    new Uint8Array(32),
    original.subarray(-2_000),
  ]);
  let manifest: BackupManifest | undefined;
  try {
    new ArchiveReader({ manifest: (found) => void (manifest = found) }).push(file);
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    if (manifest === undefined) return `manifest: ${error.code}`;
  }
  const names = manifest?.parts.map(({ name }) => name) ?? [];
  if (names.some((name) => !PART_NAMES.includes(name))) throw new Finding(`it names ${names.join(", ")}`);
  return "manifest: read";
}

function jsonOf(file: Uint8Array): unknown {
  const length = new DataView(file.buffer, file.byteOffset).getUint32(17);
  return JSON.parse(new TextDecoder().decode(file.subarray(21, 21 + length)));
}
