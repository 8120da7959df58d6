/** Duels whose players hold the log: each hears all moves, with what they have come to so far. */
import { defineApp, type EnvOf, type From, list, Session } from "sojourn";
import { Hono } from "hono";

type Env = EnvOf<Record<never, never>, { duel: Duel }>;

/** A move as its players hear of it: two that have heard of one have heard of the same ones before it. */
interface Move {
  readonly number: number;
  readonly by: string;
  readonly text: string;
  readonly total: number;
}

export class Duel extends Session<Env> {
  static durability = "hosts" as const;
  moves = list<Move>();

  override onMessage(message: string | Uint8Array, from: From) {
    const before = this.moves.at(-1)?.total ?? Math.floor(Math.random() * 1_000_000);
    const text = String(message);
    let total = before;
    for (const unit of `${from.id} ${text}`) {
      total = (total * 31 + (unit.codePointAt(0) ?? 0)) % 1_000_000_007;
    }
    const move = { number: this.moves.length + 1, by: from.id, text, total };
    this.moves.push(move);
    for (const client of this.clients) client.send(JSON.stringify(move));
  }

  override fetch(): Response {
    return Response.json([...this.moves]);
  }
}

const http = new Hono<{ Bindings: Env }>();
http.all("/:id", (c) => c.env.sessions.duel.get(c.req.param("id")).fetch(c.req.raw));

export default defineApp({ sessions: { duel: Duel }, fetch: http.fetch });
