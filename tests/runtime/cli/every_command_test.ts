/** What holds for every command, asked of the table of commands: a new one is covered by being in it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { problemResponse } from "../../../runtime/gateway/problem.ts";
import { adminApp } from "../../../runtime/admin/mod.ts";
import { type Command, COMMON } from "../../../runtime/cli/command.ts";
import { completionCommand } from "../../../runtime/cli/completion.ts";
import { COMMANDS, EXIT, loadAll, runCli } from "../../../runtime/cli/mod.ts";
import { distance, nearestWord } from "../../../runtime/cli/nearest.ts";
import { AppTable } from "../../../runtime/deploy/mod.ts";
import { devCommand } from "../../../runtime/dev/command.ts";
import { agentCommand } from "../../../runtime/origins/command.ts";
import { siteCommand } from "../../../runtime/site/command.ts";
import { restoreCommand } from "../../../runtime/site/restore_command.ts";
import { asSystem, MemorySystem } from "../deploy/memory_system.ts";

const own = [siteCommand, devCommand, agentCommand, restoreCommand];
const all: readonly Command[] = [...own, ...await loadAll(COMMANDS), completionCommand(() => all)];

/** Words with which each command that talks to a cluster would do something. A test below misses none. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  deploy: ["MODULE"],
  apps: [],
  versions: ["shop"],
  rollback: ["shop"],
  rollout: ["shop"],
  routes: ["shop"],
  sites: [],
  backup: ["site.sojourn"],
  kv: ["list", "shop"],
  tables: ["shop"],
  sessions: ["list"],
  queues: ["list"],
  secrets: ["shop", "list"],
  cron: ["shop"],
  logs: [],
  top: ["--once"],
  agent: ["--app", "shop", "--session", "cart", "--origin", "tcp://127.0.0.1:7000"],
  chaos: ["kill", "edge-1"],
};

async function run(args: readonly string[], env: Record<string, string> = {}) {
  const out: string[] = [], err: string[] = [];
  const shell = {
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    env: (name: string) => env[name],
  };
  return { code: await runCli(args, shell, own), out: out.join("\n"), err: err.join("\n") };
}

Deno.test("a command is called in the table as it calls itself", async () => {
  const loaded = await loadAll(COMMANDS);
  assert.deepEqual(loaded.map(({ name }) => name), Object.keys(COMMANDS));
});

Deno.test("every command's --help names its usage and each of its options", async () => {
  for (const command of all) {
    const { code, out, err } = await run([command.name, "--help"]);
    assert.deepEqual([code, err], [EXIT.done, ""], command.name);
    assert.ok(out.startsWith(`sojourn ${command.name} ${command.usage}`.trimEnd()), command.name);
    for (const option of Object.keys({ ...command.options, ...COMMON })) {
      assert.match(out, new RegExp(`^ +--${option}( |$)`, "m"), `${command.name} --${option}`);
    }
  }
});

Deno.test("the overview has one short line for each command, and of none that is there says that it is not", async () => {
  const lines = (await run(["--help"])).out.split("\n");
  for (const { name } of all) {
    assert.equal(lines.filter((line) => line.startsWith(`  ${name} `)).length, 1, name);
  }
  assert.deepEqual(lines.filter((line) => line.length > 120 || /^[a-z]/.test(line)), [
    "sojourn: a serverless runtime for the edge, on a session-consistent store",
    "usage: sojourn COMMAND … (every command has --help, and --json for programs)",
  ]);
});

Deno.test("every command refuses an unknown flag with exit 2, and says which was meant", async () => {
  for (const command of all) {
    const { code, out, err } = await run([command.name, "--nonsense-flag"]);
    assert.deepEqual([code, out], [EXIT.usage, ""], command.name);
    assert.match(
      err,
      new RegExp(`^${command.name}: Unknown option '--nonsense-flag'\nusage: sojourn ${command.name}`),
    );
    assert.match((await run([command.name, "--jsno"])).err, /did you mean --json\?/, command.name);
    assert.equal((await run([command.name, "--json=yes"])).code, EXIT.usage, command.name);
  }
});

/** Runs what every command that talks to a cluster does, against one that it cannot use. */
async function eachAgainst(url: string, code: string) {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-every-" });
  try {
    const module = join(folder, "app.ts");
    await Deno.writeTextFile(module, "export default { fetch: () => new Response() };");
    const talking = all.filter((command) => "to" in command.options);
    assert.deepEqual(
      talking.map((command) => command.name).sort(),
      Object.keys(WORDS).sort(),
      "WORDS has them all",
    );
    for (const { name } of talking) {
      const words = (WORDS[name] ?? []).map((word) => word === "MODULE" ? module : word);
      const out = join(folder, `${name}.json`);
      const result = await run([name, ...words, "--json", "--to", url, "--out", out], {
        SOJOURN_TOKEN: "wrong-token",
      });
      assert.equal(result.code, EXIT.failed, `${name}: ${result.err}`);
      // Where bundling takes longer than a moment, that is told first.
      assert.match(
        result.err,
        new RegExp(`^(?: +\\d+\\.\\d s .*\n)*(?:${code}): `),
        `${name}: ${result.err}`,
      );
      assert.match(JSON.parse(result.out).error.code, new RegExp(`^(?:${code})$`), name);
      await assert.rejects(Deno.stat(out), Deno.errors.NotFound, `${name} leaves no file`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("every command says that a dead site is unreachable, with exit 1", async () => {
  await eachAgainst("http://127.0.0.1:1", "site_unreachable");
});

Deno.test("every command says that its token is wrong, with exit 1", async () => {
  const system = asSystem(new MemorySystem());
  const apps = await AppTable.open(system);
  const never = () => Promise.reject(new Error("nobody is asked"));
  const admin = adminApp({
    site: "cloud",
    system,
    apps,
    deployments: null,
    forward: never,
    forwardTwice: never,
    forwardToRoot: never,
    nowMs: () => 0,
    note: () => {},
  });
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) =>
      new URL(request.url).pathname.startsWith("/_sojourn/agent/")
        ? problemResponse("admin_token_invalid", "this needs a token of agents") // gateway/platform.ts
        : await admin.fetch(request, { role: null }),
  );
  try {
    await eachAgainst(`http://127.0.0.1:${server.addr.port}`, "admin_token_invalid");
  } finally {
    await server.shutdown();
    apps.close();
  }
});

Deno.test("every command says that what answers is no site, with exit 1", async () => {
  const answers: readonly (readonly [number, string, string])[] = [
    [200, "<h1>Welcome to nginx</h1>", "answer_invalid|site_unreachable"],
    [200, '{"hello":"world"}', "answer_invalid|site_unreachable"],
    [404, "<h1>Not Found</h1>", "http_404"],
  ];
  for (const [status, body, code] of answers) {
    const server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => new Response(body, { status }),
    );
    try {
      await eachAgainst(`http://127.0.0.1:${server.addr.port}`, code);
    } finally {
      await server.shutdown();
    }
  }
});

Deno.test("a command that is none is told with the one that was meant", async () => {
  assert.match((await run(["verison"])).err, /"verison" is no command; did you mean versions\?/);
  assert.match((await run(["xyzzy"])).err, /"xyzzy" is no command; see sojourn --help/);
  assert.equal(distance("ab", "ba"), 1);
  assert.equal(distance("", "abc"), 3);
  assert.equal(distance("kitten", "sitting"), 3);
  assert.equal(nearestWord("log", ["logs", "top"]), "logs");
  assert.equal(nearestWord("q", ["kv", "top"]), null);
});

Deno.test("--version names this copy and its Deno; --out takes what stdout would get", async () => {
  for (const flag of ["-v", "-V", "version"]) {
    assert.deepEqual(await run([flag]), await run(["--version"]));
  }
  assert.match((await run(["--version"])).out, /^sojourn \d+\.\d+\.\d+ \(deno \d+\.\d+\.\d+\)$/);
  const folder = await Deno.makeTempDir({ prefix: "sojourn-out-" });
  try {
    const file = join(folder, "completion");
    const { code, out } = await run(["completion", "bash", "--out", file]);
    assert.deepEqual([code, out], [EXIT.done, ""]);
    assert.match(await Deno.readTextFile(file), /^# bash completion of sojourn\n/);
    const bad = await run(["completion", "bash", "--out", join(folder, "none", "x")]);
    assert.equal(bad.code, EXIT.failed);
    assert.match(bad.err, /^file_not_written: .*none\/x cannot be written/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** What bash would offer for a line, the last word of which is being typed. */
async function offered(script: string, ...words: string[]): Promise<string[]> {
  const line = words.map((word) => `'${word}'`).join(" ");
  const ask = `${script}\nCOMP_WORDS=(${line}); COMP_CWORD=${
    words.length - 1
  }; _sojourn; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr, code } = await new Deno.Command("bash", { args: ["--norc", "-c", ask] }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout).split("\n").filter((word) => word !== "");
}

Deno.test("bash completes every command, verb and option", async () => {
  const script = (await run(["completion", "bash"])).out;
  assert.deepEqual(
    (await offered(script, "sojourn", "")).sort(),
    [...all.map((command) => command.name), "--help", "--version"].sort(),
  );
  assert.deepEqual(await offered(script, "sojourn", "vers"), ["versions"]);
  for (const command of all) {
    const flags = await offered(script, "sojourn", command.name, "--");
    assert.deepEqual(
      flags,
      Object.keys({ ...command.options, ...COMMON }).map((name) => `--${name}`),
      command.name,
    );
    if (command.verbs === undefined) continue;
    const before = Array.from({ length: command.verbs.at }, () => "shop");
    const verbs = await offered(script, "sojourn", command.name, ...before, "");
    assert.deepEqual(verbs, [...command.verbs.names], command.name);
  }
});

Deno.test("scripts of zsh and fish have every command and option, and their quotes pair", async () => {
  for (const shell of ["zsh", "fish"]) {
    const { out } = await run(["completion", shell]);
    for (const command of all) {
      assert.ok(out.includes(command.name), `${shell} ${command.name}`);
      for (const option of Object.keys(command.options)) {
        assert.ok(out.includes(option), `${shell} --${option}`);
      }
    }
    // Both shells quote as bash does, but for fish's \\' within quotes, which bash has as '\\''.
    const likeBash = shell === "zsh" ? out : out.replaceAll("\\'", "'\\''");
    const { code, stderr } = await new Deno.Command("bash", { args: ["-n", "-c", likeBash] }).output();
    assert.equal(code, 0, new TextDecoder().decode(stderr));
  }
});
