/** What `sojourn backup` leaves behind: whole files, or none (runtime/cli/backup.ts). */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import {
  archiveBytes,
  type BackupManifest,
  encodeArchiveHead,
  fingerprintOf,
} from "../../../runtime/backup/archive.ts";
import { ADMIN_PATH } from "../../../runtime/deploy/admin_api.ts";
import { problemResponse } from "../../../runtime/gateway/problem.ts";
import { EXIT, runCli } from "../../../runtime/cli/mod.ts";

const SECRET = new TextEncoder().encode("a secret of the cluster, for files");
const CONTENT = new Uint8Array(200_000).map((_, at) => at % 251);

function fileOf(site: string, cut: string): Uint8Array<ArrayBuffer> {
  const manifest: BackupManifest = {
    ...{
      site,
      parent: null,
      tier: "root",
      engine: "sqlite",
      release: "1.0.0",
      at: "2026-11-23T10:00:00.000Z",
    },
    ...{ cut, incarnation: 1, position: 2, pending: 0, secrets: [fingerprintOf(SECRET)] },
    parts: [{
      ...{ name: "store/rows.db", bytes: CONTENT.length },
      sha256: createHash("sha256").update(CONTENT).digest("hex"),
    }],
  };
  const head = encodeArchiveHead(manifest, SECRET), file = new Uint8Array(archiveBytes(head, manifest));
  file.set(head);
  file.set(CONTENT, head.length);
  return file;
}

/** How the sites of a made-up cluster behave. */
interface Behaviour {
  /** Instead of what a site would answer to a step. */
  readonly answers?: (site: string, step: string, tried: number) => Response | undefined;
  /** Instead of a site's whole file. */
  readonly sends?: (site: string, file: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;
}

const SITES = ["cloud", "edge-1", "edge-2"];

/** A cluster that answers as told, and what it was asked. */
async function withCluster(
  behaviour: Behaviour,
  test: (cluster: { readonly folder: string; readonly asked: string[]; run: typeof run }) => Promise<void>,
): Promise<void> {
  const asked: string[] = [], tried = new Map<string, number>();
  const handle = (request: Request): Response => {
    const path = new URL(request.url).pathname.slice(ADMIN_PATH.length);
    if (!path.startsWith("/sites")) return new Response("{}");
    if (path === "/sites") {
      return Response.json(SITES.map((id) => ({
        ...{ id, parent: id === "cloud" ? null : "cloud", tier: id === "cloud" ? "root" : "edge" },
        ...{ depth: id === "cloud" ? 0 : 1, url: "http://x", linkAddress: "tcp://x:1" },
      })));
    }
    const [, , site = "", , cut = "", more = ""] = path.split("/");
    const step = more === "" ? request.method : more;
    asked.push(`${site} ${step}`);
    const count = (tried.get(`${site} ${step}`) ?? 0) + 1;
    tried.set(`${site} ${step}`, count);
    const instead = behaviour.answers?.(site, step, count);
    if (instead !== undefined) return instead;
    if (step !== "content") return Response.json({ cut, state: "ready", copiedBytes: 1, bytes: 1 });
    const file = fileOf(site, cut);
    return new Response(behaviour.sends?.(site, file) ?? file);
  };
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, handle);
  const folder = await Deno.makeTempDir({ prefix: "sojourn-backup-cli-" });
  url = `http://127.0.0.1:${server.addr.port}`;
  try {
    await test({ folder, asked, run });
  } finally {
    await server.shutdown();
    await Deno.remove(folder, { recursive: true });
  }
}

