/**
 * What the checker makes of clients that come and go.
 *
 * OC8  Whoever was let in is greeted once; what it said is handled once, in its order, or given up once; when it goes
 *      that is handled once, or given up.
 * OC9  Who is here gets all that is told to those who are, in order, and nobody else gets it.
 */
import type { Link } from "./robot.ts";
import type { Seen } from "./seen.ts";
import type { Sitter } from "./sitters.ts";

const text = new TextDecoder();

export function checkSitters(seen: Seen, chain: readonly Link[], wrong: string[]): void {
  for (const sitter of seen.sitters) {
    checkSaid(seen, sitter, chain, wrong);
    checkHeard(seen, sitter, chain, wrong);
  }
  const last = [...chain].reverse().find(({ trace }) => trace.some(([op]) => op === "to"));
  const gone = seen.sitters.filter(({ stage }) => stage === "gone").map(({ id }) => id);
  for (const id of last === undefined ? [] : toOf(last).filter((id) => gone.includes(id))) {
    const isFarewell = last?.trace.some(([op, of]) => op === "close" && of === id);
    if (!isFarewell) wrong.push(`OC9: ${id} has gone, and output ${last?.n} is for it`);
  }
}

const toOf = ({ trace }: Link): string[] => trace.flatMap(([op, ...to]) => op === "to" ? to.map(String) : []);

/** OC8 */
function checkSaid({ rejections }: Seen, sitter: Sitter, chain: readonly Link[], wrong: string[]): void {
  const { id, stage, spoken } = sitter;
  const acts = (op: string) =>
    chain.flatMap(({ trace }) => trace.filter(([each, of]) => each === op && of === id).map(([, , k]) => k));
  const givenUp = (kind: string) =>
    rejections.filter(({ subject, attempt }) => attempt === 0 && subject?.kind === kind && subject.id === id)
      .length;
  const said = acts("said").map(Number);
  if (stage === "coming") return void wrong.push(`OC8: ${id} was neither let in nor refused`);
  if (acts("open").length !== (stage === "refused" ? 0 : 1)) {
    wrong.push(`OC8: ${id} is ${stage}, and was greeted ${acts("open").length} times`);
  }
  if (stage === "refused") {
    if (said.length > 0) wrong.push(`OC8: ${id} was refused and heard`);
    return;
  }
  if (said.some((k, i) => k <= (said[i - 1] ?? 0))) wrong.push(`OC8: ${id} said ${said}`);
  if (said.length + givenUp("message") !== spoken) {
    wrong.push(`OC8: ${id} said ${spoken}, ${said.length} were handled and ${givenUp("message")} given up`);
  }
  const left = acts("close").length + givenUp("detach");
  if (left !== (stage === "gone" ? 1 : 0)) wrong.push(`OC8: ${id} is ${stage}, and went ${left} times`);
  if (sitter.isLeaving !== (stage === "gone")) wrong.push(`OC8: ${id} wanted to leave, and is ${stage}`);
}

/** OC9 */
function checkHeard(
  { received }: Seen,
  { id, stage }: Sitter,
  chain: readonly Link[],
  wrong: string[],
): void {
  const heard = new Map<number, number>();
  for (const { to, sequence, bytes } of received) {
    if (to === id) heard.set(sequence, (JSON.parse(text.decode(bytes.subarray(1))) as Link).n);
  }
  const wanted = chain.filter((link) => toOf(link).includes(id)).map(({ n }) => n);
  const got = [...heard].sort(([a], [b]) => a - b).map(([, n]) => n);
  const hasHole = [...heard.keys()].some((sequence) => sequence > heard.size);
  // What was on its way to one that has gone is let go.
  const isAll = stage === "gone" ? got.length <= wanted.length : got.length === wanted.length;
  if (hasHole || !isAll || got.some((n, i) => n !== wanted[i])) {
    wrong.push(`OC9: ${id} (${stage}) heard ${got}, and was to hear ${wanted}`);
  }
}
