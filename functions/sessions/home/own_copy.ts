/** Copy of a whole log, as the home that is here has it on its own disk: for hosts that are to hold it. */
import type { StatefulName } from "../log/api.ts";
import { lastOf, type LogCopy, type LogPiece } from "../log/asks.ts";
import type { LiveHomePorts } from "./live_home_ports.ts";

type OwnLogs = Pick<LiveHomePorts<unknown>, "baseAt" | "base" | "parts" | "read" | "state">;

/** Returns a whole log; null where it has another base by now. */
export async function ownCopy(
  logs: OwnLogs,
  name: StatefulName,
): Promise<Pick<LogCopy, "base" | "parts" | "pieces"> | null> {
  const at = logs.baseAt(name), base = await logs.base(name);
  if ((base?.at ?? 0) !== at) return null;
  const parts: Uint8Array[] = [], pieces: LogPiece[] = [];
  while (base !== null && parts.length < base.state.count) {
    const more = await logs.parts(name, at, parts.length);
    if (more === null || more.length === 0) return null;
    parts.push(...more);
  }
  const last = lastOf(logs.state(name));
  for (let after = at; after < last;) {
    const more = await logs.read(name, after);
    const end = more.at(-1);
    if (end === undefined) return null;
    pieces.push(...more);
    after = end.first + end.count - 1;
  }
  return logs.baseAt(name) === at ? { base, parts, pieces } : null;
}
