import assert from "node:assert/strict";
import { IsolateCgroups } from "./cgroups.ts";

/** A folder that stands for a cgroup: what the kernel makes of the files is not seen here, what is written into them is. */
async function withGroup(controllers: string, run: (path: string) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${path}/cgroup.subtree_control`, controllers);
    await run(path);
  } finally {
    await Deno.remove(path, { recursive: true });
  }
}

/** The groups below. */
function groupsOf(path: string): string[] {
  return [...Deno.readDirSync(path)].filter(({ isDirectory }) => isDirectory).map(({ name }) => name).sort();
}

const SIZES = { heapMib: 128, buffersMib: 128 };

Deno.test("a process gets a group of its own with its bounds, which goes when it has (CG2)", async () => {
  await withGroup("cpuset cpu memory pids\n", async (path) => {
    const [first, again] = [await IsolateCgroups.open(path), await IsolateCgroups.open(path)];
    const group = await first.hold(41, SIZES);
    await again.hold(42, SIZES);
    const [name = "", other = ""] = groupsOf(path);
    assert.notEqual(other, "", "sites of one process that share a group name theirs apart");
    const read = (file: string) => Deno.readTextFileSync(`${path}/${name}/${file}`);
    assert.equal(read("cpu.max"), "150000 100000");
    assert.equal(Number(read("memory.max")), 320 * 1024 * 1024);
    assert.ok(Number(read("pids.max")) >= 64);
    assert.equal(read("cgroup.procs"), "41");
    const removed = group.remove();
    for (const { name: file } of Deno.readDirSync(`${path}/${name}`)) {
      Deno.removeSync(`${path}/${name}/${file}`);
    }
    await removed;
    assert.deepEqual(groupsOf(path), [other]);
  });
});

Deno.test("groups of a site that was killed are removed by the next, and nobody else's (CG2)", async () => {
  await withGroup("cpu memory pids", async (path) => {
    const gone = 2 ** 22 + 1; // beyond what Linux numbers processes with
    for (const name of [`sojourn-${gone}-0`, `sojourn-${Deno.pid}-900000`, "theirs"]) {
      Deno.mkdirSync(`${path}/${name}`);
    }
    await IsolateCgroups.open(path);
    assert.deepEqual(groupsOf(path), [`sojourn-${Deno.pid}-900000`, "theirs"].sort());
  });
});

Deno.test("a group that can't bound what it has to is refused, with what is missing", async () => {
  await withGroup("memory\n", async (path) => {
    await assert.rejects(IsolateCgroups.open(path), /cpu, pids.*\+cpu \+pids/);
  });
  await assert.rejects(IsolateCgroups.open("/nowhere"), /no cgroup/);
});
