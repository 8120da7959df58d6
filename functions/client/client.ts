/**
 * A client of an app: where it is, in which session, and what it has open.
 *
 * Life: `connectWith` (what is kept is read, sites are listed) → fetches, sockets, moves → `close`.
 */
import { appPath, appUrl, platformUrl } from "./address.ts";
import { AppFetch } from "./app_fetch.ts";
import { ClientError } from "./client_error.ts";
import { KeptPeer } from "./kept_peer.ts";
import { KeptSession } from "./kept_session.ts";
import * as limits from "./limits.ts";
import { Line, type LineListener } from "./line.ts";
import type { ClientHost, ClientStorage } from "./ports.ts";
import { type KnownSite, type ListedSite, type MoveReason, SiteChoice } from "./site_choice.ts";
import { listedSites } from "./site_list.ts";
import { SiteWatch } from "./site_watch.ts";
import { storageOf } from "./storage.ts";
import { TokenSet } from "./token_set.ts";
import { webSocketClass } from "./web_socket.ts";
import { within } from "./within.ts";

/** How to reach an app. */
export interface ConnectOptions {
  /**
   * One address of the app, of which the other sites are asked for: `https://edge-1.example/shop`, or relative to the
   * page. Or all of them: then nobody is asked.
   */
  readonly sites: string | URL | readonly (string | URL)[];
  /** Where the session and open sockets are kept over a restart or reload; in memory if not given. */
  readonly storage?: ClientStorage;
  /**
   * Whether requests that change something are sent again when their site dies: then they carry an `Idempotency-Key`,
   * which makes calls to stateful sessions once only. Default: true.
   */
  readonly repeat?: boolean;
  /** For how long a request is sent again, in milliseconds; 30,000 by default. */
  readonly giveUpMs?: number;
  /** For how long a WebSocket that was open looks for a site, in milliseconds; 300,000 by default. */
  readonly resumeMs?: number;
}

/** Where a client is. */
export interface ClientStatus {
  /** The site for what is done next. */
  readonly site: KnownSite;
  /** All that it knows. */
  readonly sites: readonly KnownSite[];
  /** WebSockets to the app that are not closed. */
  readonly sockets: number;
}

/** A move, as the event `move` tells it. */
export interface Move {
  /** Where it was. */
  readonly from: KnownSite;
  /** Where it is. */
  readonly to: KnownSite;
  /** What was wrong with the one, or better at the other. */
  readonly why: MoveReason;
}

const SITES = "sites";
const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder();

interface ClientParts {
  readonly host: ClientHost;
  readonly storage: ClientStorage | null;
  readonly options: ConnectOptions;
  readonly sites: readonly ListedSite[];
  readonly session: KeptSession | null;
  /** Asks a site for the list; null where the program named all. */
  readonly list: ((from: string, signal: AbortSignal | null) => Promise<readonly ListedSite[]>) | null;
  /** The address that the program gave. */
  readonly own: string;
}

/**
 * A connected client. Events: `move` (a `CustomEvent` with a {@link Move}), `session` (its session was not taken any
 * more, and another one is begun; `detail.code` says why).
 */
export class Client extends EventTarget {
  /** `fetch` for the app: paths are the app's own, and other addresses go where they always went. */
  readonly fetch: typeof fetch;
  /** `WebSocket` for the app. */
  readonly WebSocket: typeof WebSocket;
  readonly #parts: ClientParts;
  readonly #choice: SiteChoice;
  readonly #watch: SiteWatch;
  readonly #tokens: TokenSet;
  readonly #requests: AppFetch;
  readonly #lines = new Set<Line>();
  readonly #over = new AbortController();
  #kept: Promise<unknown> = Promise.resolve();

