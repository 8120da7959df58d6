/**
 * The client of the compressor, as a program: an HTTP server on this machine that answers as the origin would. What it
 * gets comes over one WebSocket to a stateful session, compressed against all that came before.
 *
 *   deno run -A examples/compressor/client.ts --sites http://localhost:8003/compressor --port 8090
 */
import { type Client, connect } from "sojourn/client";
import * as z from "zod";
import { decodeReply, type ReplyHead } from "./wire.ts";
import { expand, type Window, WINDOW_BYTES } from "./window.ts";

interface Answer {
  readonly head: ReplyHead;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** One wire: requests go out numbered, replies come in the same order. */
export class WireClient {
  readonly #socket: WebSocket;
  readonly #window: Window = { bytes: new PlainBytes(WINDOW_BYTES), written: 0 };
  readonly #waiting = new Map<number, PromiseWithResolvers<Answer>>();
  #next = 1;
  /** What came over the wire, and what it stood for. */
  sent = 0;
  plain = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => this.#reply(new Uint8Array(data)));
    socket.addEventListener("close", ({ code, reason }) => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`the wire closed: ${code} ${reason}`));
      }
    });
  }

  /** Opens a wire. */
  static async open(client: Pick<Client, "WebSocket">, id: string): Promise<WireClient> {
    const socket = new client.WebSocket(`/wires/${id}`);
    const wire = new WireClient(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve, { once: true });
      socket.addEventListener("close", ({ code, reason }) => reject(new Error(`${code} ${reason}`)), {
        once: true,
      });
    });
    return wire;
  }

  /** Asks the origin, by way of the session. */
  ask(method: string, path: string, headers: [string, string][], body: string | null): Promise<Answer> {
    const n = this.#next++;
    const answer = Promise.withResolvers<Answer>();
    this.#waiting.set(n, answer);
    this.#socket.send(JSON.stringify({ n, method, path, headers, body }));
    return answer.promise;
  }

  close(): void {
    this.#socket.close();
  }

  #reply(message: Uint8Array): void {
    const { head, packed } = decodeReply(message);
    const body = expand(this.#window, packed, head.bytes);
    this.sent += message.length;
    this.plain += body.length;
    this.#waiting.get(head.n)?.resolve({ head, body });
    this.#waiting.delete(head.n);
  }
}

/** The window's bytes at this end. */
class PlainBytes {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  constructor(length: number) {
    this.#bytes = new Uint8Array(length);
  }
  slice(start: number, end: number): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(start, end);
  }
  set(source: Uint8Array, offset: number): void {
    this.#bytes.set(source, offset);
  }
}

/** Statuses whose Response takes no body. */
const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

async function answered(wire: WireClient, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const body = request.method === "GET" || request.method === "HEAD" ? null : await request.text();
  try {
    const { head, body: plain } = await wire.ask(
      request.method,
      pathname + search,
      [...request.headers],
      body,
    );
    return new Response(NO_BODY.has(head.status) ? null : plain, {
      status: head.status,
      headers: head.headers,
    });
  } catch (error) {
    return new Response(`${error instanceof Error ? error.message : error}\n`, { status: 502 });
  }
}

const options = z.object({ "--sites": z.url(), "--port": z.coerce.number().int().min(0).max(65_535) });

/** A site answers within milliseconds, or is not there. */
const LATE_MS = 3_000;

/** What the command line says; null: not what it takes. */
function readOptions(args: readonly string[]): z.infer<typeof options> | null {
  const pairs = Array.from({ length: Math.ceil(args.length / 2) }, (_, i) => args.slice(2 * i, 2 * i + 2));
  return options.safeParse(Object.fromEntries(pairs)).data ?? null;
}

if (import.meta.main) {
  const read = readOptions(Deno.args);
  if (read === null) {
    console.error("usage: client.ts --sites http://localhost:8003/compressor --port 8090");
    Deno.exit(2);
  }
  const { "--sites": sites, "--port": port } = read;
  const late = setTimeout(() => console.error(`nobody answers at ${sites} yet; trying on`), LATE_MS);
  const wire = await WireClient.open(await connect({ sites }), crypto.randomUUID());
  clearTimeout(late);
  Deno.serve({ hostname: "127.0.0.1", port }, (request) => answered(wire, request));
  setInterval(() => console.error(`${wire.plain} bytes came as ${wire.sent}`), 5_000);
}
