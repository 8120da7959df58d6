/**
 * What the stateful sessions of the simulator run: a few lines whose every output depends on all inputs before it.
 *
 * An input is a request and a number that its home has drawn (what a log records of a world that does not repeat
 * itself). The state has all inputs, so that a last request can tell what a session believes to have been asked.
 */
import type { StatefulName } from "../../../functions/sessions/home/mod.ts";

export interface Input {
  readonly request: string;
  readonly drawn: number;
}

/** What one input makes: it goes to whoever asked, to whoever listens, and as an effect to a store. */
export interface Output {
  /** Counts the inputs. */
  readonly n: number;
  readonly request: string;
  readonly drawn: number;
  readonly sum: number;
}

export interface State {
  readonly inputs: readonly Input[];
  readonly sum: number;
}

const utf8 = new TextEncoder(), text = new TextDecoder();
export const encode = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value));
// deno-lint-ignore no-explicit-any -- read back by who wrote it, in one process
export const decode = (bytes: Uint8Array): any => JSON.parse(text.decode(bytes));

export const BLANK: State = { inputs: [], sum: 0 };
export const keyOf = ({ app, class: className, id }: StatefulName): string => `${app}/${className}/${id}`;

/** 32-bit FNV-1a over the sum before and the input. */
export function step(state: State, input: Input): { readonly state: State; readonly output: Output } {
  let sum = 0x811c9dc5;
  for (const byte of encode([state.sum, input.request, input.drawn])) {
    sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  }
  const inputs = [...state.inputs, input];
  return { state: { inputs, sum }, output: { n: inputs.length, ...input, sum } };
}
