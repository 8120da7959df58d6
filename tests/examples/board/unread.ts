/**
 * What a row costs the link of an edge where nobody reads it.
 *
 * One edge gets comments on a story that nobody asked for at the farthest other edge, short ones and then long ones; that edge's link to its parent is watched. Marks pass it whatever was written, so what a row costs
 * is the difference.
 */
import { seededId } from "./generator.ts";
import { postJson, type Send } from "./loader.ts";
import { ADMIN_TOKEN } from "./operated_app.ts";
import { Random } from "./random.ts";
import { bytesFromParent, settle, type SiteAddress, siteStatus } from "./site_status.ts";

/** Bytes of the store's messages that reached the edge where nobody reads, a row written elsewhere. */
export interface Unread {
  readonly writer: string;
  readonly site: string;
  /** With texts of {@link SMALL_BYTES}: what is left is marks, which go round whatever was written. */
  readonly smallRow: number;
  /** With texts of {@link LARGE_BYTES}. */
  readonly largeRow: number;
}

export const SMALL_BYTES = 10;
export const LARGE_BYTES = 10_000;
const ROWS = 40;
const SETTLE_MS = 30_000;

/** Measures it; null where there is only one edge. */
export async function probeUnread(sites: readonly SiteAddress[], adminToken: string): Promise<Unread | null> {
  const root = sites.find((site) => site.parent === null);
  const edges = sites.filter((site) => !sites.some((other) => other.parent === site.id));
  const [writer] = edges;
  const reader = edges.findLast((edge) => edge.parent !== writer?.parent) ?? edges.at(-1);
  if (root === undefined || writer === undefined || reader === undefined || writer === reader) return null;
  const story = await unreadStory(root);
  const bytesPerRow = async (textBytes: number) => {
    const before = bytesFromParent(await siteStatus(reader, adminToken));
    for (let i = 0; i < ROWS; i++) await comment(writer, story, "x".repeat(textBytes));
    await settle(sites, adminToken, SETTLE_MS);
    return (bytesFromParent(await siteStatus(reader, adminToken)) - before) / ROWS;
  };
  await bytesPerRow(SMALL_BYTES); // the first row fetches the story and its counts to the writer
  return {
    writer: writer.id,
    site: reader.id,
    smallRow: await bytesPerRow(SMALL_BYTES),
    largeRow: await bytesPerRow(LARGE_BYTES),
  };
}

/** A story, and the token of the session that wrote it: whoever presents that sees it. */
interface UnreadStory {
  readonly id: string;
  readonly token: string;
}

/** A new story, older than all others: one that nobody has asked for. */
async function unreadStory(root: SiteAddress): Promise<UnreadStory> {
  const id = seededId(0, new Random(Date.now()));
  const value = {
    id,
    title: "Unread",
    sought: "~",
    body: "Nobody reads this.",
    writer: id,
    category: "none",
  };
  let token = "";
  const send: Send = async (path, init) => {
    const response = await fetch(new URL(`/board${path}`, root.url), init);
    token = response.headers.get("sojourn-session") ?? "";
    return response;
  };
  await postJson(
    send,
    "/admin/rows",
    JSON.stringify({ rows: [{ table: "oldStories", value }] }),
    ADMIN_TOKEN,
  );
  return { id, token };
}

async function comment(site: SiteAddress, story: UnreadStory, text: string): Promise<void> {
  const response = await fetch(new URL(`/board/stories/${story.id}/comments`, site.url), {
    method: "POST",
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      "sojourn-session": story.token,
    },
    // A subject that no search of the emulator begins with.
    body: JSON.stringify({ subject: "~ unread ~", text }),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`a comment at ${site.id} was answered ${response.status}`);
}
