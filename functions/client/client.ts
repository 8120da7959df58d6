/**
 * The client of an app, with its site, its session, and all that it has open.
 *
 * Life: `connectWith` (the storage is read, sites are listed) → fetches, sockets, moves → `close`.
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

/** Options of `connect`. */
export interface ConnectOptions {
  /**
   * Address of the app at one site, which is asked for the others: `https://edge-1.example/shop`, or relative to the
   * page. Or the addresses at all sites: then no list is asked for.
   */
  readonly sites: string | URL | readonly (string | URL)[];
  /** Storage of the session and of open sockets over a restart or reload; in memory if not given. */
  readonly storage?: ClientStorage;
  /**
   * True: requests that change something are sent again when their site dies; they carry an `Idempotency-Key`, which
   * makes calls to stateful sessions happen once only. True by default.
   */
  readonly repeat?: boolean;
  /** Time for which a request is sent again, in milliseconds; 30,000 by default. */
  readonly giveUpMs?: number;
  /** Time for which a WebSocket that was open looks for a site, in milliseconds; 300,000 by default. */
  readonly resumeMs?: number;
}

/** Status of a client: its site, and what it has open. */
export interface ClientStatus {
  /** Site for what is done next. */
  readonly site: KnownSite;
  /** Sites that the client knows, with its own among them. */
  readonly sites: readonly KnownSite[];
  /** Number of WebSockets to the app that are not closed. */
  readonly sockets: number;
}

/** Move of a client to another site, as the event `move` has it. */
export interface Move {
  /** Site that the client was at. */
  readonly from: KnownSite;
  /** Site that the client is at now. */
  readonly to: KnownSite;
  /** Reason of the move: what was wrong with the one site, or better at the other. */
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
  /** Asks a site for the list of sites; null where the program named all. */
  readonly list: ((from: string, signal: AbortSignal | null) => Promise<readonly ListedSite[]>) | null;
  /** Address that the program gave. */
  readonly own: string;
}

/**
 * Connected client. Events: `move` (a `CustomEvent` with a {@link Move}), `session` (a site did not take the client's
 * session any more, and another one is begun; `detail.code` says why).
 */
export class Client extends EventTarget {
  /**
   * Sends a request to the app, as `fetch` does: paths are the app's own, and requests to other addresses go there as
   * ever.
   *
   * @throws ClientError `closed` after `close`; else as `fetch` does, once a request was tried for `giveUpMs`.
   */
  readonly fetch: typeof fetch;
  /** WebSocket class for the app; addresses that are none of the app's get the platform's own WebSocket. */
  readonly WebSocket: typeof WebSocket;
  readonly #parts: ClientParts;
  readonly #choice: SiteChoice;
  readonly #watch: SiteWatch;
  readonly #tokens: TokenSet;
  readonly #requests: AppFetch;
  readonly #lines = new Set<Line>();
  readonly #over = new AbortController();
  #kept: Promise<unknown> = Promise.resolve();

  /** Makes a client; programs call `connect`. */
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

  /** Returns the client's site, and what it knows of the others. */
  status(): ClientStatus {
    const { current, sites } = this.#choice;
    const { size: sockets } = this.#lines;
    return { site: shown(current), sites: sites.map(shown), sockets };
  }

  /**
   * Begins another session, for another user: the next request has seen nothing, the WebSockets are closed, and what
   * the storage keeps of those of earlier pages is forgotten. What other pages have open stays. Resolves when all is
   * forgotten.
   */
  async reset(): Promise<void> {
    this.#tokens.clear();
    for (const line of [...this.#lines]) line.reset();
    const { storage } = this.#parts;
    if (storage !== null) await KeptPeer.forgetAll(storage);
  }

  /**
   * Ends all that is open. Sockets that are kept in a storage go on with the next client; the others are closed.
   * Resolves when all that was to be kept is in the storage.
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

  /** Keeps a text in the storage. One that can't be kept is in memory all the same. */
  #keep(name: string, text: string): void {
    const { storage } = this.#parts;
    if (storage === null) return;
    this.#kept = storage.commit([[name, utf8.encode(text)]]).catch(() => {});
  }
}

const NONE: ReadonlySet<string> = new Set();

const shown = ({ id, url, tier, rttMs, state }: KnownSite): KnownSite => ({ id, url, tier, rttMs, state });

/**
 * Connects to an app, from a given host.
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
      // A client that has been here before begins with the sites that were there then.
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
