/**
 * Output message consistency, and effects once: what anybody received, over all homes that there were, is what one
 * uninterrupted run over the committed inputs gives out. It shares nothing with the code under test, nor with the
 * program that runs: it has its own arithmetic.
 *
 * - contradiction: two outputs of one session with one number that differ.
 * - history: an output that the inputs, as the session has them in the end, do not give.
 * - loss: a request that was answered is not among the inputs.
 * - once: a request is among the inputs twice.
 */
import type { Heard } from "./host.ts";

export interface Violation {
  readonly checker: string;
  readonly message: string;
}

/** What a session believes in the end to have been asked. */
export interface Final {
  readonly name: string;
  readonly inputs: readonly { readonly request: string; readonly drawn: number }[];
  /** So much had been heard when it said so. */
  readonly heard: number;
}

export interface History {
  readonly heard: readonly (Heard & { readonly key: string })[];
  /** Requests that were answered, by session. */
  readonly answered: ReadonlyMap<string, ReadonlySet<string>>;
  readonly finals: readonly Final[];
}

const PRIME = 0x01000193n, BASIS = 0x811c9dc5n, MASK = 0xffffffffn;

function sumOf(before: bigint, request: string, drawn: number): bigint {
  const text = `[${before},${JSON.stringify(request)},${drawn}]`;
  let sum = BASIS;
  for (const byte of new TextEncoder().encode(text)) sum = ((sum ^ BigInt(byte)) * PRIME) & MASK;
  return sum;
}

/** All that is wrong. */
export function check({ heard, answered, finals }: History): Violation[] {
  const found: Violation[] = [];
  const say = (checker: string, message: string) => found.push({ checker, message });
  const firsts = new Map<string, string>();
  for (const { key, output, how, site, epoch } of heard) {
    const at = `${key} ${output.n}`;
    const what = `${output.request} ${output.drawn} ${output.sum}`;
    const first = firsts.get(at);
    if (first === undefined) firsts.set(at, what);
    else if (first !== what) {
      say("contradiction", `${how} ${at} of ${site} in epoch ${epoch} is ${what}, and was ${first}`);
    }
  }
  for (const { name, inputs, heard: before } of finals) {
    const sums: bigint[] = [];
    for (const { request, drawn } of inputs) sums.push(sumOf(sums.at(-1) ?? 0n, request, drawn));
    for (const { key, output, how } of heard.slice(0, before)) {
      if (key !== name) continue;
      const input = inputs[output.n - 1];
      const isOfIt = input?.request === output.request && input.drawn === output.drawn &&
        sums[output.n - 1] === BigInt(output.sum);
      if (!isOfIt) {
        say("history", `${how} ${output.n} of ${name} for ${output.request} is of no such history`);
      }
    }
    const asked = new Set<string>();
    for (const { request } of inputs) {
      if (asked.has(request)) say("once", `${request} was run twice by ${name}`);
      asked.add(request);
    }
    for (const request of answered.get(name) ?? []) {
      if (!asked.has(request)) say("loss", `${request} was answered by ${name}, which does not know it`);
    }
  }
  return found;
}
