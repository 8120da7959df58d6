/** The time limit of something that is given up when it takes too long. */
import type { ClientClock } from "./ports.ts";

/**
 * Runs something that ends when its signal aborts: after `ms`, or with `over`.
 *
 * @param over a signal that ends it too.
 * @throws whatever `run` throws; the signal's reason is a DOMException `TimeoutError`.
 */
export async function within<T>(
  clock: ClientClock,
  { ms, over = null }: { readonly ms: number; readonly over?: AbortSignal | null },
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const stop = () => late.abort(new DOMException(`no answer in ${ms} ms`, "TimeoutError"));
  const cancel = clock.after(ms, stop);
  over?.addEventListener("abort", stop, { once: true });
  try {
    return await run(late.signal);
  } finally {
    cancel();
    over?.removeEventListener("abort", stop);
  }
}
