/**
 * Where a site takes HTTP requests, at one address for its life, over certificates that may be renewed.
 *
 * L1  While a certificate is renewed nobody listens for some milliseconds: who connects then is refused by the system and
 *     comes again. Requests that have begun are answered; WebSockets are closed with 1001 (Deno's server has no other
 *     way to stop listening), as when a site stops.
 * L2  Where a connection can't be taken (no file can be opened any more) Deno's server listens no more, and goes on with those
 *     that it has. Another begins at the same address a little later, and again, until it can: later each time, where it ends
 *     soon. Who connects meanwhile is refused by the system.
 * L3  ENDED_MAX such servers are kept for what they have taken; of one more the first is ended, as for L1.
 */

/** What it shows to those who connect; nothing where it speaks plain HTTP. */
export type Shown = { readonly cert: string; readonly key: string } | Record<string, never>;

interface Options {
  readonly at: { readonly hostname: string; readonly port: number };
  readonly handle: Deno.ServeHandler<Deno.NetAddr>;
  /** Ends all at once. */
  readonly signal: AbortSignal;
  /** Hears why nobody listens for a while (L2). */
  readonly note?: (error: unknown) => void;
}

/** The port is free again as soon as the system has seen that nobody listens there. */
const AGAIN_MS = 2, AGAIN_MS_MAX = 5_000;
/** L2: from the first to the most. */
const BEGIN_MS = 100, BEGIN_MS_MAX = 5_000;
/** One that listened for so long did not end soon. */
const SOON_MS = 20_000;
const ENDED_MAX = 256;

/** See the file's header. */
export class HttpListener {
  readonly #options: Options;
  readonly #ending = new Set<Promise<void>>();
  /** Those that listen no more, and still have connections (L2). */
  readonly #ended: Deno.HttpServer<Deno.NetAddr>[] = [];
  #server: Deno.HttpServer<Deno.NetAddr>;
  #shown: Shown;
  #beganMs = 0;
  #beginMs = BEGIN_MS;
  /** Runs while nobody listens. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isStopped = false;

  /** @throws where nobody can listen there, or not with that certificate. */
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
    if (this.#timer !== undefined) return; // the next one shows it
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

  /** Takes no more; resolves when all that was taken has ended. */
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

  /** L2 */
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
      } catch (error) { // still so, or another took the address meanwhile
        this.#beginMs = Math.min(BEGIN_MS_MAX, this.#beginMs * 2);
        this.#options.note?.(error);
        this.#begin();
      }
    }, this.#beginMs);
  }

  #end(server: Deno.HttpServer<Deno.NetAddr>): void {
    const ended = server.shutdown().catch(() => {}); // it told of it when it fell
    this.#ending.add(ended);
    ended.finally(() => this.#ending.delete(ended));
  }
}
