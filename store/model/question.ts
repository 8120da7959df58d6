/** The numbers of questions between sites, by which their answers are known. */
import type { Random } from "./ports.ts";

/**
 * Returns the number from which a process begins to count: an answer may come long after the process that asked has
 * died, to the next one, and must not be taken for an answer to that.
 */
export function firstId(random: Random): number {
  return random.bytes(4).reduce((id, byte) => id * 256 + byte, 0) + 1;
}
