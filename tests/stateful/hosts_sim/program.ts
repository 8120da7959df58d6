/** What the stateful session of these runs does: it counts, draws dice, and tells its peers how far it is. */

export interface Entry {
  readonly kind: "attach" | "message" | "request";
  /** The peer's id, or the request's. */
  readonly from: string;
  /** Of a message, as its peer counts them. */
  readonly sequence: number;
  /** Drawn when it was handled: nobody can guess it again. */
  readonly draw: number;
}

/** Something a peer is told. */
export interface Output {
  readonly to: string;
  readonly sequence: number;
  readonly text: string;
  /** The entry that made it. */
  readonly entry: number;
}

export interface State {
  readonly entries: number;
  readonly digest: string;
  readonly received: Readonly<Record<string, number>>;
  readonly sent: Readonly<Record<string, number>>;
  /** Nobody has said to have these. */
  readonly kept: readonly Output[];
}

export const BLANK: State = { entries: 0, digest: "0", received: {}, sent: {}, kept: [] };
/** Every so many entries all peers are told. */
export const TOLD_EVERY = 3;

export const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
// deno-lint-ignore no-explicit-any -- a test's own bytes
export const decode = (bytes: Uint8Array): any => JSON.parse(new TextDecoder().decode(bytes));

/** FNV-1a, 64 bits in two halves. */
export function digestOf(text: string): string {
  let a = 0x811c9dc5, b = 0x1b873593;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193) >>> 0;
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) >>> 0;
  }
  return a.toString(16) + b.toString(16);
}

export interface Applied {
  readonly state: State;
  readonly outputs: readonly Output[];
  /** What a request is answered. */
  readonly answer: string;
}

export function apply(before: State, entry: Entry): Applied {
  const entries = before.entries + 1;
  const digest = digestOf(before.digest + JSON.stringify(entry));
  const received = { ...before.received }, sent = { ...before.sent };
  if (entry.kind === "attach") received[entry.from] ??= sent[entry.from] = 0;
  if (entry.kind === "message") received[entry.from] = entry.sequence;
  const text = `${entries} ${digest}`;
  const told = entries % TOLD_EVERY === 0 ? Object.keys(sent) : entry.kind === "message" ? [entry.from] : [];
  const outputs = told.map((to) => ({ to, sequence: sent[to] = (sent[to] ?? 0) + 1, text, entry: entries }));
  return {
    state: { entries, digest, received, sent, kept: [...before.kept, ...outputs] },
    outputs,
    answer: text,
  };
}

/** A peer has all up to an output. */
export const acknowledged = (state: State, peer: string, through: number): State => ({
  ...state,
  kept: state.kept.filter(({ to, sequence }) => to !== peer || sequence > through),
});
