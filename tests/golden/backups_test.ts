/** Backups against the vectors of docs/protocol/backups.md, which backups.py makes by itself. */
import assert from "node:assert/strict";
import { z } from "zod";
import {
  ArchiveReader,
  type BackupManifest,
  encodeArchiveHead,
  fingerprintOf,
} from "../../runtime/backup/archive.ts";
import { runPython, storedVectors } from "./python.ts";

const vectors = z.strictObject({
  backups: z.array(z.strictObject({
    says: z.string(),
    secret: z.string(),
    secrets: z.array(z.string()),
    contents: z.record(z.string(), z.string()),
    file: z.string(),
  })).min(2),
}).parse(JSON.parse(await storedVectors("backups.json")));

for (const { says, secret, secrets, contents, file } of vectors.backups) {
  Deno.test(`a backup is that of the document: ${says}`, () => {
    const parts = new Map<string, string>(), signer = Uint8Array.fromHex(secret);
    let found: BackupManifest | undefined;
    const reader = new ArchiveReader({
      manifest: (manifest, isSignedBy) => {
        found = manifest;
        assert.ok(isSignedBy(signer));
      },
      bytes: ({ name }, bytes) => void parts.set(name, (parts.get(name) ?? "") + bytes.toHex()),
      part: ({ name }) => void parts.set(name, parts.get(name) ?? ""),
    });
    const whole = Uint8Array.fromHex(file);
    reader.push(whole);
    const manifest = reader.end();
    assert.equal(manifest, found);
    assert.deepEqual(Object.fromEntries(parts), contents);
    assert.deepEqual(manifest.secrets, secrets.map((hex) => fingerprintOf(Uint8Array.fromHex(hex))));
    const head = encodeArchiveHead(manifest, signer);
    assert.equal(head.toHex(), whole.subarray(0, head.length).toHex());
  });
}

Deno.test("the stored vectors are those of the program", async (t) => {
  const made = await runPython("backups.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), vectors);
});
