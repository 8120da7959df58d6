/**
 * The number of steps after which Deno looks at sockets while JavaScript has something to do at once.
 *
 * Deno runs on tokio, which looks at sockets when nothing else is ready, or after so many steps: 61, where nothing is
 * said. A slice that is put off with `setImmediate` is ready at once, and so is the next one. While one part of a site
 * works in slices of a millisecond (next_turn.ts), the others are heard each sixtieth slice: a request that goes to its
 * isolate and back waits 70 ms for each way, where it would be 1. Deno takes the number from its environment as its
 * process starts.
 *
 * SP1  A site's process starts with POLLED_EACH: by `dev`, and by the task that the documents name. A process that was
 *      started without it says so in its log, and works.
 */

/** Name of the variable that Deno reads as a process starts. */
export const POLLED_EACH_NAME = "DENO_TOKIO_EVENT_INTERVAL";
/**
 * Number of steps after which sockets are looked at. A look costs a microsecond: with this number 3 % of the time of a
 * bare server (with 1 it is 20 %), and a way through an isolate beside another's slices waits for two of these.
 */
export const POLLED_EACH = 4;

/** Returns a warning where this process was started without POLLED_EACH; null where it was started with it. */
export function polledLate(env: Pick<typeof Deno.env, "get"> = Deno.env): string | null {
  const said = Number(env.get(POLLED_EACH_NAME));
  if (said >= 1 && said <= POLLED_EACH) return null;
  return `while one app has much to do the others wait for it: start the site with ${POLLED_EACH_NAME}=${POLLED_EACH}`;
}
