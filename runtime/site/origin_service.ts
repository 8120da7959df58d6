/**
 * Service for the origins of a site's stateful sessions (runtime/origins): its homes reach them by way of the root; at
 * the root, it has the ends themselves, and the door for agents.
 */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import { type OriginAddress, originAddress } from "../../functions/origin_address.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { EgressRules } from "../isolate/egress_rules.ts";
import { AgentDoor, type AgentDoorServices } from "../origins/agent_door.ts";
import { AgentHub } from "../origins/agent_hub.ts";
import { type AlongTreeServices, sendAlong, serveAlong } from "../origins/along_tree.ts";
import { HttpOrigins, ORIGIN_KIND } from "../origins/http_origins.ts";
import type { KeptOutcomes } from "../origins/kept_outcomes.ts";
import { encodeWanted, ORIGIN_WAY_KIND, OriginEnds } from "../origins/origin_ends.ts";
import { SYSTEM_CLOCK } from "../stateful/clock.ts";
import { currentVersion } from "../../functions/sessions/serve/versions.ts";
import { type FrameWay, StreamWay } from "../../functions/sessions/attach/frame_way.ts";
import { fetchFor, type HttpOrigin } from "../stateful/outside_requests.ts";
import type { SiteConfig } from "./config.ts";

/** Services of the site that origins use. */
export interface OriginParts extends AlongTreeServices {
  readonly config: Pick<SiteConfig, "egress" | "limits" | "parent">;
  readonly root: () => string | undefined;
  readonly apps: Pick<AppTable, "version" | "get">;
  /** Draws a ticket that cannot be guessed; {@link instance} draws a number from 1 to 2^53 − 1. */
  readonly ticket: () => string;
  readonly instance: () => number;
  /** Opens a way to a session's home, for agents of clients. */
  readonly open: (name: StatefulName) => Promise<FrameWay>;
  /** Outcomes of requests to HTTP origins; used at the root. */
  readonly kept: KeptOutcomes;
  readonly log: (line: { app: string; version: string; level: string; text: string }) => void;
}

/** The origins of a site, served. */
export interface OriginService {
  rulesOf(fetchHosts: readonly string[]): EgressRules;
  http(name: StatefulName, version: LiveVersion): HttpOrigin | null;
  /** Opens a way to the end of a session's origin; null: its class names none. */
  way(name: StatefulName, version: LiveVersion): (() => Promise<FrameWay>) | null;
  serves(kind: string): boolean;
  serve(request: LinkRequest): Promise<LinkReply>;
  readonly door: AgentDoor;
  close(): void;
}

/** Milliseconds in which the root opens a way: it answers before the session would be told that its time is up. */
const OPEN_MS_MAX = 10_000;

/** Opens the service; see the file's header. */
export function openOrigins(parts: OriginParts): OriginService {
  const { config, site, root, apps } = parts;
  const rulesOf = (fetchHosts: readonly string[]) =>
    new EgressRules({ allow: config.egress.allow, privateHosts: config.egress.private, fetchHosts });
  const hub = config.parent === null ? new AgentHub(parts.ticket) : null;
  const originOf = async ({ app, class: className, version }: StatefulClass) =>
    namedOrigin(await apps.version(app, version), className);
  const http = new HttpOrigins({
    ...{ site, root, kept: parts.kept },
    send: (at, head, body, signal) => sendAlong(parts, { to: at, kind: ORIGIN_KIND, head, body, signal }),
    originOf: async (asker) => ofKind(await originOf(asker), true),
    byAgent: (request) => hub?.fetch(request) ?? null,
    make: async ({ host, port }, call, key) => {
      const signal = AbortSignal.timeout(config.limits.wallMs);
      const maker = { egress: rulesOf([`${host}:${port}`]), key: call.effect === null ? null : key, signal };
      return { ok: true, bytes: await fetchFor(maker, call) };
    },
  });
  const ends = new OriginEnds({
    originOf: async (asker) => ofKind(await originOf(asker), false),
    connect: async (origin, listener) => {
      const { connectOrigin } = await import("../origins/plain_origin.ts"); // few apps have an origin
      return await connectOrigin(origin, rulesOf([`${origin.host}:${origin.port}`]), listener);
    },
    holdsLogs: false,
    toAgent: (wanted, way) => hub?.offer(wanted, way) ?? false,
    clock: SYSTEM_CLOCK,
    draw: parts.instance,
    log: ({ app, version }, text) => parts.log({ app, version, level: "warn", text }),
  });
  const door = new AgentDoor({ hub, root, open: parts.open, lacking: lackingIn(apps) });
  const dial = async (name: StatefulName, version: string): Promise<FrameWay> => {
    const wanted = { ...name, version }, at = root();
    if (at === undefined || at === site) return ends.open(wanted);
    let way = new StreamWay(SYSTEM_CLOCK);
    const { body } = await sendAlong(parts, {
      ...{
        to: at,
        kind: ORIGIN_WAY_KIND,
        head: encodeWanted(wanted),
        signal: AbortSignal.timeout(OPEN_MS_MAX),
      },
      body: () => (way = new StreamWay(SYSTEM_CLOCK)).outgoing,
    });
    if (body === null) throw new Error(`${at} gave no way to the origin`);
    return way.read(body);
  };
  return {
    ...{ rulesOf, door },
    http: (name, { version, manifest }) => {
      const address = ofKind(namedOrigin({ manifest }, name.class), true);
      if (address === null) return null;
      const asker = { app: name.app, class: name.class, version };
      return {
        origin: new URL(address.url).origin,
        fetch: ({ bytes }, key, signal) => http.fetch({ ...asker, key, bytes }, signal),
      };
    },
    way: (name, { version, manifest }) =>
      ofKind(namedOrigin({ manifest }, name.class), false) === null ? null : () => dial(name, version),
    serves: (kind) => kind === ORIGIN_KIND || kind === ORIGIN_WAY_KIND,
    serve: (request) =>
      serveAlong(
        parts,
        request,
        async (own) => own.kind === ORIGIN_KIND ? await http.serve(own) : ends.serve(own),
      ),
    close: () => {
      door.close();
      ends.close();
    },
  };
}

interface StatefulClass {
  readonly app: string;
  readonly class: string;
  readonly version: string;
}

/**
 * Returns the reason why an agent cannot stand for a class: there is no such class, or it names no origin where the
 * agent is to be one. Null where it can.
 */
const lackingIn = (apps: Pick<AppTable, "get">): AgentDoorServices["lacking"] => (of, isOrigin) => {
  try {
    const hasOrigin = namedOrigin(currentVersion(apps, of), of.class) !== null;
    return isOrigin && !hasOrigin ? `${of.class} of ${of.app} names no origin (static origin)` : null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error.message;
  }
};

/** Returns the origin that a class of a version names; null where it names none. */
function namedOrigin(
  version: Pick<LiveVersion, "manifest"> | undefined,
  className: string,
): OriginAddress | null {
  const sessions: LiveVersion["manifest"]["sessions"] = version?.manifest.sessions ?? {};
  const named = Object.hasOwn(sessions, className) ? sessions[className]?.origin : undefined;
  return named === undefined ? null : originAddress(named);
}

const ofKind = (address: OriginAddress | null, isHttp: boolean): OriginAddress | null =>
  address !== null && (address.kind === "http") === isHttp ? address : null;
