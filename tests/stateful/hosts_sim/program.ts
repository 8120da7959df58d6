/**
 * What the stateful session of these runs does: it counts, draws dice, tells its peers how far it is, and writes that
 * down now and then.
 */

export interface Entry {
  readonly kind: "attach" | "message" | "detach" | "request" | "rejected";
  /** The peer's id, or the request's. */
  readonly from: string;
  /** Of a message, as its sender counts them; of what was rejected 0: the log does not say. */
  readonly sequence: number;
  /** Drawn when it was handled: nobody can guess it again. */
  readonly draw: number;
  /** Makes it as long as messages are in this run. */
  readonly pad: string;
}

/** Something a peer is told, or a request is answered. */
export interface Output {
  readonly to: string;
  readonly sequence: number;
  readonly text: string;
}

/** Something that is written down, under its number. */
export interface Write {
  readonly effect: number;
  readonly text: string;
}

export interface State {
  readonly entries: number;
  readonly digest: string;
  /** By peer that is attached. */
  readonly received: Readonly<Record<string, number>>;
  readonly sent: Readonly<Record<string, number>>;
  /** Nobody has said to have these. */
  readonly kept: readonly Output[];
  readonly writes: number;
  /** Not known to be done. */
  readonly open: readonly Write[];
}

export const BLANK: State = {
  ...{ entries: 0, digest: "0", received: {}, sent: {}, kept: [], writes: 0, open: [] },
};
/** Every so many entries all peers are told; and where a message or a request is one of the others, it is written down. */
export const TOLD_EVERY = 3;
export const WRITTEN_EVERY = 5;

const utf8 = new TextEncoder(), text = new TextDecoder();
/** One after the other, as they stand in a log. */
export const encodeEntry = (entry: Entry): Uint8Array => utf8.encode(`${JSON.stringify(entry)}\n`);
export const decodeEntries = (bytes: Uint8Array): Entry[] =>
  text.decode(bytes).split("\n").slice(0, -1).map((line) => JSON.parse(line));
export const encodeState = (state: State, more = 0): Uint8Array =>
  utf8.encode(JSON.stringify(state) + " ".repeat(more));
export const decodeState = (bytes: Uint8Array): State => JSON.parse(text.decode(bytes));

/** FNV-1a, 64 bits in two halves. */
export function digestOf(text: string): string {
  let a = 0x811c9dc5, b = 0x1b873593;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193) >>> 0;
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) >>> 0;
  }
  return a.toString(16) + b.toString(16);
}

/** What comes of an entry, told from those before. */
export const digestAfter = (before: string, { pad, ...entry }: Entry): string =>
  digestOf(`${before} ${JSON.stringify(entry)} ${pad.length}`);

export interface Applied {
  readonly state: State;
  readonly outputs: readonly Output[];
  readonly writes: readonly Write[];
}

export function apply(before: State, entry: Entry): Applied {
  const { kind, from } = entry;
  const entries = before.entries + 1, digest = digestAfter(before.digest, entry);
  const received = { ...before.received }, sent = { ...before.sent };
  let kept = before.kept;
  if (kind === "attach") received[from] = sent[from] = 0;
  if (kind === "message" || kind === "rejected") received[from] = (received[from] ?? 0) + 1;
  if (kind === "detach") {
    delete received[from];
    delete sent[from];
    kept = kept.filter(({ to }) => to !== from);
  }
  const said = `${entries} ${digest}`;
  const told = kind === "rejected"
    ? []
    : entries % TOLD_EVERY === 0
    ? Object.keys(sent)
    : kind === "message"
    ? [from]
    : [];
  const outputs = told.map((to) => ({ to, sequence: sent[to] = (sent[to] ?? 0) + 1, text: said }));
  if (kind === "request") outputs.push({ to: from, sequence: 1, text: said });
  const isWritten = entries % WRITTEN_EVERY === 0 && (kind === "message" || kind === "request");
  const writes = isWritten ? [{ effect: before.writes + 1, text: said }] : [];
  const state = {
    ...{ entries, digest, received, sent, kept: [...kept, ...outputs] },
    writes: before.writes + writes.length,
    open: [...before.open, ...writes],
  };
  return { state, outputs, writes };
}

/** Receivers have all up to an output, and what is written down up to a number is. */
export const acknowledged = (
  state: State,
  { outputs, effects }: { readonly outputs: Readonly<Record<string, number>>; readonly effects: number },
): State => ({
  ...state,
  kept: state.kept.filter(({ to, sequence }) => sequence > (outputs[to] ?? 0)),
  open: state.open.filter(({ effect }) => effect > effects),
});
