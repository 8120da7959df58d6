/**
 * A real browser for tests: Chromium, driven by its own protocol over a WebSocket.
 *
 * Life: `findBrowser` (null where none is installed) → `Browser.start` → `open` pages → `stop`.
 */
import { strict as assert } from "node:assert";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/** A browser on a busy machine takes seconds to start, and to draw. */
const WAIT_MS = 40_000;
const POLL_MS = 50;

/** The path of a browser; null where there is none. */
export async function findBrowser(): Promise<string | null> {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    for (const name of NAMES) {
      const path = `${folder}/${name}`;
      if (await Deno.stat(path).then((found) => found.isFile, () => false)) return path;
    }
  }
  return null;
}

interface Answer {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

/** A running browser. */
export class Browser {
  readonly #child: Deno.ChildProcess;
  readonly #socket: WebSocket;
  readonly #profile: string;
  readonly #reading: Promise<void>;
  readonly #asked = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  readonly #pages = new Map<string, Page>();
  #next = 1;

  private constructor(
    child: Deno.ChildProcess,
    parts: { socket: WebSocket; profile: string; reading: Promise<void> },
  ) {
    this.#child = child;
    this.#socket = parts.socket;
    this.#profile = parts.profile;
    this.#reading = parts.reading;
    this.#socket.onmessage = ({ data }) => this.#take(JSON.parse(String(data)) as Answer);
  }

  static async start(path: string): Promise<Browser> {
    const profile = await Deno.makeTempDir({ prefix: "sojourn-browser-" });
    const child = new Deno.Command(path, {
      args: [
        ...["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
        ...["--remote-debugging-port=0", `--user-data-dir=${profile}`, "--hide-scrollbars", "about:blank"],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const address = Promise.withResolvers<string>();
    const reading = (async () => {
      let text = "";
      for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
        text = (text + part).slice(-20_000);
        const [, found] = /DevTools listening on (ws:\S+)/.exec(text) ?? [];
        if (found !== undefined) address.resolve(found);
      }
      address.reject(new Error(`the browser ended: ${text.slice(-500)}`));
    })();
    const socket = new WebSocket(await address.promise);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error("the browser takes no commands"));
    });
    return new Browser(child, { socket, profile, reading });
  }

  /** Sends a command of the protocol. */
  async send(method: string, params: unknown = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = this.#next++;
    const asked = Promise.withResolvers<Record<string, unknown>>();
    this.#asked.set(id, asked);
    this.#socket.send(
      JSON.stringify({ id, method, params, ...sessionId === undefined ? {} : { sessionId } }),
    );
    return await asked.promise;
  }

  /** Opens a page. */
  async open(url: string, size = { width: 1280, height: 900 }): Promise<Page> {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, String(sessionId), String(targetId));
    this.#pages.set(String(sessionId), page);
    for (const domain of ["Page", "Runtime", "Log", "Accessibility"]) await page.send(`${domain}.enable`);
    await page.send("Emulation.setDeviceMetricsOverride", { ...size, deviceScaleFactor: 1, mobile: false });
    await page.go(url);
    return page;
  }

  async stop(): Promise<void> {
    await this.send("Browser.close").catch(() => {});
    const closed = new Promise((resolve) => this.#socket.onclose = resolve);
    if (this.#socket.readyState !== WebSocket.CLOSED) {
      this.#socket.close();
      await closed;
    }
    await this.#child.status;
    await this.#reading.catch(() => {});
    await Deno.remove(this.#profile, { recursive: true });
  }

  #take(answer: Answer): void {
    if (answer.id === undefined) {
      this.#pages.get(answer.sessionId ?? "")?.hear(answer.method ?? "", answer.params ?? {});
      return;
    }
    const asked = this.#asked.get(answer.id);
    this.#asked.delete(answer.id);
    if (answer.error === undefined) asked?.resolve(answer.result ?? {});
    else asked?.reject(new Error(answer.error.message));
  }
}

/** A page in it. */
export class Page {
  readonly #browser: Browser;
  readonly #session: string;
  readonly #target: string;
  /** What the page complained of: exceptions, refused loads, broken rules of its policy. */
  readonly complaints: string[] = [];

  constructor(browser: Browser, session: string, target: string) {
    this.#browser = browser;
    this.#session = session;
    this.#target = target;
  }

  send(method: string, params: unknown = {}): Promise<Record<string, unknown>> {
    return this.#browser.send(method, params, this.#session);
  }

  hear(method: string, params: Record<string, unknown>): void {
    if (method === "Runtime.exceptionThrown") this.complaints.push(JSON.stringify(params.exceptionDetails));
    if (method !== "Log.entryAdded") return;
    const { level, text, url } = params.entry as { level: string; text: string; url?: string };
    if (level === "error") this.complaints.push(`${text} ${url ?? ""}`);
  }

  async go(url: string): Promise<void> {
    await this.send("Page.navigate", { url });
    await this.until(
      "the document is there",
      `document.readyState === "complete" && location.href !== "about:blank"`,
    );
  }

  /** The value of an expression, awaited. */
  async evaluate(expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    }) as { result: { value?: unknown }; exceptionDetails?: { exception?: { description?: string } } };
    if (exceptionDetails !== undefined) {
      throw new Error(exceptionDetails.exception?.description ?? JSON.stringify(exceptionDetails));
    }
    return result.value;
  }

  /** Waits until an expression is true; it may throw while the page loads. */
  async until(what: string, expression: string): Promise<void> {
    const untilMs = performance.now() + WAIT_MS;
    let last: unknown;
    while (performance.now() < untilMs) {
      last = await this.evaluate(expression).catch((error) => error);
      if (last === true) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    assert.fail(`not within ${WAIT_MS} ms: ${what} (${last}); ${this.complaints.join("; ")}`);
  }

  /** Presses a key as a person does. */
  async press(key: "Tab" | "Enter" | " "): Promise<void> {
    const code = key === " " ? "Space" : key;
    const text = key === "Enter" ? "\r" : key === " " ? " " : undefined;
    const windowsVirtualKeyCode = { "Tab": 9, "Enter": 13, " ": 32 }[key];
    const event = { key, code, windowsVirtualKeyCode, ...text === undefined ? {} : { text } };
    await this.send("Input.dispatchKeyEvent", {
      type: text === undefined ? "rawKeyDown" : "keyDown",
      ...event,
    });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  async screenshot(): Promise<Uint8Array> {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    return Uint8Array.fromBase64(String(data));
  }

  async close(): Promise<void> {
    await this.#browser.send("Target.closeTarget", { targetId: this.#target });
  }
}
