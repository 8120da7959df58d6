/**
 * The checkpoint policy of a session: when it takes a checkpoint, as `static checkpoint` of its class says it.
 *
 * CQ1  Whatever a class says, a log is short: the part of it that is replayed when a handler throws, or at another
 *      home, is bounded by the most that each member of a policy may be.
 */
import { AppError } from "../vocabulary/errors.ts";

/**
 * Policy by which a session takes checkpoints: at the next rest after so many entries of the log (messages, timers and
 * results of calls), so many bytes of it, or so much time spent in handlers, whichever comes first.
 */
export interface CheckpointPolicy {
  /** Number of entries of the log, from 1 to 4,096; 256 where it is left out. */
  readonly messages?: number;
  /** Bytes of the log, from 1 KiB to 1 MiB; 64 KiB where it is left out. */
  readonly bytes?: number;
  /** Milliseconds spent in handlers, from 1 to 500; 100 where it is left out. */
  readonly ms?: number;
}

interface Bound {
  readonly least: number;
  readonly most: number;
  readonly usual: number;
}

/**
 * Bounds of a policy. A checkpoint costs some 20 µs beyond what changed, so one for each message is allowed. The most
 * of `ms` is half of the time that one turn may take: the watch over the isolate takes a replay for one turn. The most
 * of `bytes` is the size at which a session that does not rest takes no more messages (inbox.ts).
 */
const BOUNDS: Readonly<Record<keyof CheckpointPolicy, Bound>> = {
  messages: { least: 1, most: 4_096, usual: 256 },
  bytes: { least: 1_024, most: 1 << 20, usual: 64 << 10 },
  ms: { least: 1, most: 500, usual: 100 },
};

/**
 * Returns the policy of an object's class, within its bounds.
 *
 * @throws AppError `value_invalid` for a member that is no policy.
 */
export function checkpointPolicyOf(object: object | null): Required<CheckpointPolicy> {
  const { checkpoint } = Object(object?.constructor) as { readonly checkpoint?: unknown };
  return boundPolicy(checkpoint);
}

/** Returns a policy within its bounds. @throws AppError `value_invalid` */
export function boundPolicy(given: unknown): Required<CheckpointPolicy> {
  if (given === undefined) return USUAL;
  if (typeof given !== "object" || given === null) throw invalid(String(given));
  const of = Object(given) as Record<string, unknown>;
  for (const name of Object.keys(of)) if (!Object.hasOwn(BOUNDS, name)) throw invalid(`{ ${name}: … }`);
  const bound = (name: keyof CheckpointPolicy): number => {
    const value = of[name], { least, most, usual } = BOUNDS[name];
    if (value === undefined) return usual;
    if (typeof value !== "number" || !(value > 0)) throw invalid(`{ ${name}: ${String(value)} }`);
    return Math.min(most, Math.max(least, Math.ceil(value)));
  };
  return { messages: bound("messages"), bytes: bound("bytes"), ms: bound("ms") };
}

const USUAL = { messages: BOUNDS.messages.usual, bytes: BOUNDS.bytes.usual, ms: BOUNDS.ms.usual };

const invalid = (what: string): AppError =>
  new AppError(
    "value_invalid",
    `static checkpoint is ${what}; it is { messages?, bytes?, ms? }, each a number above 0`,
  );
