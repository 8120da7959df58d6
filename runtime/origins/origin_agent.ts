/**
 * An agent next to an origin: holds the ends of its sessions, and makes their requests to it, so that the origin loses
 * no connection when a home or the root is lost. The agent connects to the root, so the origin may lie where no
 * connection can come in.
 *
 * Life: `run` → on the line with the root → without one, while the root is away: ends wait for their homes → stopped.
 *
 * OA1  Ends outlive the line: only their grace, the origin, the session or the agent's stop ends them.
 */
import { z } from "zod";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { OriginAddress } from "../../functions/origin_address.ts";
import type { CallOutcome } from "../../functions/sessions/turn/mod.ts";
import { bridge, type MessageSocket } from "../gateway/message_socket.ts";
import { pause } from "../observe/pause.ts";
import { failedCall } from "../../functions/sessions/serve/made_calls.ts";
import { RelayedPeer } from "../stateful/relayed_peer.ts";
import { type AgentOf, decodeAsked, encodeAnswered } from "./agent_hub.ts";
import { KeptOutcomes } from "./kept_outcomes.ts";
import { decodeWanted, OriginEnds } from "./origin_ends.ts";
import type { OriginConnection, OriginListener } from "./plain_origin.ts";

/** Services of the surrounding program that the agent uses. */
export interface OriginAgentServices {
  readonly of: AgentOf;
  readonly origin: OriginAddress;
  readonly connect: (origin: OriginAddress, listener: OriginListener) => Promise<OriginConnection>;
  /** Makes a request of a session to the origin. */
  readonly make: (bytes: Uint8Array, key: string | null) => Promise<CallOutcome>;
  /** Opens a WebSocket to the root, at one of the agents' paths. @throws Error */
  readonly dial: (path: string) => Promise<MessageSocket>;
  readonly clock: PeerClock;
  readonly draw: () => number;
  readonly note: (text: string) => void;
}

const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 5_000;

const lineMessage = z.strictObject({ way: z.string().max(100) });

/** Holds the ends of an origin; see the file's header. */
export class OriginAgent {
  readonly #services: OriginAgentServices;
  readonly #ends: OriginEnds;
  readonly #kept: KeptOutcomes;

  constructor(services: OriginAgentServices) {
    this.#services = services;
    this.#kept = new KeptOutcomes(() => services.clock.nowMs());
    const { origin, connect, clock, draw, note } = services;
    this.#ends = new OriginEnds({
      ...{ connect, clock, draw, toAgent: () => false, holdsLogs: true },
      originOf: () => Promise.resolve(origin),
      log: (_wanted, text) => note(text),
    });
  }

  /** Serves until it is stopped. */
  async run(stop: AbortSignal): Promise<void> {
    const { of, note, dial } = this.#services;
    const path = `origin?${new URLSearchParams({ app: of.app, class: of.class })}`;
    let pauseMs = PAUSE_MS_MIN, said = "";
    while (!stop.aborted) {
      try {
        const line = await dial(path);
        note(said = `standing for ${this.#services.origin.url}, the origin of ${of.class} of ${of.app}`);
        pauseMs = PAUSE_MS_MIN;
        const close = () => line.close(1000, "");
        stop.addEventListener("abort", close, { once: true });
        if (stop.aborted) close();
        await this.#serve(line).finally(() => stop.removeEventListener("abort", close));
        if (!stop.aborted) note(said = "the root is away: sessions wait");
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        if (said !== why) note(said = why);
      }
      if (!stop.aborted) await pause(pauseMs, stop);
      pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX);
    }
    this.#ends.close();
  }

  async #serve(line: MessageSocket): Promise<void> {
    for (let event = await line.next(); event.kind === "message"; event = await line.next()) {
      if (typeof event.data === "string") {
        const { way } = lineMessage.parse(JSON.parse(event.data));
        this.#takeWay(way).catch((error) => this.#services.note(`a way could not be taken: ${error}`));
      } else {
        this.#answer(line, event.data).catch((error) => {
          this.#services.note(`the root asks what can't be read: ${error}`);
          line.close(1003, "");
        });
      }
    }
  }

  /** Takes a way. Its first message names the session that it is for; frames follow. */
  async #takeWay(ticket: string): Promise<void> {
    const socket = await this.#services.dial(`way?${new URLSearchParams({ ticket })}`);
    const first = await socket.next();
    if (first.kind === "close" || typeof first.data === "string") return socket.close(1003, "");
    const way = this.#ends.open(decodeWanted(first.data));
    await bridge(socket, new RelayedPeer(way));
  }

  async #answer(line: MessageSocket, message: Uint8Array): Promise<void> {
    const { number, key, bytes } = decodeAsked(message);
    const make = () => this.#services.make(bytes, key).catch(failedCall);
    const outcome = await (key === null ? make() : this.#kept.once(key, make));
    await line.send(encodeAnswered(number, outcome));
  }
}
