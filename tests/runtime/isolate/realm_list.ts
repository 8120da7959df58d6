/**
 * The list of what a stateful session's code can reach (session_realm.txt), read. A line is an owner and its members, each
 * with what it is before its name.
 */

/** What a member is: see session_realm.txt. */
export const KINDS = { "": "pure", "~": "recorded", "=": "pinned", "-": "absent" } as const;
export type Kind = (typeof KINDS)[keyof typeof KINDS];

/** Owners of globals have no name. */
const GLOBALS = "globalThis";

/** The kind of each path. @throws Error for what is no line of it. */
export function parseRealmList(text: string): ReadonlyMap<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const line of text.split("\n")) {
    if (line.startsWith("#") || line === "") continue;
    const [, owner, members] = /^(\S+): (.+)$/.exec(line) ?? [];
    if (owner === undefined || members === undefined) throw new Error(`no line of the list: ${line}`);
    for (const member of members.split(" ")) {
      const [, mark = "", name = ""] = /^([~=-]?)(.+)$/.exec(member) ?? [];
      kinds.set(owner === GLOBALS ? name : `${owner}.${name}`, KINDS[mark as keyof typeof KINDS]);
    }
  }
  return kinds;
}
