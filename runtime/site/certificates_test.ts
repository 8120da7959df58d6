import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { assertUsable, Certificates } from "./certificates.ts";
import { ConfigError, parseSiteConfig } from "./config.ts";
import type { TlsFiles } from "./data_folder.ts";

const PAIR = resolve(import.meta.dirname ?? ".", "..", "..", "tests", "runtime", "link", "tls");

async function setUp() {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-certificates-" });
  const at = (name: string) => join(folder, name);
  for (const name of ["ca.pem", "site.pem", "site.key"]) await Deno.copyFile(join(PAIR, name), at(name));
  await Deno.writeTextFile(at("secret"), "the secret of a test's cluster\n");
  const config = parseSiteConfig(
    {
      ...{
        id: "edge",
        parent: { id: "cloud", url: "tls://127.0.0.1:1" },
        data: "data",
        secretFile: "secret",
      },
      listen: { http: "127.0.0.1:0", link: "127.0.0.1:0" },
      tls: { cert: "site.pem", key: "site.key", ca: "ca.pem" },
    },
    {},
    folder,
  );
  const notes: string[] = [];
  const used: TlsFiles[] = [];
  const certificates = new Certificates(
    config,
    (_level, event, { why }) => notes.push(`${event} ${why ?? ""}`.trim()),
    (files) => Promise.resolve(void used.push(files)),
    60_000,
  );
  const close = async () => {
    await certificates.close();
    await Deno.remove(folder, { recursive: true });
  };
  return { at, certificates, notes, used, close };
}

Deno.test("certificates are read again when their files have changed, and not before", async () => {
  const { at, certificates, notes, used, close } = await setUp();
  await certificates.look();
  assert.deepEqual([notes, used.length], [[], 0]);
  await Deno.writeTextFile(at("ca.pem"), await Deno.readTextFile(at("ca.pem")) + "\n# and nothing more\n");
  await certificates.look();
  await certificates.look();
  assert.match(notes.join(), /^certificates_read$/);
  assert.deepEqual(used.map(({ caCerts }) => caCerts[0]?.includes("nothing more")), [true]);
  await close();
});

Deno.test("files that don't belong together, or are gone, change nothing and are told once (R1)", async () => {
  const { at, certificates, notes, used, close } = await setUp();
  const cert = await Deno.readTextFile(at("site.pem"));
  await Deno.copyFile(at("ca.pem"), at("site.pem")); // the first of two files of a renewal
  await certificates.look();
  await certificates.look();
  assert.equal(notes.length, 1);
  assert.match(notes[0] ?? "", /^certificates_unread tls\.cert, tls\.key: .*cannot be used together/);
  await Deno.remove(at("site.key"));
  await certificates.look();
  assert.match(notes[1] ?? "", /^certificates_unread tls\.key: cannot read/);
  assert.deepEqual(used, []);
  await Deno.writeTextFile(at("site.pem"), cert);
  await Deno.copyFile(join(PAIR, "site.key"), at("site.key"));
  await certificates.look();
  assert.deepEqual([notes.length, notes[2], used.length], [3, "certificates_read", 1]);
  await close();
});

Deno.test("a certificate and a key that are no pair stop the start, and name their fields", async () => {
  const [cert, key] = [
    await Deno.readTextFile(join(PAIR, "ca.pem")),
    await Deno.readTextFile(join(PAIR, "site.key")),
  ];
  assert.throws(() => assertUsable({ own: { cert, key }, caCerts: [] }), ConfigError);
  assertUsable({ own: null, caCerts: [] });
});
