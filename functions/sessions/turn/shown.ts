/**
 * Texts of what a stateful session asked for and gave out, for people: for a check on a developer's own machine, which
 * shows contents. The same thing has the same text, whether a replay tells it or the site that saw it leave.
 */
import { inspect } from "node:util";
import { decodeAnswer } from "../../calls/call.ts";
import { decodeValue } from "../../values/value.ts";
import type { Call, EffectMutation, EffectSend, Output, TimerChange } from "./commit.ts";

const CHARS_MAX = 300;
const VALUE_BYTES_MAX = 1024 * 1024;

/** Returns the text of an answer to a request, or of a message to a peer. */
export const shownOutput = ({ to, sequence, bytes }: Output): string =>
  `output ${sequence} to ${to}: ${shortened(answerText(bytes) ?? peerText(bytes))}`;

/** Returns the text of one write. */
export const shownWrite = (mutation: EffectMutation): string =>
  mutation.kind === "delete"
    ? `deletes ${JSON.stringify(mutation.key)}`
    : shortened(`writes ${JSON.stringify(mutation.key)} (${mutation.kind}): ${valueText(mutation.value)}`);

/** Returns the text of one message to a queue. */
export const shownSend = ({ queue, id = "", delayMs = 0, ttlMs = 0, body }: EffectSend): string =>
  shortened(
    `sends to the queue ${queue}${id === "" ? "" : `, as ${JSON.stringify(id)}`}` +
      `${delayMs === 0 ? "" : `, in ${delayMs} ms`}${ttlMs === 0 ? "" : `, for ${ttlMs} ms`}: ${
        valueText(body)
      }`,
  );

/** Returns the text of a call of the store, of a server, or of another session. */
export const shownCall = ({ call, kind, bytes }: Pick<Call, "call" | "kind" | "bytes">): string =>
  `call ${call} (${kind}): ${shortened(JSON.stringify(textOf(bytes)))}`;

/** Returns the text of a named timer that was set or cleared. */
export const shownTimer = ({ name, dueMs }: TimerChange): string =>
  dueMs === null
    ? `clears the timer ${JSON.stringify(name)}`
    : `sets the timer ${JSON.stringify(name)} to ${dueMs}`;

function answerText(bytes: Uint8Array): string | null {
  try {
    const answer = decodeAnswer(bytes);
    if (answer.kind === "value") return `answers ${valueText(answer.value)}`;
    if (answer.kind === "error") return `fails with ${answer.code}: ${answer.message}`;
    return `answers ${answer.status} ${answer.body === null ? "" : JSON.stringify(textOf(answer.body))}`;
  } catch {
    return null;
  }
}

/** Returns the text of an output to a peer. Its first byte: 0 text, 1 bytes, 2 the peer is sent away (commit.ts). */
const peerText = (bytes: Uint8Array): string =>
  `${["sends", "sends the bytes", "closes"][bytes[0] ?? 0] ?? "sends"} ${
    JSON.stringify(textOf(bytes.subarray(1)))
  }`;

function valueText(bytes: Uint8Array): string {
  try {
    return inspect(decodeValue(bytes, VALUE_BYTES_MAX), { depth: 4, breakLength: Infinity, compact: true });
  } catch {
    return `${bytes.length} bytes`;
  }
}

/** Decodes the beginning of bytes that may be no text. */
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes.subarray(0, CHARS_MAX * 2));

const shortened = (text: string): string =>
  text.length <= CHARS_MAX ? text : `${text.slice(0, CHARS_MAX).toWellFormed()}… (${text.length} characters)`;
