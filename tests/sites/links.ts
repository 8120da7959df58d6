/**
 * Requests with bodies between sites, over the messages of the simulated network: what the links of sites are to those
 * who bring calls and ways (runtime/gateway: RequestLinks).
 *
 *   message   byte kind · 8 digits: exchange · bytes
 *
 * LK1  A request ends: with an answer, or because the other site can't be reached, or is gone.
 * LK2  Both bodies end with an error where the way between the sites breaks.
 */
import type { LinkReply, LinkRequest, RequestLinks } from "../../functions/vocabulary/site_links.ts";

const ASK = 0, TAKEN = 1, ANSWER = 2, FAILED = 3, CHUNK = 4, END = 5, CANCEL = 6;
/** A site that says nothing of a request by then can't be reached. */
const TAKEN_MS_MAX = 1_000;
const DIGITS = 8;

/** What they need of their process. */
export interface LinksPorts {
  readonly after: (ms: number, run: () => void) => () => void;
  readonly send: (to: string, message: Uint8Array) => void;
  readonly serve: (request: LinkRequest) => Promise<LinkReply>;
  /** Something is sent of a body, of the request or of its answer: what goes in its place; null: the way breaks there. */
  readonly bodies: (kind: string, isRequest: boolean, chunk: Uint8Array) => readonly Uint8Array[] | null;
}

type Links = { readonly head: Uint8Array; readonly body: ReadableStream<Uint8Array> | null };

/** One request, at either end. */
interface Exchange {
  readonly site: string;
  readonly kind: string;
  /** What comes. */
  incoming: ReadableStreamDefaultController<Uint8Array> | null;
  /** What goes, while it does. */
  outgoing: ReadableStreamDefaultReader<Uint8Array> | null;
  answered: PromiseWithResolvers<Links> | null;
  readonly abort: AbortController | null;
  cancelLate: () => void;
}

/** Ids of exchanges are the run's: nobody's twice. */
export interface Numbers {
  next: number;
}

class LinkFailed extends Error {
  readonly code = "unreachable";
}

const utf8 = new TextEncoder(), text = new TextDecoder();

/** One process's end of all its links. */
export class SimLinks implements RequestLinks {
  readonly #ports: LinksPorts;
  readonly #numbers: Numbers;
  readonly #exchanges = new Map<string, Exchange>();

  constructor(ports: LinksPorts, numbers: Numbers) {
    this.#ports = ports;
    this.#numbers = numbers;
  }

