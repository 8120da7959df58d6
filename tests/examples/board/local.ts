/**
 * The board in this process, over a store in memory: for tests of the app and of the emulator that need no cluster.
 * A session's token is its id in plain text.
 */
import type { AppContext, EnvOf } from "sojourn";
import app from "../../../examples/board/app.ts";
import type { resources } from "../../../examples/board/resources.ts";
import { buildEnv } from "../../../functions/env.ts";
import type { StoreClient } from "../../../functions/vocabulary/store_client.ts";
import type { Edge } from "./client.ts";

export const ADMIN_TOKEN = "operator";

/** Serves the app over whatever store `storeOf` gives to each request. */
export function localEdge(id: string, storeOf: (session: string) => StoreClient): Edge {
  const fetch = app.fetch;
  if (fetch === undefined) throw new Error("the board has no fetch handler");
  return {
    id,
    send: async (path, init) => {
      const request = new Request(`http://board.localhost${path}`, init);
      const session = request.headers.get("sojourn-session") ?? crypto.randomUUID();
      const vars = { ADMIN_TOKEN, PASSWORD_ROUNDS: "1" };
      const env = buildEnv(app, { store: storeOf(session), vars }) as EnvOf<typeof resources>;
      const response = await fetch(request, env, contextOf(session, id));
      const headers = new Headers(response.headers);
      headers.set("sojourn-session", session);
      return new Response(response.body, { status: response.status, headers });
    },
  };
}

const contextOf = (session: string, site: string): AppContext => ({
  waitUntil: () => {},
  passThroughOnException: () => {},
  props: {},
  session: { id: session },
  site,
  version: "0".repeat(64),
});
