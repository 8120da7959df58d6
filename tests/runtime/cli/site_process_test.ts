/** How dev keeps a site's process: what is asked of it while one ends. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { readCluster } from "../../../runtime/cli/cluster.ts";
import { Cluster } from "../../../runtime/dev/cluster.ts";
import { SiteProcess } from "../../../runtime/dev/site_process.ts";

/** Stands for a site: ends in order, which takes it a while, when it is asked to or as one that was drained. */
const SITE = `
const log = Deno.args[Deno.args.indexOf("--config") + 1];
const say = (word) => Deno.writeTextFileSync(log, word + "\\n", { append: true });
for (const signal of ["SIGTERM", "SIGUSR1"]) {
  Deno.addSignalListener(signal, () => {
    say("ending");
    setTimeout(() => Deno.exit(0), 300);
  });
}
setTimeout(() => {}, 60_000);
say("began " + Deno.pid);
`;

interface Kept {
  readonly site: SiteProcess;
  /** What the processes have said; resolves when there are so many words of theirs. */
  readonly said: (count: number) => Promise<string[]>;
  /** Of each change. */
  readonly pids: number[];
}

async function kept(run: (kept: Kept) => Promise<void>): Promise<void> {
  const data = await Deno.makeTempDir();
  const file = join(data, "log"), main = join(data, "main.js"), denoConfig = join(data, "deno.json");
  await Deno.writeTextFile(file, "");
  await Deno.writeTextFile(main, SITE);
  await Deno.writeTextFile(denoConfig, "{}");
  const pids: number[] = [];
  const site: SiteProcess = new SiteProcess({
    ...{ id: "edge", file, chaosFile: join(data, "chaos.json"), main, denoConfig },
    onExit: () => {},
    onChange: () => void pids.push(site.pid),
  });
  const said = async (count: number) => {
    for (const untilMs = Date.now() + 60_000;;) {
      const words = (await Deno.readTextFile(file)).split("\n").slice(0, -1);
      if (words.length >= count) return words;
      assert(Date.now() < untilMs, `${count} words were to come: ${words}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  try {
    await run({ site, said, pids });
  } finally {
    await site.kill();
    await Deno.remove(data, { recursive: true });
  }
}

Deno.test("a start of a site that is ending begins it anew when it has ended (P3)", () =>
  kept(async ({ site, said, pids }) => {
    await site.start();
    await said(1);
    const first = site.pid;
    const stopped = site.stop();
    await said(2);
    await site.start();
    await stopped;
    assert.notEqual(site.pid, first);
    assert.deepEqual(await said(3), [`began ${first}`, "ending", `began ${site.pid}`]);
    assert.deepEqual(pids.filter((pid) => pid !== 0), [first, site.pid]);
  }));

Deno.test("a start of a site that was drained and is still there begins it anew when it has ended (P3)", () =>
  kept(async ({ site, said }) => {
    await site.start();
    await said(1);
    const first = site.pid;
    site.signal("SIGUSR1");
    await said(2);
    await site.start();
    const words = await said(3);
    assert.notEqual(site.pid, first);
    assert.deepEqual(words, [`began ${first}`, "ending", `began ${site.pid}`]);
  }));

Deno.test("a site that was drained and not asked for again stays down, and is known to be", () =>
  kept(async ({ site, said, pids }) => {
    await site.start();
    await said(1);
    const first = site.pid;
    site.signal("SIGUSR1");
    for (const untilMs = Date.now() + 60_000; site.pid !== 0;) {
      assert(Date.now() < untilMs, "it ends");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.deepEqual(pids, [first, 0]);
    assert.deepEqual(await said(2), [`began ${first}`, "ending"]);
  }));

Deno.test("the cluster file has the process of a site that was started again by itself (C3)", async () => {
  const data = await Deno.makeTempDir(), main = join(data, "main.js");
  await Deno.writeTextFile(main, "setTimeout(() => {}, 60_000);");
  const cluster = await Cluster.create({
    ...{ topology: { sites: [{ id: "cloud" }], peers: [] }, data, port: 0, main },
    onExit: () => {},
  });
  const pid = async () => (await readCluster(data))?.sites[0]?.pid ?? 0;
  try {
    cluster.start();
    await cluster.writeFile("http://127.0.0.1:1");
    const first = await pid();
    assert.notEqual(first, 0);
    Deno.kill(first, "SIGKILL");
    for (const untilMs = Date.now() + 60_000; [0, first].includes(await pid());) {
      assert(Date.now() < untilMs, "the file names the next process");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } finally {
    await cluster.stop();
    await Deno.remove(data, { recursive: true });
  }
});

Deno.test("a cluster whose token file has lines for others keeps its own token", async () => {
  const data = await Deno.makeTempDir(), file = join(data, "admin-token");
  const made = async () => {
    const topology = { sites: [{ id: "cloud" }], peers: [] };
    const cluster = await Cluster.create({ ...{ topology, data, port: 0, main: "" }, onExit: () => {} });
    await cluster.stop();
    return cluster.adminToken;
  };
  try {
    const own = await made();
    assert.equal((await Deno.readTextFile(file)).trim(), own);
    await Deno.writeTextFile(
      file,
      `# of programs\nsend:shop/sms may-only-send-texts till\n\nadmin ${own} dev\n`,
    );
    assert.equal(await made(), own);
    await Deno.writeTextFile(file, `${own}\nsend:shop/sms may-only-send-texts\n`);
    assert.equal(await made(), own);
    await Deno.writeTextFile(file, "send:shop/sms may-only-send-texts\n");
    await assert.rejects(made(), /has no admin's token/);
  } finally {
    await Deno.remove(data, { recursive: true });
  }
});
