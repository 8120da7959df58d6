/**
 * Runs an app's `queue` handler with messages of one queue at this site.
 *
 * QR1 What the handler says of a message counts when what the run had written or read by then is on disk here; that it
 *     returned says that all others are done.
 * QR2 What a run that failed said of a message stands; all others come again. One that no isolate was given was no
 *     attempt.
 */
import type { LiveVersion } from "../deploy/app_table.ts";
import type { BatchMessage, MessageVerdict } from "../isolate/queue_frames.ts";
import { StoreUnavailable, type TokenState } from "../../store/api/api.ts";
import type { Prepared } from "./app_runner.ts";
import { OwnRun, type OwnRunServices } from "./own_run.ts";

/** Outcome of one message. */
export type MessageOutcome =
  | MessageVerdict
  /** The message was not tried. */
  | { readonly kind: "release" }
  | { readonly kind: "failed"; readonly error: string };

/** Messages that are to be handled. */
export interface QueueRun {
  readonly queue: string;
  readonly messages: readonly BatchMessage[];
  /** Takes what becomes of the message in a place, before the run is over. */
  said(place: number, outcome: MessageOutcome): void;
  /** What the run's session has seen as it begins; null: nothing. */
  readonly seen?: TokenState | null;
}

/** Runs the handler once. @returns what becomes of each message. */
export async function runQueue(
  services: OwnRunServices,
  prepared: Prepared,
  version: LiveVersion,
  { queue, messages, said, seen = null }: QueueRun,
): Promise<readonly MessageOutcome[]> {
  let run: OwnRun;
  try {
    run = await OwnRun.begin(services, prepared, version, { seen });
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return messages.map(() => ({ kind: "release" }));
  }
  const outcomes: (MessageOutcome | undefined)[] = messages.map(() => undefined);
  const heard = new Set<number>(), gates: Promise<void>[] = [];
  const batch = {
    ...{ queue, messages },
    said: (place: number, verdict: MessageVerdict) => {
      if (heard.has(place)) return;
      heard.add(place);
      // QR1
      gates.push(
        run.gate().then(() => {
          outcomes[place] = verdict;
          said(place, verdict);
        }, (error) => void (outcomes[place] = { kind: "failed", error: String(error) })),
      );
    },
  };
  const failure = await run.end({ batch }, "pubsub");
  await Promise.all(gates);
  // QR2
  const other: MessageOutcome = failure === null
    ? { kind: "ack" }
    : failure.neverBegan
    ? { kind: "release" }
    : { kind: "failed", error: failure.message };
  return outcomes.map((outcome) => outcome ?? other);
}
