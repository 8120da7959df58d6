/**
 * Ways of attached peers (frame_way.ts) to the homes of stateful sessions, from wherever the peers are, and those that
 * other sites bring. Homes are looked for as for calls (router.ts), once: a peer that wants a channel asks again.
 *
 * A way that was opened is broken by whatever breaks on it; nothing is sent again here.
 *
 * PW1  A site that is asked over a link serves what is at home there, and passes nothing on but ways for other sites,
 *      along the tree.
 * PW3  Ways to a site that is suspected are broken, and none is looked for there but along the tree: sooner than a link
 *      that is silent ends. A mistake costs a hello.
 */
import type { Homes, StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { Standing } from "../../../store/presence/detector.ts";
import {
  hopTowards,
  type LinkReply,
  type LinkRequest,
  type RequestLinks,
  type SiteTree,
} from "../../vocabulary/site_links.ts";
import {
  decodeForwarded,
  decodeReply,
  encodeForwarded,
  encodeForwardedReply,
  type ForwardedReply,
} from "./forwarded.ts";
import { HOPS_MAX } from "./limits.ts";
import { channelOf, feed, type FrameWay, localWay, StreamWay } from "../attach/frame_way.ts";
import { replyOf } from "./router.ts";
import type { SessionHost } from "./session_host.ts";
import { shownSession } from "./session_name.ts";
import type { Whereabouts } from "./whereabouts.ts";

/** Site, as bringing ways needs it. */
export interface PeerWaysServices {
  readonly site: string;
  readonly homes: Pick<Homes, "where" | "misled">;
  readonly host: Pick<SessionHost, "connect">;
  readonly links: RequestLinks;
  /** Way to ask other sites where the arbiter does not answer; left out: none are asked. */
  readonly whereabouts?: Pick<Whereabouts, "meanwhile">;
  readonly sites: () => SiteTree;
  /** Other sites, and which of them live (store/owners). */
  readonly fellows: {
    standing(site: string): Standing;
    watch(site: string): () => void;
    onChange(changed: (site: string, standing: Standing) => void): () => void;
  };
  readonly clock: PeerClock;
  /** Reports a fault of a session's side of one way, which has ended by it. */
  readonly failed: (name: StatefulName, error: unknown) => void;
}

/** Kind of these requests on the links. */
export const PEER_KIND = "stateful-peer";

/** Times that a way is sent on to where its stateful session is said to be. */
const TURNS_MAX = 4;
/** Milliseconds after which a site that does not answer is as one that can't be reached. */
const OPEN_MS_MAX = 5_000;

/** Error of a way that can't be had now. `superseded_home`: as long as no site is the home. */
export class WayRefused extends Error {
  override readonly name = "WayRefused";
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

const ARRIVED: ForwardedReply = { kind: "answer", answer: new Uint8Array(0), token: null };

/** Ways of peers (see the file's header). */
export class PeerWays {
  readonly #services: PeerWaysServices;
  /** Ways to each site, and openings of ways there: they end when the site is suspected (PW3). */
  readonly #open = new Map<string, { readonly breaks: Set<() => void>; readonly unwatch: () => void }>();
  readonly #unlisten: () => void;
  readonly #clock: PeerClock;

  constructor(services: PeerWaysServices) {
    this.#services = services;
    this.#clock = services.clock;
    this.#unlisten = services.fellows.onChange((site, standing) => {
      if (!isLost(standing)) return;
      for (const end of this.#open.get(site)?.breaks ?? []) end();
    });
  }

  close(): void {
    this.#unlisten();
    for (const { unwatch } of this.#open.values()) unwatch();
    this.#open.clear();
  }

  /** Opens a way to the home. @param token of what the attaching client has seen. @throws WayRefused */
  async open(name: StatefulName, token: TokenState | null): Promise<FrameWay> {
    const { site, homes } = this.#services;
    let at = homes.where(name) ?? site;
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const way = at === site ? await this.#hereOrElsewhere(name, token) : await this.#there(at, name, token);
      if (!("kind" in way)) return way;
      if (way.kind === "problem") throw new WayRefused(way.code, way.message);
      if (at !== site) homes.misled(name);
      const next = way.kind === "elsewhere" ? way.site : "";
      at = next === "" || next === at ? site : next;
    }
    throw new WayRefused("superseded_home", `${shownSession(name)} has no home that is reached from ${site}`);
  }

  /** Takes a way that another site brings. */
  async serve(request: LinkRequest): Promise<LinkReply> {
    try {
      const asked = decodeForwarded(request.head, null);
      const { site, homes, host } = this.#services;
      if (asked.to !== site) return await this.#pass(request, asked); // PW1
      const at = homes.where(asked.name);
      if (at !== site) return replied({ kind: "elsewhere", site: at ?? "" }); // PW1
      if (request.body === null) throw new WayRefused("internal", "a way came without its incoming half");
      const way = new StreamWay(this.#clock).read(request.body);
      const reader = await host.connect(asked.name, channelOf(way), asked.token);
      void feed(way, reader, (error) => this.#services.failed(asked.name, error));
      return { ...replied(ARRIVED), body: way.outgoing };
    } catch (error) {
      request.body?.cancel().catch(() => {});
      return replied(replyOf(error));
    }
  }

  /** Passes a way on for another site (PW1). */
  async #pass(request: LinkRequest, asked: ReturnType<typeof decodeForwarded>): Promise<LinkReply> {
    const { site, sites, links, fellows } = this.#services;
    const next = hopTowards(sites(), site, asked.to);
    const isSilent = next === asked.to && isLost(fellows.standing(next));
    if (asked.hops <= 0 || next === null || isSilent) {
      request.body?.cancel().catch(() => {});
      return replied({ kind: "elsewhere", site: "" });
    }
    const { head } = encodeForwarded({ ...asked, hops: asked.hops - 1 });
    try {
      return await links.request(next, PEER_KIND, head, { body: request.body, signal: request.signal });
    } catch {
      // A way that can't be passed on is as one that its sender could not send.
      return replied({ kind: "elsewhere", site: "" });
    }
  }

  /**
   * Opens a way here; or returns where the home is, where others know that before the arbiter does (whereabouts.ts).
   */
  async #hereOrElsewhere(name: StatefulName, token: TokenState | null): Promise<FrameWay | ForwardedReply> {
    const { whereabouts, homes, site } = this.#services;
    const isHome = homes.where(name) === site;
    const here = this.#here(name, token);
    if (isHome || whereabouts === undefined) return await here;
    const elsewhere = whereabouts.meanwhile(name, here).then((at): Promise<FrameWay | ForwardedReply> =>
      at === null ? here : Promise.resolve({ kind: "elsewhere", site: at })
    );
    const first = await Promise.race([here, elsewhere]);
    // A way that comes late is used by nobody.
    void here.then((way) => way !== first && !("kind" in way) && way.close());
    return first;
  }

  async #here(name: StatefulName, token: TokenState | null): Promise<FrameWay | ForwardedReply> {
    const [mine, its] = localWay();
    try {
      const reader = await this.#services.host.connect(name, channelOf(its), token);
      void feed(its, reader, (error) => this.#services.failed(name, error));
      return mine;
    } catch (error) {
      return replyOf(error);
    }
  }

  /** Opens a way straight to the site, or along the tree where it can't be reached so. */
  async #there(to: string, name: StatefulName, token: TokenState | null): Promise<FrameWay | ForwardedReply> {
    const { sites, site, fellows } = this.#services;
    const none = { request: "", chain: [], call: new Uint8Array(0) };
    const { head } = encodeForwarded({ ...none, name, token, to, hops: HOPS_MAX });
    const next = hopTowards(sites(), site, to);
    const hasOther = next !== null && next !== to;
    // A site that is not heard of here may be reached along the tree (PW3).
    const isSilent = isLost(fellows.standing(to));
    if (isSilent && !hasOther) return { kind: "elsewhere", site: "" };
    const late = new AbortController();
    const cancel = this.#clock.after(OPEN_MS_MAX, () => late.abort());
    const leave = this.#endsWith(to, () => late.abort());
    try {
      const along = () => this.#sent(next ?? to, head, late.signal);
      const way = await (isSilent ? along() : this.#sent(to, head, late.signal).catch((error) => {
        if (!hasOther || (error as { code?: unknown }).code !== "unreachable") throw error;
        return along();
      }));
      if (way instanceof StreamWay) way.ended.then(this.#endsWith(to, () => way.break()));
      return way;
    } catch {
      // Only the arbiter can say whether it lives: this site asks to become the home in its place.
      return { kind: "elsewhere", site: "" };
    } finally {
      cancel();
      leave();
    }
  }

  /** Calls back when the site is suspected (PW3), until the returned function was called. */
  #endsWith(site: string, end: () => void): () => void {
    const known = this.#open.get(site);
    const open = known ?? { breaks: new Set<() => void>(), unwatch: this.#services.fellows.watch(site) };
    if (known === undefined) this.#open.set(site, open);
    open.breaks.add(end);
    return () => {
      open.breaks.delete(end);
      if (open.breaks.size > 0 || this.#open.get(site) !== open) return;
      this.#open.delete(site);
      open.unwatch();
    };
  }

  async #sent(hop: string, head: Uint8Array, signal: AbortSignal): Promise<StreamWay | ForwardedReply> {
    const way = new StreamWay(this.#clock);
    try {
      const answer = await this.#services.links.request(hop, PEER_KIND, head, { body: way.outgoing, signal });
      const reply = decodeReply(answer.head, null);
      if (reply.kind === "answer" && answer.body !== null) return way.read(answer.body);
      answer.body?.cancel().catch(() => {});
      way.close();
      return reply;
    } catch (error) {
      way.close();
      throw error;
    }
  }
}

const isLost = (standing: Standing): boolean => standing === "suspected" || standing === "dead";

function replied(reply: ForwardedReply): { readonly head: Uint8Array } {
  return { head: encodeForwardedReply(reply).head };
}
