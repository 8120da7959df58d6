/**
 * Path of a stateful session below `/_sojourn/admin`: its app, class and id, a segment each.
 *
 * SPT1  Any text of an id becomes one segment: URLs have no segments `.` and `..` (also not as %2E), so these get a `~`
 *       before them, and so do texts that would be read as such.
 */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";

const DOTS = /^~*\.{1,2}$/;

const segmentOf = (text: string): string => encodeURIComponent(DOTS.test(text) ? `~${text}` : text);

/** Returns the path of a session. */
export const sessionSegments = ({ app, class: className, id }: StatefulName): string =>
  `/sessions/${[app, className, id].map(segmentOf).join("/")}`;

/** Returns the id that a decoded segment stands for. */
export const idOfSegment = (segment: string): string =>
  DOTS.test(segment) && segment.startsWith("~") ? segment.slice(1) : segment;
