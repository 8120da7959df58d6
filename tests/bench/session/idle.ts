/** In a process of its own: bytes of heap of a stateful session's state, with next to nothing in it. */
import { list, map, SessionState } from "../../../functions/tracked/mod.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

class Small {
  stamps = map<string, number>();
  lines = list<{ article: string; count: number }>();
  owner = "";
  visits = 0;
}

function used(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}

/** As a site has them that runs again after a while: written, and loaded. */
function loaded(n: number): [Small, SessionState] {
  const written = new Small();
  written.stamps.set("espresso", n);
  written.lines.push({ article: "beans", count: 1 });
  written.owner = `owner ${n}`;
  const small = new Small();
  const state = new SessionState(small);
  state.load(new SessionState(written).checkpoint());
  small.stamps.get("espresso");
  return [small, state];
}

const count = Number(freshInput());
const kept: unknown[] = [loaded(0)];
const before = used();
for (let n = 0; n < count; n++) kept.push(loaded(n));
freshAnswer((used() - before) / count);
if (kept.length !== count + 1) throw new Error("they are not all there");
