/**
 * A room's messages: rows ordered by the time that their authors gave them.
 *
 * M1  A message's time is later than that of every message its author's request could see: an answer never stands
 *     above what it answers, even where the clocks of two sites differ.
 * M2  A follower converges to the newest {@link WINDOW_ROWS} messages of the room: one that comes late, from a
 *     site that was cut off, still arrives if it belongs among them.
 */
import { type EnvOf, table } from "sojourn";
import * as z from "zod";

/** What one screen and one answer hold. */
export const WINDOW_ROWS = 100;

/** A room's name, as it stands in paths. */
export const ROOM = /^[a-z0-9][a-z0-9-]{0,39}$/;

const draftSchema = z.object({
  name: z.string().trim().min(1, "say who you are").max(40, "a name has at most 40 characters"),
  text: z.string().trim().min(1, "write something").max(2000, "a message has at most 2,000 characters"),
}, "a message is JSON: {name, text}");

/** What the app declares. */
export const resources = {
  tables: {
    messages: table({
      schema: draftSchema.extend({
        room: z.string().regex(ROOM),
        /** Milliseconds since 1970, moved on where M1 asks for it. */
        at: z.number(),
        id: z.string(),
        /** The site that took it. */
        site: z.string(),
      }),
      key: ["room", "at", "id"],
    }),
  },
} as const;

/** The app's env. */
export type Env = EnvOf<typeof resources>;
type Messages = Env["tables"]["messages"];
/** One message. */
export type Message = z.infer<typeof resources.tables.messages.schema>;

/** Adds a message, or says what is wrong with it. */
export async function say(
  messages: Messages,
  { room, site, draft }: { room: string; site: string; draft: unknown },
): Promise<{ ok: true; message: Message } | { ok: false; problem: string }> {
  const parsed = draftSchema.safeParse(draft);
  if (!parsed.success) return { ok: false, problem: parsed.error.issues.map((i) => i.message).join(", ") };
  const { rows: [newest] } = await messages.list({ prefix: [room], reverse: true, limit: 1 });
  const at = Math.max(Date.now(), (newest?.value.at ?? 0) + 1); // M1
  const message: Message = { room, at, id: crypto.randomUUID(), site, ...parsed.data };
  await messages.put(message);
  return { ok: true, message };
}

/** The newest messages of a room, oldest first. */
export async function history(messages: Messages, room: string): Promise<Message[]> {
  const { rows } = await messages.list({ prefix: [room], reverse: true, limit: WINDOW_ROWS });
  return rows.map((row) => row.value).reverse();
}

/** The newest messages, then those that come, oldest first, each once; until the signal aborts (M2). */
export async function* follow(
  messages: Messages,
  room: string,
  signal: AbortSignal,
): AsyncGenerator<Message[]> {
  let seen = new Set<string>();
  for await (
    const { rows } of messages.watchList({ prefix: [room], reverse: true, limit: WINDOW_ROWS, signal })
  ) {
    const fresh = rows.map((row) => row.value).filter((message) => !seen.has(message.id)).reverse();
    seen = new Set(rows.map((row) => row.value.id));
    if (fresh.length > 0) yield fresh;
  }
}
