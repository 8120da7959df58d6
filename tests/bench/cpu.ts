/** Processor time of running processes and all their descendants, from /proc (Linux). */

/** Linux reports processor time in ticks of 10 ms, whatever the kernel's own tick is. */
const MS_PER_TICK = 10;

/** CPU milliseconds that each process and its living descendants have used; 0 for one that is gone. */
export async function cpuMs(pids: readonly number[]): Promise<number[]> {
  const parents = new Map<number, number>();
  const used = new Map<number, number>();
  for await (const entry of Deno.readDir("/proc")) {
    const pid = Number(entry.name);
    if (!Number.isInteger(pid)) continue;
    const stat = await readStat(pid);
    if (stat === null) continue;
    parents.set(pid, stat.parent);
    used.set(pid, stat.ms);
  }
  const wanted = new Map(pids.map((pid) => [pid, used.get(pid) ?? 0]));
  for (const [pid, ms] of used) {
    const owner = wanted.has(pid) ? undefined : ancestorIn(wanted, parents, pid);
    if (owner !== undefined) wanted.set(owner, (wanted.get(owner) ?? 0) + ms);
  }
  return pids.map((pid) => wanted.get(pid) ?? 0);
}

function ancestorIn(
  wanted: Map<number, number>,
  parents: Map<number, number>,
  pid: number,
): number | undefined {
  for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at)) {
    if (wanted.has(at)) return at;
  }
  return undefined;
}

async function readStat(pid: number): Promise<{ parent: number; ms: number } | null> {
  try {
    const text = await Deno.readTextFile(`/proc/${pid}/stat`);
    // The command's name stands in parentheses and may hold blanks: count the fields after it.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { parent: Number(fields[1]), ms: (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK };
  } catch {
    return null; // it ended between the listing and the read
  }
}
