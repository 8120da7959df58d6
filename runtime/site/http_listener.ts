/**
 * Where a site takes HTTP requests, at one address for its life, over certificates that may be renewed.
 *
 * L1  While a certificate is renewed nobody listens for some milliseconds: who connects then is refused by the system and
 *     comes again. Requests that have begun are answered; WebSockets are closed with 1001 (Deno's server has no other
 *     way to stop listening), as when a site stops.
 */

/** What it shows to those who connect; nothing where it speaks plain HTTP. */
export type Shown = { readonly cert: string; readonly key: string } | Record<string, never>;

interface Options {
  readonly at: { readonly hostname: string; readonly port: number };
  readonly handle: Deno.ServeHandler<Deno.NetAddr>;
  /** Ends all at once. */
  readonly signal: AbortSignal;
}

/** The port is free again as soon as the system has seen that nobody listens there. */
const AGAIN_MS = 2, AGAIN_MS_MAX = 5_000;

/** See the file's header. */
export class HttpListener {
  readonly #options: Options;
  readonly #ending = new Set<Promise<void>>();
  #server: Deno.HttpServer<Deno.NetAddr>;

  /** @throws where nobody can listen there, or not with that certificate. */
  constructor(options: Options, shown: Shown) {
    this.#options = options;
    this.#server = listen(options, shown);
  }

  get addr(): Deno.NetAddr {
    return this.#server.addr;
  }

  /** Shows another certificate from now on. @throws where the address could not be listened at again. */
  async renew(shown: Shown): Promise<void> {
    const { hostname, port } = this.#server.addr;
    this.#end(this.#server);
    const untilMs = performance.now() + AGAIN_MS_MAX;
    for (;;) {
      try {
        this.#server = listen({ ...this.#options, at: { hostname, port } }, shown);
        return;
      } catch (error) {
        if (!(error instanceof Deno.errors.AddrInUse) || performance.now() >= untilMs) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** Takes no more; resolves when all that was taken has ended. */
  async shutdown(): Promise<void> {
    this.#end(this.#server);
    await Promise.all(this.#ending);
  }

  #end(server: Deno.HttpServer<Deno.NetAddr>): void {
    const ended = server.shutdown();
    this.#ending.add(ended);
    ended.finally(() => this.#ending.delete(ended));
  }
}

const listen = ({ at, handle, signal }: Options, shown: Shown): Deno.HttpServer<Deno.NetAddr> =>
  Deno.serve({ ...at, ...shown, signal, onListen: () => {} }, handle);
