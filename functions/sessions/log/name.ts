/**
 * Names of stateful sessions: their limits, their place in maps and on disk, and the ids that say where one was born.
 *
 * N1  An id made by `birthId` is parsed by `birthOf` to what it was made of; any other text tells of no birth, or of
 *     one whose owners have never heard of it (recovery.ts opens it blank then).
 */
import { type Key, packKey, unpackKey } from "../../../store/model/key.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { HomeError, type StatefulName } from "./api.ts";
import { NAME_BYTES_MAX, STATEFUL_ID_BYTES_MAX } from "./limits.ts";

const utf8 = new TextEncoder();

/** Reports whether a text has 1 to `max` bytes of UTF-8. */
export const isText = (text: string, max: number): boolean =>
  text.length > 0 && text.length <= max && text.isWellFormed() &&
  (text.length * 3 <= max || utf8.encode(text).length <= max);

/** Reports whether all parts of a name are within their limits. */
export const isName = (name: StatefulName): boolean =>
  isText(name.app, NAME_BYTES_MAX) && isText(name.class, NAME_BYTES_MAX) &&
  isText(name.id, STATEFUL_ID_BYTES_MAX);

/** Checks the limits of a name. @throws HomeError `limit_stateful` */
export function checkName(name: StatefulName): void {
  if (isName(name)) return;
  const shown = JSON.stringify(name.id.slice(0, 2 * STATEFUL_ID_BYTES_MAX));
  throw new HomeError(
    "limit_stateful",
    `cannot address the stateful session ${shown} of ${name.class}: an id has 1 to ${STATEFUL_ID_BYTES_MAX} bytes of UTF-8`,
  );
}

/** Key that was asked for last: each thing that is done for a session looks it up again. */
const last: { name: StatefulName | null; key: Key } = { name: null, key: packKey([""]) };

/** Returns a name as one text: a key of maps, and of rows under a space. */
export function keyOf(space: string, name: StatefulName): Key {
  if (space === "" && name === last.name) return last.key;
  const key = packKey([space, name.app, name.class, name.id]);
  if (space === "") [last.name, last.key] = [name, key];
  return key;
}

/** Returns the name in a row's key. */
export function sessionNameOf(key: Key): StatefulName {
  const [, app, className, id] = unpackKey(key);
  return { app: String(app), class: String(className), id: String(id) };
}

/** Returns a name as people read it. */
export const shownName = ({ app, class: className, id }: StatefulName): string => `${app}/${className}/${id}`;

/** Birth of a stateful session: the site, and the configuration of births, under which it was made. */
export interface Birth {
  readonly site: SiteId;
  readonly number: number;
}

const RANDOM_TEXT = /^[0-9a-f]{32}$/;

/** Returns the id of a session that is born. @param random 16 bytes. */
export function birthId({ site, number }: Birth, random: Uint8Array): string {
  const text = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${site}.${number.toString(36)}.${text}`;
}

/** Returns the birth that an id tells of; null where it is a name that somebody gave. */
export function birthOf(id: string): Birth | null {
  const parts = id.split(".");
  const random = parts.pop() ?? "", digits = parts.pop() ?? "";
  const site = parts.join(".");
  if (site === "" || !RANDOM_TEXT.test(random) || !/^[0-9a-z]{1,8}$/.test(digits)) return null;
  const number = parseInt(digits, 36);
  return number > 0 && number.toString(36) === digits ? { site, number } : null;
}
