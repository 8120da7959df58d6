import { strict as assert } from "node:assert";
import { IsolateCgroups } from "./cgroups.ts";
import { bootstrapFile } from "./bootstrap_file.ts";
import { makeIsolatesFolder, removeIsolatesFolder } from "./isolates_folder.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import { type IsolateProcess, startProcess } from "./process.ts";

async function withProcess(
  run: (process: IsolateProcess, folder: string) => void,
  givesWay = false,
  cgroups?: IsolateCgroups,
): Promise<void> {
  const folder = await makeIsolatesFolder();
  const { heapMib, buffersMib } = DEFAULT_ISOLATE_LIMITS;
  const process = await startProcess({
    bootstrap: await bootstrapFile("serve"),
    folder,
    heapMib,
    buffersMib,
    givesWay,
    cgroups,
  });
  try {
    run(process, folder);
  } finally {
    process.kill();
    await process.exited;
    process.release();
    await removeIsolatesFolder(folder);
  }
}

/** Of /proc/PID/stat, by the numbers of proc(5). */
function fieldOf(pid: number | string, field: number): number {
  const line = Deno.readTextFileSync(`/proc/${pid}/stat`);
  return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[field - 3]);
}

const SESSION = 6;

Deno.test({
  name: "a process of an app is in a session of its own (P5)",
  ignore: Deno.build.os !== "linux",
  fn: () => withProcess(({ pid }) => assert.equal(fieldOf(pid, SESSION), pid)),
});

const SEPARATOR = "\0";

Deno.test({
  name: "a process of an app has nothing of its site's environment, and is in UTC, wherever that is (P1, P6)",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const before = Deno.env.toObject();
    for (const name of ["SOJOURN_TEST_SECRET", "TZ"]) Deno.env.set(name, "Asia/Tokyo");
    try {
      await withProcess(({ pid }) => {
        const environment = Deno.readTextFileSync(`/proc/${pid}/environ`).split(SEPARATOR).filter(Boolean);
        const names = environment.map((entry) => entry.slice(0, entry.indexOf("="))).sort();
        assert.deepEqual(names, ["DENO_DIR", "DENO_NO_UPDATE_CHECK", "NO_COLOR", "TZ"]);
        assert.ok(environment.includes("TZ=UTC"));
        const command = Deno.readTextFileSync(`/proc/${pid}/cmdline`).split(SEPARATOR);
        for (const flag of ["--no-config", "--no-lock", "--no-remote", "--cached-only", "--no-prompt"]) {
          assert.ok(command.includes(flag), flag);
        }
      });
    } finally {
      for (const name of ["SOJOURN_TEST_SECRET", "TZ"]) {
        const was = before[name];
        if (was === undefined) Deno.env.delete(name);
        else Deno.env.set(name, was);
      }
    }
  },
});

Deno.test("nothing is left in the folder of sockets when a process has connected (P2)", () =>
  withProcess((_, folder) => assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), [])));

Deno.test({
  name: "a process that is given out is in its group (cgroups.ts CG1)",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const lent = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(`${lent}/cgroup.subtree_control`, "cpu memory pids");
      await withProcess(
        ({ pid }) => {
          const [group] = [...Deno.readDirSync(lent)].filter(({ isDirectory }) => isDirectory);
          assert.equal(Deno.readTextFileSync(`${lent}/${group?.name}/cgroup.procs`), `${pid}`);
          // The kernel's files go with their folder: these have to be removed for it.
          for (const { name } of Deno.readDirSync(`${lent}/${group?.name}`)) {
            Deno.removeSync(`${lent}/${group?.name}/${name}`);
          }
        },
        false,
        await IsolateCgroups.open(lent),
      );
    } finally {
      await Deno.remove(lent, { recursive: true });
    }
  },
});

const NICE = 19;

/** How much all threads of a process give way, beside this one. */
function nicenesses(pid: number): Set<number> {
  const own = fieldOf(Deno.pid, NICE);
  return new Set(
    [...Deno.readDirSync(`/proc/${pid}/task`)].map(({ name }) => fieldOf(`${pid}/task/${name}`, NICE) - own),
  );
}

/** How much a session gives way where the kernel shares its cores among sessions; null where it does not. */
function sessionNice(pid: number): number | null {
  try {
    return Number(Deno.readTextFileSync(`/proc/${pid}/autogroup`).split(" ").at(-1)); // /autogroup-12 nice 10
  } catch {
    return null;
  }
}

Deno.test({
  name: "a process gives way with all its threads and as a session when it is told to, and no more (P7)",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    withProcess((process) => {
      assert.deepEqual([...nicenesses(process.pid)], [0]);
      assert.ok(process.giveWay(true));
      assert.deepEqual([...nicenesses(process.pid)], [10]);
      assert.equal(sessionNice(process.pid) ?? 10, 10);
      assert.ok(process.giveWay(false));
      assert.equal(sessionNice(process.pid) ?? 0, 0);
    }),
});

Deno.test({
  name: "a process may give way from its start (P7)",
  ignore: Deno.build.os !== "linux",
  fn: () =>
    withProcess((process) => {
      assert.ok(process.startedGivingWay);
      assert.deepEqual([...nicenesses(process.pid)], [10]);
      assert.equal(sessionNice(process.pid) ?? 10, 10);
    }, true),
});

Deno.test("what was begun of a process that can't start is given back: its socket, and its path", async () => {
  const folder = await makeIsolatesFolder();
  // Its mark can't be made, whichever number it has.
  for (let i = 0; i < 256; i++) await Deno.writeTextFile(`${folder}/${Deno.pid}-${i}.mark`, "");
  const { heapMib, buffersMib } = DEFAULT_ISOLATE_LIMITS, serve = await bootstrapFile("serve");
  await assert.rejects(
    startProcess({ bootstrap: serve, folder, heapMib, buffersMib }),
    Deno.errors.AlreadyExists,
  );
  assert.deepEqual([...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".sock")), []);
  await removeIsolatesFolder(folder); // and nothing is open any more, or this test fails
});
