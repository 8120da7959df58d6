/** Memory and CPU that this process takes of its machine. */
import process from "node:process";

/** Milliseconds of the shortest span measured: two calls at once would otherwise leave the second a span too short. */
const SPAN_MS_MIN = 200;

/** Memory and CPU of this process; isolates are processes of their own, and not in it. */
export class ProcessLoad {
  readonly #begunMs = performance.now();
  #atMs = this.#begunMs;
  #usedUs = usedUs();
  #cpu = 0;

  look(): { upMs: number; rssBytes: number; cpu: number } {
    const nowMs = performance.now();
    const spanMs = nowMs - this.#atMs;
    if (spanMs >= SPAN_MS_MIN) {
      const now = usedUs();
      this.#cpu = Math.round((now - this.#usedUs) / spanMs / 10) / 100;
      this.#usedUs = now;
      this.#atMs = nowMs;
    }
    return { upMs: Math.round(nowMs - this.#begunMs), rssBytes: process.memoryUsage.rss(), cpu: this.#cpu };
  }
}

function usedUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
