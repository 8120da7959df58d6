/** `dev --check-determinism`, as a developer sees it: one site, one session, and its first wrong answer. */
import assert from "node:assert/strict";
import { runCli } from "../../runtime/cli/mod.ts";
import { fromFileUrl } from "../../runtime/bundle/mod.ts";
import { ask } from "./client.ts";
import { startCluster } from "./cluster.ts";

Deno.test("a check of determinism lets no answer leave that a replay does not give, and shows both", async () => {
  await using cluster = await startCluster({
    topology: "single",
    apps: [fromFileUrl(new URL("apps/counter", import.meta.url))],
    env: { SOJOURN_CHECKDETERMINISM: "true" },
  });
  const call = (method: string, by: number) =>
    ask(`${cluster.url("cloud")}/counter/ann/call/${method}`, { method: "POST", body: JSON.stringify([by]) });
  for (let i = 1; i <= 3; i++) assert.equal((await call("add", 2)).text, `{"result":${2 * i}}`);
  assert.equal((await call("escape", 5)).text, '{"result":5}');
  const wrong = await call("escape", 5);
  assert.equal(wrong.status, 503);
  const out: string[] = [];
  const shell = { out: (text: string) => out.push(text), err: () => {}, env: () => undefined };
  await runCli(["sessions", "show", "counter", "counter", "ann", "--data", cluster.data], shell);
  const told = out.join("");
  assert.match(told, /a replay of escape\(5\) alone/);
  assert.match(told, /First: output 1 to [^:]*: answers 10\. Replayed: output 1 to [^:]*: answers 5/);
  assert.match(told, /Counter\.escape \([^)]*app\.ts:\d+:\d+\)/);
});
