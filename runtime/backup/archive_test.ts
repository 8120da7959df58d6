import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fc from "fast-check";
import {
  archiveBytes,
  ArchiveError,
  ArchiveReader,
  assertSigned,
  type BackupManifest,
  encodeArchiveHead,
  fingerprintOf,
  PART_NAMES,
} from "./archive.ts";

const SECRET = new TextEncoder().encode("a secret of the cluster");
const OTHER = new TextEncoder().encode("a secret of another one");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

const CONTENTS: readonly [string, Uint8Array][] = [
  ["store/SOJOURN", new TextEncoder().encode("sojourn storage: sqlite 2\n")],
  ["store/disk", new Uint8Array()],
  ["homes/rows.db", new Uint8Array(5_000).map((_, i) => i % 251)],
  ["store/rows.db", new Uint8Array(3_000).map((_, i) => i % 7)],
];

function manifestOf(
  contents: readonly [string, Uint8Array][],
  more: Partial<BackupManifest> = {},
): BackupManifest {
  return {
    site: "edge-1",
    parent: "core-1",
    tier: "edge",
    engine: "sqlite",
    release: "1.0.0",
    at: "2026-11-23T10:00:00.000Z",
    cut: "0123456789abcdef0123456789abcdef",
    ...{ incarnation: 3, position: 812, pending: 2 },
    secrets: [fingerprintOf(SECRET)],
    parts: contents.map(([name, bytes]) => ({ name, bytes: bytes.length, sha256: sha256(bytes) })),
    ...more,
  };
}

function fileOf(contents = CONTENTS, secret = SECRET, manifest = manifestOf(contents)): Uint8Array {
  const head = encodeArchiveHead(manifest, secret);
  const file = new Uint8Array(archiveBytes(head, manifest));
  let at = 0;
  for (const bytes of [head, ...contents.map(([, bytes]) => bytes)]) {
    file.set(bytes, at);
    at += bytes.length;
  }
  return file;
}

/** What reading gives: the manifest and each part's bytes; or the code of what is wrong. */
function read(file: Uint8Array, secrets: readonly Uint8Array[] = [SECRET], pieceBytes = 1_000) {
  const parts: Record<string, number[]> = {}, whole: string[] = [];
  try {
    const reader = new ArchiveReader({
      manifest: (_manifest, isSignedBy) => assertSigned(isSignedBy, secrets),
      bytes: ({ name }, bytes) => void (parts[name] ??= []).push(...bytes),
      part: ({ name }) => void whole.push(name),
    });
    for (let at = 0; at < file.length; at += pieceBytes) reader.push(file.subarray(at, at + pieceBytes));
    return { manifest: reader.end(), parts, whole };
  } catch (error) {
    if (error instanceof ArchiveError) return error.code;
    throw error;
  }
}

/** A file whose manifest is another JSON, rightly signed only where no field is checked before. */
function withJson(json: string): Uint8Array {
  const head = fileOf();
  const bytes = new TextEncoder().encode(json), magic = head.subarray(0, 17);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, bytes.length);
  return new Uint8Array([...magic, ...length, ...bytes, ...new Uint8Array(32)]);
}

Deno.test("a backup is read as it was written, in pieces of any size", () => {
  const file = fileOf();
  for (const pieceBytes of [1, 7, 1_000, file.length]) {
    const found = read(file, [OTHER, SECRET], pieceBytes);
    assert.ok(typeof found !== "string", String(found));
    assert.deepEqual(found.manifest, manifestOf(CONTENTS));
    assert.deepEqual(found.whole, CONTENTS.map(([name]) => name));
    for (const [name, bytes] of CONTENTS) assert.deepEqual(found.parts[name] ?? [], [...bytes], name);
  }
});

Deno.test("a backup with a bit flipped anywhere is refused (BA1, BA3)", () => {
  const file = fileOf();
  fc.assert(
    fc.property(fc.nat(file.length - 1), fc.nat(7), (at, bit) => {
      const flipped = file.slice();
      flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
      return typeof read(flipped) === "string";
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("a backup that was cut anywhere, or has something after it, is refused (BA3)", () => {
  const file = fileOf();
  for (let length = 0; length < file.length; length += length < 1_500 ? 1 : 97) {
    const code = read(file.subarray(0, length));
    assert.match(String(code), length === 0 ? /^backup_invalid$/ : /^backup_cut_off$/, `${length}`);
  }
  assert.equal(read(new Uint8Array([...file, 0])), "backup_damaged");
});

Deno.test("a backup that no secret of the cluster signed is refused (BA1)", () => {
  assert.equal(read(fileOf(CONTENTS, OTHER)), "backup_forged");
  assert.equal(read(fileOf(), []), "backup_forged");
  // Whoever changes a part and its digest lacks the key.
  const changed = CONTENTS.map((
    [name, bytes],
  ): [string, Uint8Array] => [name, bytes.map((byte) => byte ^ 1)]);
  const [mine, theirs] = [fileOf(), fileOf(changed)];
  const macAt = encodeArchiveHead(manifestOf(CONTENTS), SECRET).length - 32;
  theirs.set(mine.subarray(macAt, macAt + 32), macAt);
  assert.equal(read(theirs), "backup_forged");
});

Deno.test("what is no backup, of a later format, or larger than any is told apart (BA2)", () => {
  const text = (words: string) => new TextEncoder().encode(words);
  const cases: readonly (readonly [Uint8Array, string])[] = [
    [text("SQLite format 3\0 and more"), "backup_invalid"],
    [text("sojourn backup 2\nwhatever follows"), "backup_newer"],
    [text("sojourn backup 17\n"), "backup_newer"],
    [text("sojourn backup 0\n...."), "backup_invalid"],
    [new Uint8Array([...fileOf().subarray(0, 17), 0xff, 0xff, 0xff, 0xff, 1]), "backup_invalid"],
    [withJson("{"), "backup_invalid"],
    [withJson("{}"), "backup_invalid"],
  ];
  for (const [file, code] of cases) assert.equal(read(file), code, new TextDecoder().decode(file));
});

Deno.test("a backup names no file but those of a site's data, none twice, and no size that is none (BA2)", () => {
  const [first] = manifestOf(CONTENTS).parts;
  assert.ok(first !== undefined);
  for (
    const parts of [
      [{ ...first, name: "../store/rows.db" }],
      [{ ...first, name: "store/lock" }],
      [{ ...first, name: "restored.json" }],
      [first, first],
      [{ ...first, bytes: -1 }],
      [{ ...first, bytes: 2 ** 51 }],
      [{ ...first, sha256: "00" }],
      [],
    ]
  ) {
    assert.throws(() => encodeArchiveHead(manifestOf(CONTENTS, { parts }), SECRET), JSON.stringify(parts));
    assert.equal(read(withJson(JSON.stringify(manifestOf(CONTENTS, { parts })))), "backup_invalid");
  }
  assert.ok(PART_NAMES.every((name) => !name.includes("..") && !name.startsWith("/")));
});
