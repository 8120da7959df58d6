/**
 * Search among other sites for the home of a stateful session: for a client that comes to a site which has never heard
 * of it, while the arbiter does not answer.
 *
 * WA1  A site answers for itself: that it is the home, or that it is not. It does not pass on what it has heard of
 *      others.
 * WA2  Others are asked when an opening has taken ASK_AFTER_MS; the opening goes on meanwhile. Being told wrongly costs
 *      a trip: a site that is not the home any more says so, and a call has one id wherever it goes (router.ts, T1).
 * WA3  SITES_MAX sites are asked for a name, those below the same parent first, and FINDS_MAX names are asked for at
 *      once: beyond those a call waits for the opening alone.
 */
import type { Homes, StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { LinkReply, LinkRequest, RequestLinks, SiteTree } from "../../vocabulary/site_links.ts";
import { mapKey } from "./session_name.ts";

/** Site, as asking needs it. */
export interface WhereaboutsServices {
  readonly site: string;
  readonly homes: Pick<Homes, "where" | "heard">;
  readonly links: RequestLinks;
  readonly sites: () => SiteTree;
  readonly clock: PeerClock;
}

/** Kind of these requests on the links. */
export const WHERE_KIND = "stateful-where";

/**
 * Milliseconds for an opening before others are asked: an arbiter that is there has answered by then, through the
 * slowest tree that people wait for.
 */
export const ASK_AFTER_MS = 300;
/** Milliseconds for answers: a site that is there answers in a round trip. */
const ANSWER_MS_MAX = 1_000;
/**
 * Sites that are asked for a name, with some 100 bytes each; of a larger tree those that are likely to be the home are
 * among them.
 */
const SITES_MAX = 32;
const FINDS_MAX = 64;

/** Search for homes (see the file's header). */
export class Whereabouts {
  readonly #services: WhereaboutsServices;
  readonly #clock: PeerClock;
  readonly #finding = new Map<string, Promise<string | null>>();

  constructor(services: WhereaboutsServices) {
    this.#services = services;
    this.#clock = services.clock;
  }

  /**
   * Returns the site that says it is the home, asked for when `opening`, here, has not settled in ASK_AFTER_MS (WA2);
   * null where it has, or no site says so.
   */
  async meanwhile(name: StatefulName, opening: Promise<unknown>): Promise<string | null> {
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const cancel = this.#clock.after(ASK_AFTER_MS, () => resolve("late"));
    const first = await Promise.race([opening.then(() => "open" as const, () => "open" as const), late]);
    cancel();
    return first === "late" ? await this.find(name) : null;
  }

  /** Returns the site that says it is the home; null: none does. Never rejects. */
  find(name: StatefulName): Promise<string | null> {
    const key = mapKey(name);
    const before = this.#finding.get(key);
    if (before !== undefined) return before;
    const asked = this.#asked();
    if (asked.length === 0 || this.#finding.size >= FINDS_MAX) return Promise.resolve(null);
    const finding = this.#find(name, asked).finally(() => this.#finding.delete(key));
    this.#finding.set(key, finding);
    return finding;
  }

  async #find(name: StatefulName, asked: readonly string[]): Promise<string | null> {
    const late = new AbortController();
    const found = Promise.withResolvers<string | null>();
    const cancel = this.#clock.after(ANSWER_MS_MAX, () => found.resolve(null));
    const answers = asked.map(async (site) => {
      if (await this.#isHome(site, name, late.signal)) found.resolve(site);
    });
    void Promise.all(answers).then(() => found.resolve(null));
    const at = await found.promise;
    cancel();
    late.abort(); // the others need not answer
    if (at !== null) this.#services.homes.heard(name, at);
    return at;
  }

  /**
   * Asks a site whether it is the home. A site of the version before does not know the question, and one that can't be
   * asked is none that serves.
   */
  async #isHome(site: string, name: StatefulName, signal: AbortSignal): Promise<boolean> {
    try {
      const { head } = await this.#services.links.request(site, WHERE_KIND, encodeName(name), { signal });
      return head.length === 1 && new Reader(head).flag();
    } catch {
      return false;
    }
  }

  /** Returns the sites to ask (WA3); none at the root, which is the arbiter's site, and knows. */
  #asked(): readonly string[] {
    const { site, sites } = this.#services;
    const all = sites(), own = all.get(site)?.parent ?? null;
    if (own === null) return [];
    const rank = (parent: string | null) => parent === own ? 0 : 1;
    return [...all].filter(([id, { parent }]) => id !== site && parent !== null)
      .sort(([a, one], [b, other]) => rank(one.parent) - rank(other.parent) || (a < b ? -1 : 1))
      .slice(0, SITES_MAX).map(([id]) => id);
  }

  /** Answers another site (WA1). @throws CodecError */
  serve({ head }: Pick<LinkRequest, "head">): LinkReply {
    const { homes, site } = this.#services;
    return { head: new Writer(1).flag(homes.where(decodeName(head)) === site).done() };
  }
}

function encodeName({ app, class: of, id }: StatefulName): Uint8Array {
  return new Writer().text(app).text(of).text(id).done();
}

/** Reads a name. @throws CodecError */
function decodeName(head: Uint8Array): StatefulName {
  const reader = new Reader(head);
  const name = { app: reader.text(), class: reader.text(), id: reader.text() };
  reader.end();
  return name;
}
