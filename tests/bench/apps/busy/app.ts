/** What the benchmark of overload asks: handlers that take a known time of a processor, and one session that does. */
import { defineApp, type EnvOf, Session } from "sojourn";

/** Milliseconds of a processor for one request: so that a load generator can ask for ten times as much as can be done. */
const WORK_MS = 5;

function work(): void {
  for (const endMs = performance.now() + WORK_MS; performance.now() < endMs;);
}

/** One that everybody asks: its calls are run one after the other. */
export class Till extends Session {
  sold = 0;

  sell(): number {
    for (let i = 0; i < 1_500_000; i++) this.sold += i % 2; // a session has no clock that goes on in a turn
    return this.sold;
  }
}

type Env = EnvOf<Record<never, never>, { till: Till }>;

async function fetch(request: Request, env: Env): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname === "/work") work();
  else if (pathname === "/write") {
    work();
    await env.kv.set(["row", crypto.randomUUID()], 1);
  } else if (pathname === "/sell") await env.sessions.till.get("one").sell();
  else return new Response("unknown", { status: 404 });
  return new Response("done");
}

export default defineApp({ name: "busy", sessions: { till: Till }, fetch });
