/**
 * Agents that stand for origins: programs next to a server, which connect to the root and hold the ends of its sessions
 * there (origin_agent.ts). The root hands them the ways that homes ask for, and the requests to HTTP origins.
 *
 * On an agent's own WebSocket, its _line_:
 *
 *   root → agent   text, JSON {way: ticket}: a home asks; take it by another WebSocket · bytes: number, request
 *   agent → root   bytes: number, outcome
 *
 * AH1  The newest agent of a class stands for it; the one before goes on where the newest leaves.
 * AH2  A way that no agent takes within TAKE_MS_MAX is closed, and its home asks again.
 * AH3  A request that an agent was given ends with its outcome, or fails when the agent goes.
 */
import type { CallOutcome } from "../../functions/sessions/turn/mod.ts";
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import type { MessageSocket } from "../gateway/message_socket.ts";
import type { FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import type { OriginRequest } from "./http_origins.ts";
import { encodeWanted, type OriginWanted } from "./origin_ends.ts";

/** App and class for which an agent stands. */
export interface AgentOf {
  readonly app: string;
  readonly class: string;
}

interface Agent {
  readonly socket: MessageSocket;
  readonly open: Map<number, (outcome: CallOutcome) => void>;
}

interface Offered {
  readonly wanted: OriginWanted;
  readonly way: FrameWay;
  readonly late: ReturnType<typeof setTimeout>;
}

/** Milliseconds in which a way is taken: an agent that lives takes one in two trips. */
const TAKE_MS_MAX = 10_000;
/** Requests that may wait for one agent. */
const OPEN_MAX = 1_000;

/** The agents at the root. */
export class AgentHub {
  readonly #draw: () => string;
  readonly #agents = new Map<string, Agent[]>();
  readonly #offered = new Map<string, Offered>();
  #next = 1;

  /** @param draw draws tickets that cannot be guessed. */
  constructor(draw: () => string) {
    this.#draw = draw;
  }

  /** Number of agents that are connected. */
  get size(): number {
    return [...this.#agents.values()].reduce((sum, agents) => sum + agents.length, 0);
  }

  /** Serves an agent; resolves when it has gone. */
  async serve(of: AgentOf, socket: MessageSocket): Promise<void> {
    const key = keyOf(of);
    const agent: Agent = { socket, open: new Map() };
    this.#agents.set(key, [...this.#agents.get(key) ?? [], agent]); // AH1
    try {
      for (let event = await socket.next(); event.kind === "message"; event = await socket.next()) {
        if (typeof event.data === "string") throw new CodecError("an agent answers in bytes");
        const { number, outcome } = decodeAnswered(event.data);
        agent.open.get(number)?.(outcome);
      }
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      socket.close(1003, error.message.slice(0, 100));
    } finally {
      const others = (this.#agents.get(key) ?? []).filter((each) => each !== agent);
      if (others.length > 0) this.#agents.set(key, others);
      else this.#agents.delete(key);
      const gone = { ok: false, code: "origin_unreachable", message: "the origin's agent has gone" } as const; // AH3
      for (const done of agent.open.values()) done(gone);
    }
  }

  /** Offers a way to the agent of a class; false: it has none. */
  offer(wanted: OriginWanted, way: FrameWay): boolean {
    const agent = this.#agents.get(keyOf(wanted))?.at(-1);
    if (agent === undefined) return false;
    const ticket = this.#draw();
    const late = setTimeout(() => { // AH2
      this.#offered.delete(ticket);
      way.close();
    }, TAKE_MS_MAX);
    this.#offered.set(ticket, { wanted, way, late });
    agent.socket.send(JSON.stringify({ way: ticket })).catch(gone);
    return true;
  }

  /** Returns the class that a ticket is for; null: no way waits with it. */
  wanted(ticket: string): AgentOf | null {
    return this.#offered.get(ticket)?.wanted ?? null;
  }

  /** Takes a way that an agent was offered, with the session that it is for. */
  take(ticket: string): { readonly wanted: Uint8Array; readonly way: FrameWay } | null {
    const offered = this.#offered.get(ticket);
    if (offered === undefined) return null;
    this.#offered.delete(ticket);
    clearTimeout(offered.late);
    return { wanted: encodeWanted(offered.wanted), way: offered.way };
  }

  /** Has the agent of a class make a request; null: the class has none. */
  fetch(request: OriginRequest): Promise<CallOutcome> | null {
    const agent = this.#agents.get(keyOf(request))?.at(-1);
    if (agent === undefined) return null;
    if (agent.open.size >= OPEN_MAX) {
      const message = `${OPEN_MAX} requests wait for the origin's agent already`;
      return Promise.resolve({ ok: false, code: "overloaded", message });
    }
    const number = this.#next++;
    const { promise, resolve } = Promise.withResolvers<CallOutcome>();
    agent.open.set(number, (outcome) => {
      agent.open.delete(number);
      resolve(outcome);
    });
    agent.socket.send(encodeAsked(number, request)).catch(gone);
    return promise;
  }

  close(): void {
    for (const { way, late } of this.#offered.values()) {
      clearTimeout(late);
      way.close();
    }
    this.#offered.clear();
    for (const agents of this.#agents.values()) {
      for (const { socket } of agents) socket.close(1001, "the site is stopping");
    }
  }
}

/** Ignores an error of sending: the line has ended, and its reader (`serve`) finds that. */
const gone = (): void => {};

const keyOf = ({ app, class: className }: AgentOf): string => JSON.stringify([app, className]);

/** Encodes a request on an agent's line. */
export const encodeAsked = (number: number, { key, bytes }: OriginRequest): Uint8Array<ArrayBuffer> =>
  new Writer(bytes.length + 64).uint(number).text(key ?? "").bytes(bytes).done();

/** Decodes a request on an agent's line. @throws CodecError */
export function decodeAsked(message: Uint8Array) {
  const reader = new Reader(message);
  const number = reader.uint(), key = reader.text(), bytes = reader.bytes();
  reader.end();
  return { number, key: key === "" ? null : key, bytes };
}

/** Encodes an outcome on an agent's line. */
export function encodeAnswered(number: number, outcome: CallOutcome): Uint8Array<ArrayBuffer> {
  const writer = new Writer(64).uint(number).flag(outcome.ok);
  if (outcome.ok) return writer.bytes(outcome.bytes).done();
  return writer.text(outcome.code).text(outcome.message.toWellFormed()).done();
}

/** Decodes an outcome on an agent's line. @throws CodecError */
export function decodeAnswered(
  message: Uint8Array,
): { readonly number: number; readonly outcome: CallOutcome } {
  const reader = new Reader(message);
  const number = reader.uint();
  const outcome: CallOutcome = reader.flag()
    ? { ok: true, bytes: reader.bytes() }
    : { ok: false, code: reader.text(), message: reader.text() };
  reader.end();
  return { number, outcome };
}
