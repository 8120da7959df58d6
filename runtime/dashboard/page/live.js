/**
 * The way to the cluster: calls with the token, and streams that go on at another site when theirs goes away.
 *
 * The page has an origin of its own (a sandbox), so every call is one across origins: the browser asks first whether
 * it may, and the site allows that page alone.
 */

/** A stream that says nothing for so long has a site that stands still. */
const SILENT_MS = 6_000;
const AGAIN_MS = 700;

/** A call that the cluster refused for want of a token, or of a better one. */
export class Refused extends Error {}

export class Cluster {
  #token = null;
  #urls;
  #base;

  constructor(token) {
    this.#token = token;
    this.#base = new URL(location.href).origin;
    this.#urls = [this.#base];
  }

  /** Where calls go now. */
  get base() {
    return this.#base;
  }

  setToken(token) {
    this.#token = token;
  }

  /** All sites, where to go on. */
  knows(urls) {
    this.#urls = [...new Set([this.#urls[0], ...urls])];
  }

  async call(path, { method = "GET", body, signal, base = this.#base } = {}) {
    const headers = {};
    if (this.#token !== null) headers.authorization = `Bearer ${this.#token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const answer = await fetch(`${base}/_sojourn/admin${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
    if (answer.status === 401 || answer.status === 403) {
      const problem = await answer.json().catch(() => ({}));
      const said = problem.detail ?? `HTTP ${answer.status}`;
      throw new Refused(this.#token === null ? "What the sites say is for operators." : said);
    }
    return answer;
  }

  /**
   * Follows a stream of JSON lines until the signal aborts, at whichever site answers. `on.lost` is told once for
   * each time that it breaks off. Throws only Refused.
   */
  async follow(path, on, signal) {
    let { base } = this;
    while (!signal.aborted) {
      try {
        await this.#read(base, path, (value) => {
          this.#base = base; // where calls go, too: it answers
          on.value(value);
        }, signal);
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      if (signal.aborted) return;
      // Each stream looks for itself: streams that moved one place together would pass over each other's finds.
      const next = this.#urls[(this.#urls.indexOf(base) + 1) % this.#urls.length];
      on.lost?.(base, next);
      base = next;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  async #read(base, path, take, signal) {
    const own = new AbortController();
    const stop = () => own.abort();
    signal.addEventListener("abort", stop);
    let timer = setTimeout(stop, SILENT_MS);
    try {
      const answer = await this.call(path, { base, signal: own.signal });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(stop, SILENT_MS);
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line !== "") take(JSON.parse(line));
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }
}
