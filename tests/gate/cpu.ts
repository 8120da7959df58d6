/** What the gate's child processes have taken of the cores. */

/** Of /proc/self/stat, behind the name of the program: what children that were waited for took, in user and in system. */
const CHILDREN_USER = 13;
const CHILDREN_SYSTEM = 14;
/** The kernel tells times of processes in hundredths. */
const TICKS_A_SECOND = 100;

/** CPU seconds of all processes below this one that have ended and were waited for; null where there is no /proc. */
export function cpuOfChildren(): number | null {
  try {
    const text = Deno.readTextFileSync("/proc/self/stat");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[CHILDREN_USER]) + Number(fields[CHILDREN_SYSTEM]);
    return Number.isFinite(ticks) ? ticks / TICKS_A_SECOND : null;
  } catch {
    return null; // another system
  }
}
