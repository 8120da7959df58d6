/**
 * An answer that tells how far it is: JSON lines `{event, …}` while it works, the last of them
 * `{event: "answer", status, body}`. For callers who ask for it (`accept: application/x-ndjson`).
 */
import { NDJSON_HEADERS } from "../observe/ndjson.ts";
import { failure } from "./failure.ts";
import type { AdminContext, AdminServices } from "./services.ts";

/** Tells the caller of something that happened on the way. */
export type Tell = (event: Readonly<Record<string, unknown>>) => void;

/** Whether the caller wants to be told. */
const wantsProgress = (c: AdminContext): boolean =>
  (c.req.header("accept") ?? "").includes("application/x-ndjson");

/** Answers a call that may take a while: at its end, or line by line. */
export async function withProgress(
  services: Pick<AdminServices, "note">,
  c: AdminContext,
  work: (tell: Tell) => Promise<Response>,
): Promise<Response> {
  if (!wantsProgress(c)) return await work(() => {});
  const encoder = new TextEncoder();
  const lines = new TransformStream<unknown, Uint8Array>({
    transform: (line, controller) => controller.enqueue(encoder.encode(JSON.stringify(line) + "\n")),
  });
  const writer = lines.writable.getWriter();
  const write = (line: unknown) => void writer.write(line).catch(() => {}); // the caller has gone
  void work((event) => write(event))
    .catch((error: unknown) => failure(error, services))
    .then(async (answer) => write({ event: "answer", status: answer.status, body: await answer.json() }))
    .finally(() => writer.close().catch(() => {}));
  return new Response(lines.readable, { headers: NDJSON_HEADERS });
}
