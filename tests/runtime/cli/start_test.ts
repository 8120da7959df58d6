/** What a command line loads before it knows what it is to do: every command waits for it, and each site of `dev`. */
import assert from "node:assert/strict";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";

const ROOT = new URL("../../../", import.meta.url);

interface Info {
  readonly roots: readonly string[];
  readonly redirects?: Readonly<Record<string, string>>;
  readonly modules: readonly {
    readonly specifier: string;
    readonly dependencies?: readonly {
      readonly isDynamic?: boolean;
      readonly code?: { readonly specifier?: string };
    }[];
  }[];
}

/** Modules that are loaded before the first line of an entry runs. */
async function loadedBy(entry: string): Promise<Set<string>> {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "--config", fromFileUrl(new URL("deno.json", ROOT)), entry],
    stdout: "piped",
  }).output();
  assert.ok(success);
  const info = JSON.parse(new TextDecoder().decode(stdout)) as Info;
  const modules = new Map(info.modules.map((module) => [module.specifier, module]));
  const loaded = new Set<string>(), todo = [...info.roots];
  for (let named = todo.pop(); named !== undefined; named = todo.pop()) {
    const specifier = info.redirects?.[named] ?? named;
    if (loaded.has(specifier)) continue;
    loaded.add(specifier);
    for (const { isDynamic, code } of modules.get(specifier)?.dependencies ?? []) {
      if (isDynamic !== true && code?.specifier !== undefined) todo.push(code.specifier);
    }
  }
  return loaded;
}

const loadedByFile = (path: string) => loadedBy(fromFileUrl(new URL(path, ROOT)));

Deno.test("a site loads no other command, and nothing that few of its apps use", async () => {
  const entries = ["main.ts", "site/command.ts", "site/site.ts"];
  for (const entry of entries) {
    const loaded = await loadedByFile(`runtime/${entry}`);
    assert.ok(loaded.has(new URL(`runtime/${entry}`, ROOT).href), "something is loaded at all");
    for (
      const late of [
        "runtime/cli/mod.ts",
        "runtime/dev/command.ts",
        "runtime/origins/plain_origin.ts",
        "runtime/deploy/client.ts",
      ]
    ) {
      assert.ok(!loaded.has(new URL(late, ROOT).href), `${late} is loaded by every site`);
    }
    for (const late of ["npm:/ws@", "npm:ws@", "node:http", "node:https"]) {
      assert.ok(![...loaded].some((each) => each.startsWith(late)), `${late} is loaded by every site`);
    }
  }
});

Deno.test("a command loads no other one, no site, no bundler and no agent before one is run", async () => {
  const loaded = new Set<string>();
  for (const entry of ["main.ts", "cli/mod.ts", "cli/sites.ts", "cli/deploy.ts"]) {
    for (const each of await loadedByFile(`runtime/${entry}`)) loaded.add(each);
  }
  const named = [...loaded].map((each) => each.replace(ROOT.href, ""));
  for (
    const late of [
      "runtime/site/command.ts",
      "runtime/site/site.ts",
      "runtime/bundle/bundle.ts",
      "runtime/dev/command.ts",
      "runtime/origins/agent_run.ts",
      "runtime/cli/backup.ts",
      "runtime/cli/sessions.ts",
    ]
  ) {
    assert.ok(!loaded.has(new URL(late, ROOT).href), `${late} is loaded by every command`);
  }
  for (const late of ["npm:/acorn@", "npm:/ws@", "npm:/eslint-scope@", "npm:/hono@"]) {
    assert.ok(!named.some((each) => each.startsWith(late)), `${late} is loaded by every command`);
  }
  // 48 when this was written, of 135 before, and 652 at first: half of the time of a command was theirs.
  assert.ok(named.length < 80, `${named.length} modules`);
  assert.ok(loaded.has(new URL("runtime/cli/mod.ts", ROOT).href), "something is loaded at all");
});

Deno.test("what `dev` and the agent load before they run has no site and no bundler", async () => {
  for (const entry of ["dev/command.ts", "origins/command.ts", "site/restore_command.ts"]) {
    const loaded = await loadedByFile(`runtime/${entry}`);
    assert.ok(loaded.has(new URL(`runtime/${entry}`, ROOT).href), "something is loaded at all");
    for (const late of ["runtime/site/site.ts", "runtime/bundle/bundle.ts", "runtime/origins/agent_run.ts"]) {
      assert.ok(!loaded.has(new URL(late, ROOT).href), `${late} is loaded by ${entry}`);
    }
    for (const late of ["npm:/acorn@", "npm:/ws@", "npm:/eslint-scope@"]) {
      assert.ok(![...loaded].some((each) => each.startsWith(late)), `${late} is loaded by ${entry}`);
    }
  }
});
