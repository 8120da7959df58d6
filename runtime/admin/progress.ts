/**
 * Answers with progress: JSON lines `{event, …}` while the call works, the last of them `{event: "answer", status,
 * body}`, and blank ones while there is nothing to tell. For callers who ask for it (`accept: application/x-ndjson`).
 */
import { BLANK_LINE, LIFE_SIGN_MS, NDJSON_HEADERS, ndjsonLine } from "../observe/ndjson.ts";
import { failure } from "./failure.ts";
import type { AdminContext, AdminServices } from "./services.ts";

/** Tells the caller of something that happened on the way. */
export type Tell = (event: Readonly<Record<string, unknown>>) => void;

/** Reports whether the caller asks for progress. */
const wantsProgress = (c: AdminContext): boolean =>
  (c.req.header("accept") ?? "").includes("application/x-ndjson");

/** Answers a call that may take a while: at its end, or line by line. */
export async function withProgress(
  services: Pick<AdminServices, "note">,
  c: AdminContext,
  work: (tell: Tell) => Promise<Response>,
  lifeSignMs: number = LIFE_SIGN_MS,
): Promise<Response> {
  if (!wantsProgress(c)) return await work(() => {});
  const lines = new TransformStream<Uint8Array, Uint8Array>();
  const writer = lines.writable.getWriter();
  const send = (line: Uint8Array) => void writer.write(line).catch(() => {}); // the caller has gone
  const write = (line: unknown) => send(ndjsonLine(line));
  send(BLANK_LINE); // the request has arrived
  const life = setInterval(() => send(BLANK_LINE), lifeSignMs);
  void work((event) => write(event))
    .catch((error: unknown) => failure(error, services))
    .then(async (answer) => write({ event: "answer", status: answer.status, body: await answer.json() }))
    .finally(() => {
      clearInterval(life);
      writer.close().catch(() => {});
    });
  return new Response(lines.readable, { headers: NDJSON_HEADERS });
}
