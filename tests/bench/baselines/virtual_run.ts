/** Runs a body in virtual time of its own. */
import { World } from "../../sim/world.ts";
import { VirtualLinks } from "./links.ts";
import type { Around } from "./tree_site.ts";

/** No experiment takes this long in virtual time: it hangs. */
const LIMIT_MS = 24 * 3_600_000;

/** @throws what the body throws, or Error where it waits for something that never comes. */
export async function inVirtualTime<T>(body: (around: Around) => Promise<T>): Promise<T> {
  const world = new World();
  const around = { world, links: new VirtualLinks(world) };
  let isOver = false;
  const running = body(around).finally(() => isOver = true);
  running.catch(() => {});
  if (!await world.run(LIMIT_MS, () => isOver)) {
    throw new Error(`the body has not ended after ${world.nowMs} ms of virtual time`);
  }
  return await running;
}
