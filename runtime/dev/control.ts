/**
 * The dev process's own door: loopback HTTP by which commands, tests and sites stop, kill, pause, start and break
 * sites. Needs the cluster's admin token; `cluster.json` says where it is.
 *
 * Life: `openControl` (before any site starts: sites are told where the door is) → … → `close`.
 */
import { type ChaosAction, chaosActionSchema, type ChaosDone, explainAction } from "../chaos/actions.ts";
import { CHAOS_PATH, CHAOS_VIA } from "../chaos/site_chaos.ts";
import { problemResponse } from "../gateway/problem.ts";
import { ChaosRefused, ClusterChaos } from "./chaos.ts";
import type { Cluster } from "./cluster.ts";

/** Actions on a site. */
const ACTIONS = ["kill", "stop", "start", "restart", "pause", "resume"] as const;
type Action = (typeof ACTIONS)[number];

/** The door while it is open. */
export interface Control {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens the door on a free port. */
export async function openControl(cluster: Cluster, changed: () => Promise<void>): Promise<Control> {
  const opened = Promise.withResolvers<ClusterChaos>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    if (request.headers.get("authorization") !== `Bearer ${cluster.adminToken}`) {
      return problemResponse("admin_token_invalid", "this needs the cluster's admin token");
    }
    const chaos = await opened.promise;
    const { pathname } = new URL(request.url);
    if (pathname === CHAOS_PATH) return await takeChaos(chaos, request, changed);
    const [, action, id] = pathname.split("/");
    const site = cluster.site(id ?? "");
    if (request.method !== "POST" || !isAction(action) || site === undefined) {
      return new Response(`POST /ACTION/SITE, with one of ${ACTIONS.join(", ")}\n`, { status: 404 });
    }
    await act(site.process, action);
    chaos.moved(site.id);
    await changed();
    return Response.json({ site: site.id, pid: site.process.pid });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  const chaos = new ClusterChaos(cluster, url);
  await chaos.begin();
  opened.resolve(chaos);
  return { url, close: () => server.shutdown() };
}

const isAction = (word: string | undefined): word is Action => ACTIONS.some((action) => action === word);

async function act(
  site: {
    kill(): Promise<void>;
    stop(): Promise<void>;
    start(): Promise<void>;
    signal(signal: Deno.Signal): void;
  },
  action: Action,
): Promise<void> {
  switch (action) {
    case "kill":
      return await site.kill();
    case "stop":
      return await site.stop();
    case "start":
      return await site.start();
    case "restart":
      await site.kill();
      return await site.start();
    case "pause":
      return site.signal("SIGSTOP");
    case "resume":
      return site.signal("SIGCONT");
  }
}

/** Bytes of a request's body: an action is a few names and numbers. */
const BODY_BYTES_MAX = 64 * 1024;
/** Milliseconds that the answer has to pass through a site that the action ends. */
const LAST_WORD_MS = 100;

async function takeChaos(
  chaos: ClusterChaos,
  request: Request,
  changed: () => Promise<void>,
): Promise<Response> {
  if (request.method === "GET") return Response.json(chaos.state());
  if (request.method !== "POST") return problemResponse("method_not_allowed", "GET and POST chaos");
  const text = await request.text();
  if (text.length > BODY_BYTES_MAX) {
    return problemResponse("limit_body", "this is no chaos action: it is too long");
  }
  const body = parseJson(text);
  const parsed = chaosActionSchema.safeParse(body);
  if (!parsed.success) return problemResponse("chaos_invalid", explainAction(parsed.error, body));
  const action = parsed.data;
  try {
    if (endsItsMessenger(action, request.headers.get(CHAOS_VIA))) {
      await chaos.allow(action);
      setTimeout(() => void chaos.do(action).then(changed, () => {}), LAST_WORD_MS);
      const done: ChaosDone = {
        action: action.action,
        did: `${action.action} ${action.site}: in ${LAST_WORD_MS} ms, since that site brought the order`,
        undo: action.action === "kill" ? `chaos restart ${action.site}` : "see `chaos`",
        missing: [],
      };
      return Response.json(done, { status: 202 });
    }
    const done = await chaos.do(action);
    await changed();
    return Response.json(done);
  } catch (error) {
    if (!(error instanceof ChaosRefused)) throw error;
    return problemResponse(error.code, error.message);
  }
}

type ProcessAction = Extract<ChaosAction, { action: "kill" | "restart" | "pause" | "resume" | "wipe" }>;

/** Reports whether the site that passed an action on would not live to pass on the answer. */
const endsItsMessenger = (action: ChaosAction, via: string | null): action is ProcessAction =>
  (action.action === "kill" || action.action === "restart" || action.action === "pause" ||
    action.action === "wipe") && action.site === via;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
