/** Commands as processes: Ctrl-C at any point, and readers that leave early. */
import assert from "node:assert/strict";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..", "..");
const sojourn = (args: readonly string[], env: Record<string, string> = {}) =>
  new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", join(ROOT, "runtime", "main.ts"), ...args],
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });

Deno.test("a command whose reader leaves ends quietly", async () => {
  const main = join(ROOT, "runtime", "main.ts");
  const ask = `"$DENO" run -A --no-check "$MAIN" completion fish`;
  // The first reader leaves after a line, the second before there is one.
  const script = `${ask} | head -1; echo "\${PIPESTATUS[0]}"; ${ask} | true; echo "\${PIPESTATUS[0]}"
    "$DENO" run -A --no-check "$MAIN" --help | true; echo "\${PIPESTATUS[0]}"`;
  const env = { DENO: Deno.execPath(), MAIN: main };
  const { stdout, stderr } = await new Deno.Command("bash", { args: ["-c", script], env }).output();
  assert.equal(new TextDecoder().decode(stderr), "");
  assert.equal(new TextDecoder().decode(stdout), "# fish completion of sojourn\n0\n0\n0\n");
});

/** A site that lives, takes a request and never answers; it tells when the first has come, and its path. */
function silentSite(lives = true) {
  const asked = Promise.withResolvers<string>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    if (lives && pathname === "/_sojourn/healthz") return new Response();
    asked.resolve(pathname);
    return new Promise<Response>((end) =>
      request.signal.addEventListener("abort", () => end(new Response()))
    );
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked: asked.promise,
    close: () => server.shutdown(),
  };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`${signal} ends a command that waits for a site: a line, exit 1`, async () => {
    const site = silentSite();
    const child = sojourn(["apps", "--to", site.url]).spawn();
    assert.equal(await site.asked, "/_sojourn/admin/apps");
    child.kill(signal);
    const { code, stdout, stderr } = await child.output();
    const text = new TextDecoder();
    assert.deepEqual([code, text.decode(stdout), text.decode(stderr)], [1, "", "interrupted\n"]);
    await site.close();
  });
}

Deno.test("a command at a site that stands still gives up with a line, exit 1", async () => {
  const site = silentSite(false);
  const { code, stderr } = await sojourn(["rollback", "cafe", "--to", site.url]).output();
  assert.match(
    new TextDecoder().decode(stderr),
    /^site_unreachable: no site answers at http.*: nothing came within 5 s\n$/,
  );
  assert.equal(code, 1);
  await site.close();
});

Deno.test("Ctrl-C while a deploy bundles leaves no folder behind", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-interrupted-" });
  const temp = join(folder, "temp"), app = join(folder, "app.ts");
  await Deno.mkdir(temp);
  await Deno.writeTextFile(app, 'import { Hono } from "hono";\nexport default new Hono();\n');
  const names = async () => (await Array.fromAsync(Deno.readDir(temp))).map((entry) => entry.name);
  const child = sojourn(["deploy", app, "--to", "http://127.0.0.1:1"], { TMPDIR: temp }).spawn();
  try {
    let hasEnded = false;
    void child.status.then(() => hasEnded = true);
    while (!hasEnded && !(await names()).some((name) => name.startsWith("sojourn-bundle-"))) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    assert.ok(!hasEnded, "it ended before it bundled");
    child.kill("SIGINT");
    const { code, stderr } = await child.output();
    assert.equal(code, 1);
    // Where bundling takes longer than a moment, that is told first.
    assert.match(
      new TextDecoder().decode(stderr),
      /^(?: +\d+\.\d s .*\n)*interrupted: nothing was changed\n$/,
    );
    assert.deepEqual((await names()).filter((name) => name.startsWith("sojourn-")), []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
