/**
 * Listener for a site's HTTP requests, at one address for its life, with certificates that may be renewed.
 *
 * While a certificate is renewed nothing listens for some milliseconds: a client that connects then is refused by the
 * system and comes again. Requests that have begun are answered; WebSockets are closed with 1001 (Deno's server has no
 * other way to stop listening), as when a site stops.
 *
 * L2  Where a connection can't be taken (no file can be opened any more) Deno's server stops listening, and goes on
 *     with the connections that it has. A new server is begun at the same address a little later, and again, until one
 *     can listen; the wait grows each time that a server ends soon. A client that connects meanwhile is refused by the
 *     system.
 * L3  ENDED_MAX such servers are kept for the connections that they have; with one more the oldest is ended, as where a certificate is renewed.
 */

/** Certificate and key that are shown to clients; empty where the listener speaks plain HTTP. */
export type Shown = { readonly cert: string; readonly key: string } | Record<string, never>;

interface Options {
  readonly at: { readonly hostname: string; readonly port: number };
  readonly handle: Deno.ServeHandler<Deno.NetAddr>;
  /** Ends all connections at once. */
  readonly signal: AbortSignal;
  /** Called with the reason why nothing listens for a while (L2). */
  readonly note?: (error: unknown) => void;
}

/** Milliseconds until the port is tried again: it is free as soon as the system has seen that nothing listens there. */
const AGAIN_MS = 2, AGAIN_MS_MAX = 5_000;
/** Milliseconds before a new server is begun, at first and at most (L2). */
const BEGIN_MS = 100, BEGIN_MS_MAX = 5_000;
/** Milliseconds below which a server that stopped listening has ended "soon" (L2). */
const SOON_MS = 20_000;
const ENDED_MAX = 256;

/** Listens at one address; see the file's header. */
export class HttpListener {
  readonly #options: Options;
  readonly #ending = new Set<Promise<void>>();
  /** Servers that listen no more, and still have connections (L2). */
  readonly #ended: Deno.HttpServer<Deno.NetAddr>[] = [];
  #server: Deno.HttpServer<Deno.NetAddr>;
  #shown: Shown;
  #beganMs = 0;
  #beginMs = BEGIN_MS;
  /** Timer that runs while nothing listens. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;

  /** Begins to listen. @throws where the address can't be listened at, or not with that certificate. */
  constructor(options: Options, shown: Shown) {
    this.#options = options;
    this.#shown = shown;
    this.#server = this.#listen(options.at);
  }

  get addr(): Deno.NetAddr {
    return this.#server.addr;
  }

  /** Shows another certificate from now on. @throws where the address could not be listened at again. */
  async renew(shown: Shown): Promise<void> {
    this.#shown = shown;
    if (this.#timer !== undefined) return; // the next server shows it
    const before = this.#server;
    this.#end(before);
    const untilMs = performance.now() + AGAIN_MS_MAX;
    for (;;) {
      try {
        this.#server = this.#listen(before.addr);
        return;
      } catch (error) {
        if (!(error instanceof Deno.errors.AddrInUse) || performance.now() >= untilMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Takes no more connections; resolves when all that were taken have ended. */
  async shutdown(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    for (const server of [...this.#ended.splice(0), this.#server]) this.#end(server);
    await Promise.all(this.#ending);
  }

  #listen({ hostname, port }: { hostname: string; port: number }): Deno.HttpServer<Deno.NetAddr> {
    const { handle, signal } = this.#options;
    const server = Deno.serve({ hostname, port, ...this.#shown, signal, onListen: () => {} }, handle);
    this.#beganMs = performance.now();
    server.finished.catch((error) => this.#fell(server, error));
    return server;
  }

  /** Begins a new server after one has stopped listening (L2). */
  #fell(server: Deno.HttpServer<Deno.NetAddr>, error: unknown): void {
    if (server !== this.#server || this.#isStopped || this.#timer !== undefined) return;
    const isSoon = performance.now() - this.#beganMs < SOON_MS;
    this.#beginMs = isSoon ? Math.min(BEGIN_MS_MAX, this.#beginMs * 2) : BEGIN_MS;
    this.#ended.push(server);
    if (this.#ended.length > ENDED_MAX) this.#end(this.#ended.shift() ?? server); // L3
    this.#options.note?.(error);
    this.#begin();
  }

  #begin(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      try {
        this.#server = this.#listen(this.#server.addr);
      } catch (error) { // still no file to open, or another took the address meanwhile
        this.#beginMs = Math.min(BEGIN_MS_MAX, this.#beginMs * 2);
        this.#options.note?.(error);
        this.#begin();
      }
    }, this.#beginMs);
  }

  #end(server: Deno.HttpServer<Deno.NetAddr>): void {
    const ended = server.shutdown().catch(() => {}); // the server told of its error when it fell
    this.#ending.add(ended);
    ended.finally(() => this.#ending.delete(ended));
  }
}
