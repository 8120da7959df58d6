/**
 * Compressor: a stateful session between a client and an HTTP server that knows nothing of it. What the server answers
 * goes to the client compressed against all that went before. The window that this takes is the session's state: it
 * survives the loss of its site, and so does what was saved by it.
 */
import { bytes, defineApp, type EnvOf, type From, Session } from "sojourn";
import { type Asked, asked, encodeReply } from "./wire.ts";
import { compress, type Window, WINDOW_BYTES } from "./window.ts";

/** The server behind: it is to run there. */
const ORIGIN = "http://127.0.0.1:9200";

type Env = EnvOf<Record<never, never>, { wire: Wire }>;

/** About one connection, or wrong for what is sent in another form. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "host",
  "keep-alive",
  "transfer-encoding",
]);
const passed = (headers: Iterable<readonly [string, string]>): [string, string][] =>
  [...headers].flatMap(([name, value]) => OWN_HEADERS.has(name.toLowerCase()) ? [] : [[name, value]]);

/** One client's wire to the server. */
export class Wire extends Session<Env> {
  static origin = ORIGIN;
  window = bytes(WINDOW_BYTES);
  /** Of all bytes that were ever in the window; of those that were sent for them. */
  written = 0;
  sent = 0;

  /** One client a wire, whose window begins with it. */
  override onOpen(from: From): void {
    for (const other of this.clients) {
      if (other.id !== from.id) other.close(1008, "another client took this wire");
    }
    this.written = 0;
    this.sent = 0;
  }

  override async onMessage(message: string | Uint8Array, from: From): Promise<void> {
    const request = asked.safeParse(jsonOf(message));
    if (!request.success) return from.close(1008, "this is no request");
    const { status, headers, plain } = await this.#ask(request.data);
    const window: Window = { bytes: this.window, written: this.written };
    const packed = compress(window, plain);
    this.written = window.written;
    this.sent += packed.length;
    from.send(encodeReply({ n: request.data.n, status, headers, bytes: plain.length }, packed));
  }

  async #ask({ method, path, headers, body }: Asked) {
    const url = new URL(path, ORIGIN);
    if (url.origin !== ORIGIN) return problem(400, `${path} is not on ${ORIGIN}`);
    try {
      const answer = await fetch(url, { method, headers: passed(headers), body, redirect: "manual" });
      return { status: answer.status, headers: passed(answer.headers), plain: await answer.bytes() };
    } catch (error) {
      return problem(502, error instanceof Error ? error.message : String(error));
    }
  }

  override onClose(): void {
    if (this.clients.length === 0) this.end();
  }

  /** What was saved. */
  saved(): { readonly plain: number; readonly sent: number } {
    return { plain: this.written, sent: this.sent };
  }
}

const problem = (status: number, text: string) => ({
  status,
  headers: [["content-type", "text/plain"]] as [string, string][],
  plain: new TextEncoder().encode(text),
});

function jsonOf(message: string | Uint8Array): unknown {
  try {
    return typeof message === "string" ? JSON.parse(message) : null;
  } catch {
    return null;
  }
}

export default defineApp({
  name: "compressor",
  sessions: { wire: Wire },
  fetch: async (request: Request, env: Env) => {
    const [, id, saved] = /^\/wires\/([\w.-]{1,100})(\/saved)?$/.exec(new URL(request.url).pathname) ?? [];
    if (id === undefined) return new Response("GET /wires/ID, as a WebSocket\n", { status: 404 });
    if (saved !== undefined) return Response.json(await env.sessions.wire.get(id).saved());
    return await env.sessions.wire.get(id).fetch(request);
  },
});
