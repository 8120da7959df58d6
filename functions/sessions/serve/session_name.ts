/** Names of stateful sessions, as maps have them, and messages. */
import type { StatefulName } from "../home/mod.ts";

/** Returns a name as one text, for maps: also one that no session can have (log/name.ts). */
export const mapKey = ({ app, class: className, id }: StatefulName): string =>
  JSON.stringify([app, className, id]);

/** Returns the name of a stateful session for messages. */
export const shownSession = (name: StatefulName): string =>
  `${name.class} ${JSON.stringify(name.id)} of ${name.app}`;
