/**
 * Where a stateful session is below `/_sojourn/admin`: its app, class and id, a segment each.
 *
 * SP1  Whatever text an id is, it is one segment: URLs have no segments `.` and `..` (also not as %2E), so these have a
 *      `~` before them, and so have texts that would be read as such.
 */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";

const DOTS = /^~*\.{1,2}$/;

const segmentOf = (text: string): string => encodeURIComponent(DOTS.test(text) ? `~${text}` : text);

/** The path of one. */
export const sessionSegments = ({ app, class: className, id }: StatefulName): string =>
  `/sessions/${[app, className, id].map(segmentOf).join("/")}`;

/** The id that a segment stands for, when it was decoded. */
export const idOfSegment = (segment: string): string =>
  DOTS.test(segment) && segment.startsWith("~") ? segment.slice(1) : segment;