  request(
    to: string,
    kind: string,
    head: Uint8Array,
    { body = null, signal }: NonNullable<Parameters<RequestLinks["request"]>[3]> = {},
  ): Promise<Links> {
    const id = `${++this.#numbers.next}`.padStart(DIGITS, "0");
    const answered = Promise.withResolvers<Links>();
    const exchange: Exchange = {
      ...{ site: to, kind, incoming: null, outgoing: null, answered, abort: null },
      cancelLate: this.#ports.after(TAKEN_MS_MAX, () => this.#gone(id, `${to} says nothing`)),
    };
    this.#exchanges.set(id, exchange);
    const bytes = new Uint8Array(2 + kind.length + head.length);
    bytes.set([body === null ? 0 : 1, kind.length]);
    bytes.set(utf8.encode(kind), 2);
    bytes.set(head, 2 + kind.length);
    this.#send(to, ASK, id, bytes);
    if (body !== null) void this.#pump(id, exchange, body, true);
    signal?.addEventListener("abort", () => {
      if (this.#exchanges.get(id) !== exchange || exchange.answered === null) return;
      this.#send(to, CANCEL, id);
      this.#gone(id, "it was given up");
    });
    return answered.promise;
  }

  /** A message of another site. */
  received(from: string, message: Uint8Array): void {
    const kind = message[0] ?? END;
    const id = text.decode(message.subarray(1, 1 + DIGITS));
    const bytes = message.slice(1 + DIGITS);
    if (kind === ASK) return void this.#asked(from, id, bytes);
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined || exchange.site !== from) return;
    switch (kind) {
      case TAKEN:
        return exchange.cancelLate();
      case ANSWER: {
        exchange.cancelLate();
        const hasBody = bytes[0] === 1;
        exchange.answered?.resolve({ head: bytes.slice(1), body: hasBody ? this.#incoming(exchange) : null });
        exchange.answered = null;
        return hasBody ? undefined : this.#tidy(id, exchange);
      }
      case FAILED:
        return this.#gone(id, text.decode(bytes));
      case CHUNK:
        return exchange.incoming?.enqueue(bytes);
      case END:
        exchange.incoming?.close();
        exchange.incoming = null;
        return this.#tidy(id, exchange);
      case CANCEL:
        return this.#gone(id, "it was given up");
    }
  }

  /** The way to a site is gone. */
  disconnected(site: string): void {
    for (const [id, exchange] of [...this.#exchanges]) {
      if (exchange.site === site) this.#gone(id, `the way to ${site} is gone`);
    }
  }

  async #asked(from: string, id: string, bytes: Uint8Array): Promise<void> {
    const [hasBody, length = 0] = bytes;
    const kind = text.decode(bytes.subarray(2, 2 + length));
    const abort = new AbortController();
    const exchange: Exchange = {
      ...{ site: from, kind, incoming: null, outgoing: null, answered: null, abort },
      cancelLate: () => {},
    };
    this.#exchanges.set(id, exchange);
    const body = hasBody === 1 ? this.#incoming(exchange) : null;
    this.#send(from, TAKEN, id);
    try {
      const reply = await this.#ports.serve({
        kind,
        head: bytes.slice(2 + length),
        body,
        signal: abort.signal,
      });
      if (this.#exchanges.get(id) !== exchange) return void reply.body?.cancel().catch(() => {});
      const out = reply.body ?? null;
      const head = new Uint8Array(1 + reply.head.length);
      head[0] = out === null ? 0 : 1;
      head.set(reply.head, 1);
      this.#send(from, ANSWER, id, head);
      if (out !== null) return void this.#pump(id, exchange, out, false);
      this.#tidy(id, exchange);
    } catch (error) {
      this.#send(from, FAILED, id, utf8.encode(String(error)));
      this.#gone(id, "it failed");
    }
  }

  #incoming(exchange: Exchange): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        exchange.incoming = controller;
      },
      cancel: () => {
        exchange.incoming = null;
      },
    });
  }

  async #pump(
    id: string,
    exchange: Exchange,
    body: ReadableStream<Uint8Array>,
    isRequest: boolean,
  ): Promise<void> {
    const reader = exchange.outgoing = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (this.#exchanges.get(id) !== exchange) return;
        if (done) break;
        const sent = this.#ports.bodies(exchange.kind, isRequest, value);
        if (sent === null) {
          this.#send(exchange.site, CANCEL, id);
          return this.#gone(id, "the way broke");
        }
        for (const chunk of sent) this.#send(exchange.site, CHUNK, id, chunk);
      }
      this.#send(exchange.site, END, id);
    } catch {
      this.#send(exchange.site, CANCEL, id);
      this.#gone(id, "its body broke");
    }
    exchange.outgoing = null;
    this.#tidy(id, exchange);
  }

  /** Nothing goes and nothing comes any more. */
  #tidy(id: string, { incoming, outgoing, answered }: Exchange): void {
    if (incoming === null && outgoing === null && answered === null) this.#exchanges.delete(id);
  }

  /** LK1, LK2 */
  #gone(id: string, why: string): void {
    const exchange = this.#exchanges.get(id);
    if (exchange === undefined) return;
    this.#exchanges.delete(id);
    exchange.cancelLate();
    const error = new LinkFailed(why);
    exchange.answered?.reject(error);
    exchange.incoming?.error(error);
    exchange.outgoing?.cancel(error).catch(() => {});
    exchange.abort?.abort();
  }

  #send(to: string, kind: number, id: string, bytes: Uint8Array = new Uint8Array(0)): void {
    const message = new Uint8Array(1 + DIGITS + bytes.length);
    message[0] = kind;
    message.set(utf8.encode(id), 1);
    message.set(bytes, 1 + DIGITS);
    this.#ports.send(to, message);
  }
}