let url = "";
async function run(...args: string[]) {
  const out: string[] = [], err: string[] = [];
  const code = await runCli(["backup", ...args, "--to", url], {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: () => undefined,
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

const namesIn = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();

Deno.test("a tree is held everywhere before the first site has its moment, and all copies are dropped (BU2)", () =>
  withCluster({}, async ({ folder, asked, run }) => {
    const { code, out, err } = await run(join(folder, "tree"), "--tree", "--json");
    assert.deepEqual([code, err], [EXIT.done, ""]);
    const { files, missing } = JSON.parse(out) as {
      files: { file: string; sha256: string }[];
      missing: string[];
    };
    assert.deepEqual(missing, []);
    assert.deepEqual(await namesIn(join(folder, "tree")), SITES.map((site) => `${site}.sojourn`));
    for (const { file, sha256 } of files) {
      assert.equal(createHash("sha256").update(await Deno.readFile(file)).digest("hex"), sha256);
    }
    const steps = ["PUT", "hold", "take", "DELETE"].map((step) =>
      SITES.map((site) => asked.indexOf(`${site} ${step}`))
    );
    for (const [i, places] of steps.slice(1).entries()) {
      assert.ok(Math.max(...steps[i] ?? []) < Math.min(...places), `${asked}`);
    }
  }));

Deno.test("a file that was broken off, changed or of another site leaves nothing, nor do those of its tree (BU1)", async () => {
  const cases: readonly (readonly [string, (file: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>])[] = [
    ["backup_cut_off", (file) => file.slice(0, file.length - 1)],
    ["backup_cut_off", () => new Uint8Array(fileOf("edge-2", "0".repeat(32)).slice(0, 100))],
    ["backup_damaged", (file) => file.map((byte, at) => at === file.length - 9 ? byte ^ 1 : byte)],
    ["backup_failed", () => fileOf("edge-9", "0".repeat(32))],
    ["backup_invalid", () => new TextEncoder().encode("<html>a proxy's word</html>")],
  ];
  for (const [code, sent] of cases) {
    await withCluster(
      { sends: (site, file) => site === "edge-2" ? sent(file) : file },
      async ({ folder, asked, run }) => {
        const tree = await run(join(folder, "tree"), "--tree");
        assert.equal(tree.code, EXIT.failed);
        assert.match(tree.err, new RegExp(`^${code}: `));
        assert.deepEqual(await namesIn(join(folder, "tree")), [], code);
        assert.equal(asked.filter((step) => step.endsWith("DELETE")).length, SITES.length);
        assert.equal((await run(join(folder, "one"), "--site", "edge-2")).code, EXIT.failed);
        assert.deepEqual(await namesIn(folder), ["tree"], code);
      },
    );
  }
});

Deno.test("where a site was not held any more, all begin again, and not for ever", async () => {
  const late = (times: number): Behaviour => ({
    answers: (site, step, tried) =>
      site === "edge-1" && step === "take" && tried <= times
        ? problemResponse("interrupted", "the moment comes too late")
        : undefined,
  });
  await withCluster(late(1), async ({ folder, run }) => {
    const { code, err } = await run(join(folder, "tree"), "--tree");
    assert.equal(code, EXIT.done);
    assert.match(err, /^once more: the moment comes too late$/);
  });
  await withCluster(late(99), async ({ folder, run }) => {
    const { code, err } = await run(join(folder, "tree"), "--tree");
    assert.equal(code, EXIT.failed);
    assert.match(err, /\ninterrupted: the moment comes too late$/);
  });
});

Deno.test("a site that does not answer is left out of a tree, and named, with exit 3", () =>
  withCluster({
    answers: (site) => site === "edge-1" ? problemResponse("store_unreachable", "edge-1 is away") : undefined,
  }, async ({ folder, run }) => {
    const tree = await run(join(folder, "tree"), "--tree", "--json");
    assert.equal(tree.code, EXIT.partly);
    assert.deepEqual(JSON.parse(tree.out).missing, ["edge-1"]);
    assert.match(tree.err, /^edge-1 does not answer: what it has is in no file$/);
    assert.deepEqual(await namesIn(join(folder, "tree")), ["cloud.sojourn", "edge-2.sojourn"]);
    const one = await run(join(folder, "one"), "--site", "edge-1");
    assert.equal(one.code, EXIT.failed);
    assert.match(one.err, /^store_unreachable: /);
  }));

Deno.test("a copy that a site could not make is told with its reason", () =>
  withCluster({
    answers: (_site, step) =>
      step === "GET"
        ? Response.json({ state: "failed", copiedBytes: 0, bytes: 1, why: "no room" })
        : undefined,
  }, async ({ folder, run }) => {
    const { code, err } = await run(join(folder, "one"));
    assert.equal(code, EXIT.failed);
    assert.match(err, /^backup_failed: cloud could not copy its disk: no room$/);
    assert.deepEqual(await namesIn(folder), []);
  }));

Deno.test("nothing that is there is written over", () =>
  withCluster({}, async ({ folder, asked, run }) => {
    await Deno.writeTextFile(join(folder, "one"), "precious");
    const { code, err } = await run(join(folder, "one"));
    assert.equal(code, EXIT.failed);
    assert.match(err, /^file_exists: /);
    assert.equal(await Deno.readTextFile(join(folder, "one")), "precious");
    assert.deepEqual(asked, []);
    assert.equal((await run(join(folder, "two"), "--tree", "--site", "cloud")).code, EXIT.usage);
  }));
