/** `sojourn init` and an installed `sojourn`: what it writes type-checks, runs in dev, and deploys. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { TEMPLATE_FILES } from "../../runtime/cli/init.ts";
import { ask } from "./client.ts";
import { startCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");

async function run(command: string, args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** As the README says, into a folder of its own. */
async function install(folder: string): Promise<string> {
  const args = [
    "install",
    "--global",
    "--allow-all",
    "--name",
    "sojourn",
    "--config",
    join(ROOT, "deno.json"),
  ];
  const main = join(ROOT, "runtime", "main.ts");
  const { code, err } = await run(Deno.execPath(), [...args, main], folder, { DENO_INSTALL_ROOT: folder });
  assert.equal(code, 0, err);
  return join(folder, "bin", "sojourn");
}

Deno.test("an app made by the installed command type-checks, runs and deploys, outside the checkout", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-init-" });
  try {
    const sojourn = await install(folder);
    for (const template of Object.keys(TEMPLATE_FILES)) {
      const made = await run(sojourn, ["init", `My ${template}`, "--template", template, "--json"], folder);
      assert.equal(made.code, 0, made.err);
      assert.equal(JSON.parse(made.out).app, `my-${template}`);
      const checked = await run(Deno.execPath(), ["check"], join(folder, `My ${template}`));
      assert.equal(checked.code, 0, checked.err);
    }
    const app = join(folder, "My notes");
    const again = await run(sojourn, ["init", app], folder);
    assert.equal(again.code, 1);
    assert.match(
      again.err,
      /^folder_not_empty: .*My notes is not empty: \.gitignore, README\.md, app\.ts, deno\.json, deno\.lock, … \(6\);/,
    );

    await using cluster = await startCluster({ apps: [app], topology: "single" });
    const url = `${cluster.url("cloud")}/my-notes`;
    assert.match((await ask(`${url}/`)).text, /<title>Notes<\/title>/);
    assert.match((await ask(`${url}/notes.js`)).headers.get("content-type") ?? "", /^text\/javascript/);
    const body = JSON.stringify({ text: "remember" });
    assert.equal((await ask(`${url}/notes`, { method: "POST", body })).status, 201);
    assert.equal((await ask(`${url}/notes`, { method: "POST", body: '{"text":""}' })).status, 422);
    const [note] = JSON.parse((await ask(`${url}/notes`)).text) as { text: string }[];
    assert.equal(note?.text, "remember");

    const env = { SOJOURN_URL: cluster.url("cloud"), SOJOURN_TOKEN: cluster.adminToken };
    const deployed = await run(sojourn, ["deploy", "My minimal"], folder, env);
    assert.equal(deployed.code, 0, deployed.err);
    assert.match((await ask(`${cluster.url("cloud")}/my-minimal/`)).text, /^Hello, visitor 1/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
