/**
 * Messages of one run of a stateful session to queues, on their way to be stored.
 *
 * WM1  A message that all owners of the log have is stored, or refused for good and logged, before anything of its
 *      commit or of a later one leaves (releases.ts RL2). Where its queue is full, or owners are missing, it is tried
 *      again for as long as the run lasts, and whoever opens the log next goes on with that: the session waits, and so
 *      do its callers.
 * WM2  The name of a message is its effect and its place there: a message that is sent again is the same message.
 */
import type { PeerClock } from "../attach/mod.ts";
import type { Effect } from "../turn/mod.ts";
import { codeOf } from "../../vocabulary/errors.ts";
import { pauseBy } from "./clock.ts";
import type { NamedSend, RunQueues } from "./ports.ts";

/** The run's part that sends need. */
export interface SendingRun {
  readonly queues: RunQueues;
  readonly clock: PeerClock;
  readonly listener: { log(level: string, text: string): void };
  readonly isOver: boolean;
}

/** Messages that wait to be stored. */
export interface Unsent {
  readonly messages: number;
  /** Reason why the first of them is not stored. */
  readonly why: string;
}

/** Milliseconds before messages are tried again, twice as long each time: a queue may be full for hours. */
const AGAIN_MS = 500;
const AGAIN_MS_MAX = 10_000;
/** Codes after which no later attempt is better. */
const FOR_GOOD: ReadonlySet<string> = new Set(["queue_unknown", "message_invalid", "limit_message"]);

/** See the file's header. */
export class RunSends {
  readonly #run: SendingRun;
  #unsent: Unsent | null = null;

  constructor(run: SendingRun) {
    this.#run = run;
  }

  /** Messages that were tried, and wait to be tried again; null: none. */
  get unsent(): Unsent | null {
    return this.#unsent;
  }

  /** Stores what effects send. Resolves when all of it is stored or refused for good, or the run is over (WM1). */
  async store(effects: readonly Effect[]): Promise<void> {
    const { clock, listener } = this.#run;
    let left = effects.flatMap(({ effect, atMs, sends = [] }): NamedSend[] =>
      sends.map((send, place) => ({ effect, place, atMs, send })) // WM2
    );
    const told = new Set<string>();
    for (let pauseMs = AGAIN_MS; left.length > 0; pauseMs = Math.min(2 * pauseMs, AGAIN_MS_MAX)) {
      if (this.#run.isOver) break;
      const refused = (await Promise.all(left.map((named) => this.#tried(named)))).filter((one) =>
        one !== null
      );
      left = refused.map(({ named }) => named);
      const [first] = refused;
      if (first === undefined || this.#run.isOver) break;
      const { code, why } = first;
      this.#unsent = { messages: left.length, why };
      if (!told.has(code)) {
        listener.log("warn", `${counted(left.length)} of a stateful session to queues wait: ${why}`);
      }
      told.add(code);
      await pauseBy(clock, pauseMs);
    }
    this.#unsent = null;
  }

  /** Tries to store a message; null: it is done with. */
  async #tried(named: NamedSend): Promise<Refused | null> {
    const { queues, listener } = this.#run;
    try {
      await queues.store(named);
      return null;
    } catch (error) {
      const code = codeOf(error) ?? "", why = error instanceof Error ? error.message : String(error);
      if (!FOR_GOOD.has(code)) return { named, code, why };
      listener.log("error", `a message of a stateful session to a queue is refused, and left out: ${why}`);
      return null;
    }
  }
}

/** A message that was not stored. */
interface Refused {
  readonly named: NamedSend;
  readonly code: string;
  readonly why: string;
}

const counted = (messages: number): string => messages === 1 ? "1 message" : `${messages} messages`;
