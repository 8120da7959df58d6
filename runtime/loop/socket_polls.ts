/**
 * How often Deno looks at sockets while JavaScript has something to do at once.
 *
 * Deno runs on tokio, which looks at sockets when nothing else is ready, or after so many steps: 61, where nothing is said.
 * A slice that is put off with `setImmediate` is ready at once, and so is the next one. Whoever has work in slices of a
 * millisecond (next_turn.ts) is heard by others each sixtieth slice: a request that goes to its isolate and back waits 70 ms
 * for each way, where it would be 1. Deno takes the number from its environment as its process starts.
 *
 * SP1  A site's process starts with POLLED_EACH: by `dev`, and by the task that the documents name. One that was not says so
 *      in its log, and works.
 */

/** Read by Deno as a process starts. */
export const POLLED_EACH_NAME = "DENO_TOKIO_EVENT_INTERVAL";
/**
 * A look costs a microsecond. Each of so many steps has one: 3 % of the time of a bare server (with 1 it is 20 %), and a way
 * through an isolate beside somebody's slices waits for two of these.
 */
export const POLLED_EACH = 4;

/** A warning where this process was started without it; null: it was started with it. */
export function polledLate(env: Pick<typeof Deno.env, "get"> = Deno.env): string | null {
  const said = Number(env.get(POLLED_EACH_NAME));
  if (said >= 1 && said <= POLLED_EACH) return null;
  return `while one app has much to do the others wait for it: start the site with ${POLLED_EACH_NAME}=${POLLED_EACH}`;
}
