/**
 * Runs a request at this site: attaches its session, calls an isolate, and lets the answer out.
 *
 * Stages: attach (nothing, carry, wait) → call → gate → head with token → body.
 *
 * R1  A token leaves only after all that it names is on disk here.
 * R2  A failed call still answers with the session's token: what it had written before it failed stays written.
 * R3  A token is `open` while the function can still write after it left: stream, socket, `waitUntil`.
 */
import { type AttachedSession, type Replica, StoreUnavailable } from "../../store/api.ts";
import { sessionIdOf } from "../../store/token.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { IsolateAnswer, IsolateApp, IsolateCall } from "../isolate/call.ts";
import { type Arrival, type Outcome, respond } from "./arrival.ts";
import { IsolateEnd } from "./isolate_socket.ts";
import { isProblemCode, Problem, type ProblemCode, problemResponse } from "./problem.ts";
import { type RequestHead, SESSION_HEADER } from "./request_head.ts";
import {
  type AppSpace,
  appSpace,
  SessionStore,
  type StoreLimits,
  type StoreTiming,
} from "./session_store.ts";
import type { OpenedToken, SessionTokens } from "./session_tokens.ts";

/** What running needs of its site. */
export interface RunnerServices {
  readonly site: string;
  readonly replica: Pick<Replica, "attach" | "attachAll">;
  readonly isolates: { call(app: IsolateApp, call: IsolateCall): Promise<IsolateAnswer> };
  readonly tokens: SessionTokens;
  readonly limits: StoreLimits;
  /** An app version with this site's limits. */
  readonly isolateApp: (version: LiveVersion) => IsolateApp;
  readonly appLog: (line: { app: string; version: string; level: string; text: string }) => void;
  readonly nowMs: () => number;
  /** Show an app's errors to its clients. */
  readonly dev: boolean;
}

/** Errors of an app's own doing that a client is told by code; any other is `app_error`. */
const APP_CODES: ReadonlySet<string> = new Set(
  [
    "isolate_killed",
    "app_error",
    "wall_time",
    "overloaded",
    "limit_body",
    "limit_key",
    "limit_value",
    "limit_atomic",
    "row_invalid",
    "check_failed",
    "not_available",
    "store_unreachable",
    "source_unreachable",
    "source_lost",
    "disk_failed",
  ] satisfies ProblemCode[],
);

interface Prepared {
  readonly app: IsolateApp;
  readonly space: AppSpace;
}

/** Runs requests of apps at this site. */
export class AppRunner {
  readonly #services: RunnerServices;
  readonly #prepared = new WeakMap<LiveVersion, Prepared>();

  constructor(services: RunnerServices) {
    this.#services = services;
  }

  /** @throws Problem where the session cannot be attached. */
  async run(
    arrival: Arrival,
    head: RequestHead,
    version: LiveVersion,
    presented: readonly OpenedToken[],
  ): Promise<Outcome> {
    const { replica, isolates, site } = this.#services;
    const begunMs = performance.now();
    const session = await attach(replica, presented);
    const attachedMs = performance.now();
    const timing: StoreTiming = { storeMs: 0 };
    const { app, space } = this.#prepare(version);
    const call: IsolateCall = {
      request: new Request(head.url, { method: head.method, headers: head.headers, body: arrival.body }),
      store: new SessionStore(session, {
        space,
        limits: this.#services.limits,
        nowMs: this.#services.nowMs,
        timing,
      }),
      context: {
        sessionId: sessionIdOf(session.id, version.app),
        site,
        version: version.version,
        ...(arrival.remote === undefined ? {} : { remoteAddr: arrival.remote }),
      },
      gate: () => session.durable(),
      log: (entry) => this.#services.appLog({ app: version.app, version: version.version, ...entry }),
    };
    const answer = await isolates.call(app, call);
    const open = answer.kind === "upgrade" || (answer.kind === "response" && answer.open);
    const token = await this.#token(session, presented, open);
    const appMs = performance.now() - attachedMs - timing.storeMs;
    const headers: [string, string][] = [
      ["sojourn-site", site],
      ["sojourn-version", version.version],
      [SESSION_HEADER, token],
      [
        "server-timing",
        `handoff;desc=${session.how};dur=${ms(attachedMs - begunMs)}, store;dur=${
          ms(timing.storeMs)
        }, app;dur=${ms(appMs)}`,
      ],
    ];
    if (answer.kind === "upgrade") {
      return {
        kind: "socket",
        socket: new IsolateEnd(answer.socket),
        protocol: answer.socket.protocol,
        headers,
      };
    }
    const response = answer.kind === "response" ? answer.response : this.#failure(answer);
    for (const [name, value] of headers) response.headers.set(name, value);
    return respond(response);
  }

  /** R1 */
  async #token(session: AttachedSession, presented: readonly OpenedToken[], open: boolean): Promise<string> {
    const state = session.token(open);
    await session.durable();
    return this.#services.tokens.seal(state, presented).text;
  }

  #failure(answer: Extract<IsolateAnswer, { kind: "error" }>): Response {
    const code = isProblemCode(answer.code) && APP_CODES.has(answer.code) ? answer.code : "app_error";
    const more = this.#services.dev && answer.stack !== undefined ? { stack: answer.stack } : {};
    const hidden = code === "app_error" && !this.#services.dev;
    return problemResponse(code, hidden ? "the app failed; its log says why" : answer.message, more);
  }

  #prepare(version: LiveVersion): Prepared {
    const known = this.#prepared.get(version);
    if (known !== undefined) return known;
    const prepared = { app: this.#services.isolateApp(version), space: appSpace(version.app) };
    this.#prepared.set(version, prepared);
    return prepared;
  }
}

async function attach(
  replica: Pick<Replica, "attach" | "attachAll">,
  presented: readonly OpenedToken[],
): Promise<AttachedSession> {
  try {
    const [first] = presented;
    if (presented.length > 1) return await replica.attachAll(presented.map((token) => token.state));
    return await replica.attach(first === undefined ? null : first.state);
  } catch (error) {
    throw storeProblem(error);
  }
}

/** A store failure as the problem that a client is told; anything else as it is. */
export function storeProblem(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable)) return error;
  const code = isProblemCode(error.code) ? error.code : "overloaded";
  return new Problem(code, error.message, error.detail);
}

const ms = (value: number): string => value < 0 ? "0" : value.toFixed(2);
