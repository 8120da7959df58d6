/**
 * A run of `sojourn agent`: the host side for programs that know nothing of Sojourn. With `--origin` it stands for the
 * server behind a class of stateful sessions (origin_agent.ts), with `--listen` it takes the TCP connections of client
 * programs (client_agent.ts). It ends with Ctrl-C.
 */
import { z } from "zod";
import { ORIGIN_EXPECTED, type OriginAddress, originAddress } from "../../functions/origin_address.ts";
import { SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import { HostLog } from "../../functions/sessions/sealed/mod.ts";
import { findSite } from "../cli/cluster.ts";
import { EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "../cli/command.ts";
import { AdminError } from "../deploy/admin_api.ts";
import { FORWARDED_FRAME_BYTES_MAX } from "../../functions/sessions/attach/frame_way.ts";
import { ClientSocket, type MessageSocket } from "../gateway/message_socket.ts";
import { messageOf } from "../isolate/bodies.ts";
import { EgressRules } from "../isolate/egress_rules.ts";
import { SYSTEM_CLOCK } from "../stateful/clock.ts";
import { fetchFor } from "../stateful/outside_requests.ts";
import { WayRefused } from "../../functions/sessions/serve/peer_ways.ts";
import { PlainPeer } from "../stateful/plain_peer.ts";
import { ClientAgent } from "./client_agent.ts";
import { SocketWay } from "./message_ways.ts";
import type { AgentOf } from "./agent_hub.ts";
import { OriginAgent } from "./origin_agent.ts";
import { sitesByRoundTrip } from "./nearest.ts";
import { connectOrigin } from "./plain_origin.ts";

/** Runs an agent until it is told to stop. @throws UsageError, AdminError */
export async function runAgent(of: AgentOf, args: Parsed, shell: Shell): Promise<ExitCode> {
  const origin = args.text("origin");
  const run = { of, sites: await sitesOf(of, args, shell), args, shell };
  return await (origin === undefined ? runClients(run, args.text("listen") ?? "") : runOrigin(run, origin));
}

/** Addresses of the sites, and the token for them. */
interface Sites {
  readonly root: string;
  /** Returns the sites for an agent of clients: it goes to the first, and in this order to the others. */
  readonly urls: () => Promise<readonly string[]>;
  readonly token: string | undefined;
}

const sitesSchema = z.array(z.object({ url: z.url(), tier: z.string() }));
const ANSWER_MS_MAX = 10_000;

async function sitesOf(of: AgentOf, args: Parsed, shell: Shell): Promise<Sites> {
  const { url, token } = await findSite(args, shell);
  const lacks = await check(url, token, {
    ...of,
    as: args.text("origin") === undefined ? "client" : "origin",
  });
  if (lacks !== null) noteTo(args, shell)(`${lacks}: until that is deployed, there is nothing to do`);
  const answer = await fetch(new URL("/_sojourn/sites", url), { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  const sites = sitesSchema.parse(await answer.json());
  const isNamed = (args.text("to") ?? shell.env("SOJOURN_URL")) !== undefined;
  const isThat = (site: { readonly url: string }) => site.url === url || site.url === `${url}/`;
  return {
    root: sites.find(({ tier }) => tier === "root")?.url ?? url,
    urls: async () => {
      if (isNamed) return [url, ...await sitesByRoundTrip(sites.filter((site) => !isThat(site)))];
      return await sitesByRoundTrip(sites.some(isThat) ? sites : [...sites, { url, tier: "root" }]);
    },
    token,
  };
}

const agentSchema = z.object({
  app: z.string(),
  class: z.string(),
  lacks: z.string().nullable().default(null),
});
const problemSchema = z.object({ code: z.string(), detail: z.string() });

/**
 * Returns the reason why such an agent would be of no use; null: there is none. @throws AdminError where no site takes
 * it with this token
 */
async function check(
  url: string,
  token: string | undefined,
  of: AgentOf & { readonly as: string },
): Promise<string | null> {
  let answer: Response;
  try {
    answer = await fetch(new URL(`/_sojourn/agent/check?${new URLSearchParams({ ...of })}`, url), {
      headers: bearer(token),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch (error) {
    throw new AdminError("site_unreachable", `no site answers at ${url}: ${messageOf(error)}`);
  }
  const said = await answer.json().catch(() => null);
  if (answer.ok) {
    const read = agentSchema.safeParse(said);
    if (read.success) return read.data.lacks;
    throw new AdminError("answer_invalid", `what answers at ${url} is no site that takes agents`);
  }
  const { code, detail } = problemSchema.catch({
    code: `http_${answer.status}`,
    detail: "what answers is no site that takes agents",
  }).parse(said);
  throw new AdminError(code, detail);
}

const bearer = (token: string | undefined): Record<string, string> =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };

/** Opens a WebSocket at one of the agents' paths. @throws Error */
async function dial(site: string, path: string, token: string | undefined, protocols: string[]) {
  const url = new URL(`/_sojourn/agent/${path}`, site);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url, { protocols, headers: bearer(token) });
  const messages = new ClientSocket(socket, { messageBytesMax: FORWARDED_FRAME_BYTES_MAX }); // early: none is missed
  const { promise, resolve, reject } = Promise.withResolvers<MessageSocket>();
  socket.addEventListener("open", () => resolve(messages), { once: true });
  socket.addEventListener("error", (event) => {
    reject(new Error(`${site} can't be reached: ${(event as ErrorEvent).message}`));
  }, { once: true });
  const late = setTimeout(() => {
    reject(new Error(`${site} did not answer within ${ANSWER_MS_MAX / 1_000} s`));
    socket.close();
  }, ANSWER_MS_MAX);
  return await promise.finally(() => clearTimeout(late));
}

/** Draws 53 random bits: whoever knows them may speak for a host side until it has its key. */
function draw(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low || 1;
}

/** Returns the function that prints an agent's notes: lines for people, or for programs with `--json`. */
function noteTo(args: Parsed, shell: Shell): (text: string) => void {
  return args.json ? (text) => shell.out(JSON.stringify({ event: "note", text })) : (text) => shell.err(text);
}

/** Arguments of one run of the command. */
interface Run {
  readonly of: AgentOf;
  readonly sites: Sites;
  readonly args: Parsed;
  readonly shell: Shell;
}

const stopOf = (shell: Shell): AbortSignal => shell.interrupted?.() ?? new AbortController().signal;

async function runOrigin({ of, sites, args, shell }: Run, address: string): Promise<ExitCode> {
  const origin = originAddress(address);
  if (origin === null) throw new UsageError(`--origin takes ${ORIGIN_EXPECTED}, not ${address}`);
  const rules = rulesFor(origin);
  const agent = new OriginAgent({
    ...{ of, origin, draw, note: noteTo(args, shell) },
    connect: (origin, listener) => connectOrigin(origin, rules, listener),
    make: async (bytes, key) => {
      const maker = { egress: rules, key, signal: AbortSignal.timeout(30_000) };
      const call = { call: 0, kind: "fetch" as const, bytes, effect: key === null ? null : 0 };
      return { ok: true, bytes: await fetchFor(maker, call) };
    },
    dial: (path) => dial(sites.root, path, sites.token, []),
    clock: SYSTEM_CLOCK,
  });
  await agent.run(stopOf(shell));
  return EXIT.done;
}

/** Returns rules that permit the given address only: whoever starts an agent permits it by naming it. */
function rulesFor({ host, port }: OriginAddress): EgressRules {
  const only = [`${host}:${port}`];
  return new EgressRules({ fetchHosts: only, privateHosts: only });
}

/** Listens at an address. @throws AdminError where it is taken, or none of this machine's. */
function listenAt(hostname: string, port: number): Deno.TcpListener {
  try {
    return Deno.listen({ hostname, port });
  } catch (error) {
    throw new AdminError("listen_failed", `can't listen at ${hostname}:${port}: ${messageOf(error)}`);
  }
}

async function runClients(
  { of, sites, args, shell }: Run,
  listen: string,
): Promise<ExitCode> {
  const id = args.text("id");
  const at = /^(.+):(\d{1,5})$/.exec(listen);
  if (at === null) throw new UsageError(`--listen takes host:port, not ${listen}`);
  const urls = await sites.urls();
  const listener = listenAt((at[1] ?? "").replace(/^\[|\]$/g, ""), Number(at[2]));
  let site = 0;
  const open = async (id: string) => {
    try {
      const path = `attach?${new URLSearchParams({ ...of, id })}`;
      return new SocketWay(await dial(urls[site] ?? "", path, sites.token, [SUBPROTOCOL]));
    } catch (error) {
      site = (site + 1) % urls.length; // the next site, for all connections
      throw new WayRefused("stateful_unreachable", error instanceof Error ? error.message : String(error));
    }
  };
  const agent = new ClientAgent({
    ...{ listener, note: noteTo(args, shell) },
    idOf: () => id ?? `agent-${crypto.randomUUID()}`,
    attach: (id) =>
      PlainPeer.attach({
        ...{ open: () => open(id), instance: draw(), log: new HostLog(), count: () => {} },
        failed: (error) => noteTo(args, shell)(`a connection of ${id} failed: ${error}`),
      }),
  });
  const { hostname, port } = listener.addr;
  if (args.json) shell.out(JSON.stringify({ event: "listening", hostname, port }));
  else shell.out(`listening at ${hostname}:${port} for ${of.class} of ${of.app}`);
  await agent.run(stopOf(shell));
  return EXIT.done;
}
