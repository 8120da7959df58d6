/**
 * The door for agents, which connect by WebSockets at `/_sojourn/agent/…`, with an agent's token (deploy/roles.ts) or
 * an admin's:
 *
 *   check?app&class&as    no WebSocket: whether the token is good for such an agent, and what its class lacks
 *   origin?app&class      at the root: the line of an agent that stands for an origin (agent_hub.ts)
 *   way?ticket            at the root: takes a way that a home asks for
 *   attach?app&class&id   at any site: attaches a client, which is its own host side
 *
 * AD1  An agent's token opens sessions of its app and class, and nothing else: not another agent's way either.
 */
import { z } from "zod";
import { SUBPROTOCOL } from "../../functions/sessions/attach/mod.ts";
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import type { AgentScope } from "../deploy/roles.ts";
import { bridge, ClientSocket, type MessageSocket } from "../gateway/message_socket.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { acceptSocket, goneAnswer } from "../link/accept_socket.ts";
import { FORWARDED_FRAME_BYTES_MAX, type FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import { RefusedPeer, RelayedPeer } from "../stateful/relayed_peer.ts";
import type { AgentHub, AgentOf } from "./agent_hub.ts";

/** Services of the site that the door uses. */
export interface AgentDoorServices {
  /** Hub of the agents; null where this site is not the root. */
  readonly hub: AgentHub | null;
  readonly root: () => string | undefined;
  /** Opens a way to a session's home. */
  readonly open: (name: StatefulName) => Promise<FrameWay>;
  /**
   * Returns why an agent of that class would have nothing to do now, such as an app that does not exist; null: it has.
   */
  readonly lacking: (of: AgentOf, isOrigin: boolean) => string | null;
}

const name = z.string().min(1).max(200);
const agentOf = z.object({ app: name, class: name });
const attached = z.object({ app: name, class: name, id: name });
const taken = z.object({ ticket: z.string().min(1).max(100) });

/** Handles agents that connect. */
export class AgentDoor {
  readonly #services: AgentDoorServices;
  readonly #sockets = new Set<MessageSocket>();

  constructor(services: AgentDoorServices) {
    this.#services = services;
  }

  /** Answers a request below the agents' path. @throws Problem */
  handle(request: Request, path: string, scope: AgentScope | null): Response | Promise<Response> {
    const query = Object.fromEntries(new URL(request.url).searchParams);
    if (path === "check") {
      const of = permitted(parsed(agentOf, query), scope);
      return Response.json({ ...of, lacks: this.#services.lacking(of, query["as"] === "origin") });
    }
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      throw new Problem("not_found", `/_sojourn/agent/${path} is a WebSocket: sojourn agent opens it`);
    }
    switch (path) {
      case "origin": {
        const of = permitted(parsed(agentOf, query), scope), hub = this.#hub();
        return this.#upgrade(request, (socket) => hub.serve(of, socket));
      }
      case "way": {
        const { ticket } = parsed(taken, query);
        const hub = this.#hub(), of = hub.wanted(ticket);
        if (of !== null) permitted(of, scope);
        const offered = hub.take(ticket);
        if (offered === null) throw new Problem("not_found", "nobody waits with this ticket any more");
        return this.#upgrade(request, async (socket) => {
          await socket.send(offered.wanted.slice());
          await bridge(socket, new RelayedPeer(offered.way));
        });
      }
      case "attach": {
        const of = permitted(parsed(attached, query), scope);
        return this.#upgrade(request, async (socket) => {
          const peer = await this.#services.open({ app: of.app, class: of.class, id: of.id }).then(
            (way) => new RelayedPeer(way),
            (error) => new RefusedPeer(error),
          );
          await bridge(socket, peer);
        }, SUBPROTOCOL);
      }
    }
    throw new Problem("not_found", `/_sojourn/agent/${path} is no path of agents`);
  }

  close(): void {
    this.#services.hub?.close();
    for (const socket of this.#sockets) socket.close(1001, "the site is stopping");
  }

  #hub(): AgentHub {
    const { hub, root } = this.#services;
    if (hub !== null) return hub;
    throw new Problem(
      "not_available",
      `agents of origins connect to the root, ${root() ?? "which is not known"}`,
    );
  }

  async #upgrade(
    request: Request,
    serve: (socket: MessageSocket) => Promise<void>,
    protocol?: string,
  ): Promise<Response> {
    const accepted = await acceptSocket(request, protocol === undefined ? {} : { protocol });
    if (accepted === null) return goneAnswer();
    const { socket, response } = accepted;
    const mine = new ClientSocket(socket, { messageBytesMax: FORWARDED_FRAME_BYTES_MAX });
    this.#sockets.add(mine);
    serve(mine).catch(() => mine.close(1011, "")).finally(() => {
      this.#sockets.delete(mine);
      mine.close(1000, "");
    });
    return response;
  }
}

/** Returns the agent's class where the token permits it (AD1). @throws Problem */
function permitted<T extends AgentOf>(of: T, scope: AgentScope | null): T {
  const isIn = scope === null ||
    (scope.app === of.app && (scope.class === null || scope.class === of.class));
  if (isIn) return of;
  const { app, class: className } = scope;
  throw new Problem(
    "admin_role",
    `this token is for agents of ${
      className === null ? app : `${app}/${className}`
    }, not of ${of.app}/${of.class}`,
  );
}

/** Parses a query. @throws Problem */
function parsed<T>(schema: z.ZodType<T>, query: unknown): T {
  const read = schema.safeParse(query);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Problem(
    "query_invalid",
    `${issue?.path.join(".") ?? "the query"}: ${issue?.message ?? "is not valid"}`,
  );
}
