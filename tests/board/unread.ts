/**
 * What a row costs the link of an edge where nobody reads it.
 *
 * One edge gets comments on a story that no client of the farthest other edge ever asked for; that edge's link to
 * its parent is watched, and then watched again for as long while nothing is written.
 */
import type { History } from "./history.ts";
import { bytesFromParent, settle, type SiteAddress, siteStatus } from "./site_status.ts";

/** Bytes of the store's messages that reached the edge where nobody reads. */
export interface Unread {
  readonly writer: string;
  readonly site: string;
  readonly rows: number;
  readonly payloadBytes: number;
  readonly bytes: number;
  readonly idleBytes: number;
}

const ROWS = 50;
const SETTLE_MS = 30_000;
const TEXT = "nobody reads this ".repeat(57);

/** Measures it; null where there is one edge, or every story was read there. */
export async function probeUnread(
  sites: readonly SiteAddress[],
  history: History,
  adminToken: string,
): Promise<Unread | null> {
  const edges = sites.filter((site) => !sites.some((other) => other.parent === site.id));
  const [writer] = edges;
  const reader = edges.findLast((edge) => edge.parent !== writer?.parent) ?? edges.at(-1);
  if (writer === undefined || reader === undefined || writer === reader) return null;
  const story = storyReadOnlyElsewhere(history, reader.id);
  if (story === null) return null;
  const bytesNow = async () => bytesFromParent(await siteStatus(reader, adminToken));

  const before = await bytesNow();
  const startMs = performance.now();
  for (let i = 0; i < ROWS; i++) await comment(writer, story);
  await settle(sites, adminToken, SETTLE_MS);
  const after = await bytesNow();
  const tookMs = performance.now() - startMs;
  await new Promise((resolve) => setTimeout(resolve, tookMs));
  const idle = await bytesNow();
  return {
    writer: writer.id,
    site: reader.id,
    rows: ROWS,
    payloadBytes: ROWS * TEXT.length,
    bytes: after - before,
    idleBytes: idle - after,
  };
}

/** A story that was seen at some site, but in no answer at this one. */
function storyReadOnlyElsewhere(history: History, site: string): string | null {
  const here = new Set<string>();
  const anywhere = new Set<string>();
  for (const operation of history.sessions.flat()) {
    for (const { row } of operation.seen) {
      const [table, id] = row.split("/");
      if (id === undefined || !/^(stories|oldStories|comments|oldComments)$/.test(table ?? "")) continue;
      (operation.site === site ? here : anywhere).add(id);
    }
  }
  for (const id of anywhere) if (!here.has(id)) return id;
  return null;
}

async function comment(site: SiteAddress, story: string): Promise<void> {
  const response = await fetch(new URL(`/board/stories/${story}/comments`, site.url), {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    // A subject that no search of the emulator begins with.
    body: JSON.stringify({ subject: "~ unread ~", text: TEXT }),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`a comment at ${site.id} was answered ${response.status}`);
}
