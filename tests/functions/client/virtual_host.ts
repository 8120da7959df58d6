/**
 * A program in virtual time, and a cluster that it talks to: sites that can be dead, frozen, draining or slow, and a
 * network in between. What the sites do is written down in the order in which they do it.
 */
import { strict as assert } from "node:assert";
import type { ClientHost, Socket, SocketListener, SocketOptions } from "../../../functions/client/ports.ts";

/** What an app answers at a site. */
export type AppHandler = (request: AppCall, site: FakeSite) => Response | Promise<Response>;

/** A request as a site gets it. */
export interface AppCall {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** One site. */
export class FakeSite {
  state: "up" | "dead" | "frozen" | "draining" = "up";
  /** It reaches no other site: calls that need one wait. */
  isCutOff = false;
  /** There and back. */
  rttMs = 10;
  /** Requests for the app that reached it. */
  readonly calls: AppCall[] = [];
  probes = 0;

  constructor(readonly id: string, readonly url: string, readonly tier: "edge" | "core" | "root") {}
}

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
  readonly isClients: boolean;
}

/** What a site does with a socket. */
export type SocketHandler = (
  site: FakeSite,
  opened: { readonly url: string; readonly options: SocketOptions },
  listener: SocketListener,
) => Socket;

/** See the file's header. */
export class VirtualHost implements ClientHost {
  readonly base = null;
  readonly sites: FakeSite[];
  app: AppHandler = () => new Response("hello");
  sockets: SocketHandler = () => assert.fail("no socket was expected");
  /** What is between client and sites breaks a request after it was handled. */
  losesAnswer: (call: AppCall, site: FakeSite) => boolean = () => false;
  /** A site that lives takes a request and never answers it. */
  losesCall: (call: AppCall, site: FakeSite) => boolean = () => false;
  /** Facts that tokens stand for: `of.N` names what one request did. */
  issued = 0;
  #nowMs = 1_000;
  #timers: Timer[] = [];
  #order = 0;
  #drawn = 0;

  constructor(ids: readonly string[] = ["edge-1", "edge-2", "cloud"]) {
    this.sites = ids.map((id) =>
      new FakeSite(id, `http://${id}.test`, id.startsWith("edge") ? "edge" : id === "cloud" ? "root" : "core")
    );
  }

  at(id: string): FakeSite {
    const site = this.sites.find((each) => each.id === id);
    assert(site !== undefined, id);
    return site;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    return this.#schedule(ms, run, true);
  }

  /** As {@link after}, for what is no part of a client. */
  later(ms: number, run: () => void): () => void {
    return this.#schedule(ms, run, false);
  }

  /** Of clients. */
  get timers(): number {
    return this.#timers.filter(({ isClients }) => isClients).length;
  }

  draw(): string {
    return `drawn-${this.#drawn++}`;
  }

  number(): number {
    return 1 + this.#drawn++;
  }

  openElsewhere(): WebSocket {
    return assert.fail("no other socket was expected");
  }

  /** Lets things happen until the promise has settled, or for so long. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let isOver = false;
    promise.then(() => isOver = true, () => isOver = true);
    for (let step = 0; !isOver; step++) {
      assert(step < 20_000, "nothing comes of it");
      await settled();
      if (!isOver) this.#next();
    }
    return await promise;
  }

  async pass(ms: number): Promise<void> {
    await this.run(new Promise<void>((resolve) => this.after(ms, resolve)));
    await settled();
  }

  #schedule(ms: number, run: () => void, isClients: boolean): () => void {
    const timer = { atMs: this.#nowMs + ms, order: this.#order++, run, isClients };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  #next(): void {
    const [next] = this.#timers.sort((a, b) => a.atMs - b.atMs || a.order - b.order);
    if (next === undefined) return;
    this.#timers.shift();
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.run();
  }

  /** As a request goes: half the way, the site, the way back. */
  fetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const url = new URL(String(input));
    const site = this.sites.find((each) => new URL(each.url).origin === url.origin);
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const { signal } = init;
    if (signal?.aborted) return Promise.reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    if (site === undefined || site.state === "dead") {
      this.after(1, () => reject(new TypeError(`no connection to ${url.origin}`)));
      return promise;
    }
    const { method = "GET", headers, body } = init;
    const call = {
      method,
      path: url.pathname + url.search,
      headers: new Headers(headers),
      body: String(body ?? ""),
    };
    this.after(site.rttMs / 2, () => {
      if (site.state === "frozen") return;
      if (site.state === "dead") return reject(new TypeError("reset"));
      if (this.losesCall(call, site)) return;
      Promise.resolve(this.#handle(site, call)).then((answer) => {
        const isLost = site.state === "dead" || this.losesAnswer(call, site);
        this.after(site.rttMs / 2, () => isLost ? reject(new TypeError("reset")) : resolve(answer));
      }, reject);
    });
    return promise;
  }

  open(url: string, options: SocketOptions, listener: SocketListener): Socket {
    const { origin } = new URL(url.replace(/^ws/, "http"));
    const site = this.sites.find((each) => new URL(each.url).origin === origin);
    assert(site !== undefined, url);
    return this.sockets(site, { url, options }, listener);
  }

  #handle(site: FakeSite, call: AppCall): Response | Promise<Response> {
    const isDraining = site.state === "draining";
    switch (call.path) {
      case "/_sojourn/readyz":
        site.probes++;
        return isDraining
          ? problem(503, "draining", "retry")
          : Response.json({ site: site.id, parent: site.isCutOff ? "unreachable" : "connected" });
      case "/_sojourn/sites":
        return Response.json(this.sites.map(({ id, url, tier }) => ({ id, url, tier })), {
          headers: { "sojourn-site": site.id },
        });
    }
    if (isDraining) return problem(503, "draining", "retry");
    if (call.path === "/_sojourn/session") {
      return new Response(null, { status: 204, headers: { "sojourn-session": this.token(call) } });
    }
    site.calls.push(call);
    return this.app(call, site);
  }

  /** A token of the session that a request presents, or of a new one, with one fact more. */
  token(call: AppCall): string {
    const presented = call.headers.get("sojourn-session")?.split(", ") ?? [];
    const [session = `s${this.issued}`] = (presented[0] ?? "").split(":").filter((part) => part !== "");
    return `${session}:${
      presented.flatMap((each) => each.split(":").slice(1)).concat(`${this.issued++}`).join(":")
    }`;
  }

  /** An answer of the app, as a site sends it. */
  answer(call: AppCall, site: FakeSite, body: string, appMs = 0): Response {
    const headers = {
      "sojourn-session": this.token(call),
      "sojourn-site": site.id,
      "server-timing": `handoff;desc=same;dur=0, store;dur=0, app;dur=${appMs}`,
    };
    return new Response(body, { headers });
  }
}

export const problem = (status: number, code: string, retry: string, seconds = 1): Response =>
  new Response(JSON.stringify({ code, retry, status }), {
    status,
    headers: { "content-type": "application/problem+json", "retry-after": `${seconds}` },
  });

/** Everything that can happen without time passing has happened. */
async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}