  /** Use `connect`. */
  constructor(parts: ClientParts) {
    super();
    const { host, sites, session, list, options } = this.#parts = parts;
    const choice = this.#choice = new SiteChoice(sites, host.nowMs());
    const watch = this.#watch = new SiteWatch({
      ...{ host, choice, list },
      listed: (found) => this.#keep(SITES, JSON.stringify(found)),
      looked: () => void this.#site(),
    });
    this.#tokens = new TokenSet(session?.tokens ?? [], (now) => session?.keep(now));
    this.#requests = new AppFetch({
      ...{ host, choice, watch, tokens: this.#tokens, closed: this.#over.signal },
      site: (without) => this.#site(without),
      isRepeated: options.repeat ?? true,
      kept: () => session?.kept ?? Promise.resolve(),
      giveUpMs: options.giveUpMs ?? limits.GIVE_UP_MS,
      begunAnew: (code) => void this.dispatchEvent(new CustomEvent("session", { detail: { code } })),
    });
    this.fetch = (input, init) => {
      const path = appPath(input instanceof Request ? input.url : input, this.#apps());
      return path === null ? host.fetch(input, init) : this.#requests.fetch(path, input, init);
    };
    this.WebSocket = webSocketClass({
      line: (url, protocols, listener) => this.#open(url, protocols, listener),
      openElsewhere: (url, protocols) => host.openElsewhere(url, protocols),
    });
    if (list !== null) this.#keep(SITES, JSON.stringify(sites));
  }

  /** Where it is, and what it knows of the sites. */
  status(): ClientStatus {
    const { current, sites } = this.#choice;
    const { size: sockets } = this.#lines;
    return { site: shown(current), sites: sites.map(shown), sockets };
  }

  /**
   * Begins another session, for somebody else: the next request has seen nothing, the WebSockets are closed, and what is
   * kept of those of earlier pages is forgotten. What other pages have open is theirs. Resolves when it is forgotten.
   */
  async reset(): Promise<void> {
    this.#tokens.clear();
    for (const line of [...this.#lines]) line.reset();
    const { storage } = this.#parts;
    if (storage !== null) await KeptPeer.forgetAll(storage);
  }

  /**
   * Ends all that is open. Sockets that are kept in a storage go on with the next client; the others are closed. What
   * was to be kept is kept when it resolves.
   */
  async close(): Promise<void> {
    this.#over.abort(new ClientError("closed", "the client is closed"));
    this.#watch.close();
    await Promise.all([...this.#lines].map((line) => line.leave()));
    this.#lines.clear();
    await Promise.all([this.#kept, this.#parts.session?.leave()]);
  }

  #apps(): readonly string[] {
    return [this.#parts.own, ...this.#choice.sites.map(({ url }) => url)];
  }

  #site(without: ReadonlySet<string> = NONE): KnownSite {
    const from = shown(this.#choice.current);
    const { site, moved } = this.#choice.choose(this.#parts.host.nowMs(), without);
    if (moved !== null) {
      const detail: Move = { from, to: shown(site), why: moved };
      for (const line of [...this.#lines]) line.moved(site);
      this.dispatchEvent(new CustomEvent("move", { detail }));
    }
    return site;
  }

  #open(url: string | URL, protocols: readonly string[], listener: LineListener) {
    const path = appPath(url, this.#apps());
    if (path === null) return null;
    const target = path.split("#", 1)[0] ?? "";
    const shownUrl = this.#choice.current.url.replace(/^http/, "ws") + target;
    return { url: shownUrl, line: this.#line(target, protocols, listener) };
  }

  async #line(path: string, protocols: readonly string[], listener: LineListener): Promise<Line> {
    if (this.#over.signal.aborted) {
      throw new ClientError("closed", "can't open a WebSocket: the client is closed");
    }
    const { host, storage, options } = this.#parts;
    const kept = storage === null ? null : await KeptPeer.open(storage, path);
    const line: Line = new Line({
      ...{ host, path, protocols, kept, resumeMs: options.resumeMs ?? limits.RESUME_MS },
      listener: {
        ...listener,
        message: (data) => {
          this.#watch.tick();
          listener.message(data);
        },
        closed: (code, reason, isClean) => {
          this.#lines.delete(line);
          listener.closed(code, reason, isClean);
        },
      },
      site: (without) => this.#site(without),
      tokens: (site) => this.#requests.tokensAt(site),
      renew: (site) => this.#requests.checkTokens(site),
      isAlive: async (site) => {
        const isAlive = await this.#watch.isAlive(site.url);
        if (!isAlive) this.#watch.lost();
        return isAlive;
      },
    });
    this.#lines.add(line);
    return line;
  }

  /** What can't be kept is in memory all the same. */
  #keep(name: string, text: string): void {
    const { storage } = this.#parts;
    if (storage === null) return;
    this.#kept = storage.commit([[name, utf8.encode(text)]]).catch(() => {});
  }
}

const NONE: ReadonlySet<string> = new Set();

const shown = ({ id, url, tier, rttMs, state }: KnownSite): KnownSite => ({ id, url, tier, rttMs, state });

/**
 * Connects to an app.
 *
 * @throws ClientError `site_invalid` for what is no address; `sites_unreachable` where no site gives the list, and none
 *   is kept.
 */
export async function connectWith(host: ClientHost, options: ConnectOptions): Promise<Client> {
  const { sites } = options;
  const named = (Array.isArray(sites) ? sites : [sites]).map((site) => appUrl(site, host.base));
  const [own] = named;
  if (own === undefined) throw new ClientError("site_invalid", "can't connect to no site: name one at least");
  const storage = options.storage == null ? null : storageOf(own, options.storage);
  const session = storage === null ? null : await KeptSession.open(storage);
  const listed = (await storage?.list(SITES) ?? []).find(([name]) => name === SITES)?.[1];
  const kept = listed === undefined ? "" : utf8Decoder.decode(listed);
  const parts = { host, storage, options, own, session };
  if (Array.isArray(sites)) {
    return new Client({ ...parts, list: null, sites: named.map((url) => ({ id: null, url, tier: null })) });
  }
  const list = (from: string, signal: AbortSignal | null) => askList(host, { from, own, signal });
  return new Client({
    ...parts,
    list,
    sites: await firstList(host, { own, kept, list, options }),
  });
}

async function firstList(host: ClientHost, { own, kept, list, options }: {
  readonly own: string;
  readonly kept: string;
  readonly list: NonNullable<ClientParts["list"]>;
  readonly options: ConnectOptions;
}): Promise<readonly ListedSite[]> {
  const known = listedSites(kept, { own, app: null, from: null });
  const untilMs = host.nowMs() + (options.giveUpMs ?? limits.GIVE_UP_MS);
  for (;;) {
    try {
      return await within(host, { ms: limits.PROBE_ANSWER_MS }, (signal) => list(own, signal));
    } catch (cause) {
      // Who has been here before begins with what was there then.
      if (known.length > 0) return known;
      if (host.nowMs() + limits.PAUSE_MS_MAX >= untilMs) {
        throw new ClientError("sites_unreachable", `can't find the sites of ${own}: nobody answers there`, {
          cause,
        });
      }
    }
    await new Promise<void>((resolve) => host.after(limits.PAUSE_MS_MAX, resolve));
  }
}

async function askList(
  host: ClientHost,
  { from, own, signal }: { from: string; own: string; signal: AbortSignal | null },
): Promise<readonly ListedSite[]> {
  const answer = await host.fetch(platformUrl(from, "sites"), {
    ...{ signal, cache: "no-store", credentials: "omit" } as const,
  });
  const text = await answer.text();
  const { headers, status } = answer;
  const found = status === 200
    ? listedSites(text, {
      own,
      app: headers.get("sojourn-app"),
      from: from === own ? headers.get("sojourn-site") : null,
    })
    : [];
  if (found.length === 0) {
    throw new ClientError("sites_unreachable", `${from} answered ${status} and no list of sites`);
  }
  return found;
}
