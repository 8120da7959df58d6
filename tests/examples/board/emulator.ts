/**
 * The client emulator: many clients at once, each with a time to think after every request.
 *
 * Life: `run` starts all clients, lets them go on until the time is over, and resolves when each has finished its
 * last request.
 */
import { type ClientOptions, type Edge, EmulatedClient, type Sample } from "./client.ts";
import { History } from "./history.ts";
import { Random } from "./random.ts";
import type { Transitions } from "./transitions.ts";
import type { Words } from "./words.ts";

export interface EmulatorOptions {
  readonly edges: readonly Edge[];
  readonly clients: number;
  readonly seed: number;
  readonly durationMs: number;
  /** A client stops after so many steps, if the time is not over before. */
  readonly stepsMax?: number;
  /** Mean of the time between an answer and the next request (RUBBoS: 7 s). */
  readonly thinkMs: number;
  /** Users that were loaded: clients log in as them; every tenth is an author. */
  readonly users: number;
  readonly reader: Transitions;
  readonly author: Transitions;
  readonly words: Words;
  readonly commentBytes: number;
  readonly attachmentBytes: number;
  readonly moveShare: number;
  readonly freshShare: number;
}

/** RUBBoS: one client in ten is an author. */
const AUTHOR_EVERY = 10;
/** A draw of an exponential has no bound; nobody thinks for longer than this many means. */
const THINK_MEANS_MAX = 10;

/** What the clients recorded, and how their requests went. */
export interface Emulated {
  readonly history: History;
  readonly samples: readonly Sample[];
  readonly tookMs: number;
}

/** Runs the clients. */
export async function run(options: EmulatorOptions): Promise<Emulated> {
  const history = new History();
  const samples: Sample[] = [];
  const random = new Random(options.seed);
  const start = performance.now();
  const untilMs = start + options.durationMs;
  const clients = Array.from({ length: options.clients }, (_, index) => {
    const own = random.fork(index);
    const client = new EmulatedClient(
      options.edges,
      history,
      clientOptions(options, index, own),
      own.fork(0),
      (sample) => samples.push(sample),
    );
    return live(client, options, untilMs, own.fork(1));
  });
  await Promise.all(clients);
  return { history, samples, tookMs: performance.now() - start };
}

function clientOptions(options: EmulatorOptions, index: number, random: Random): ClientOptions {
  const isAuthor = index % AUTHOR_EVERY === 0;
  const tens = Math.max(1, Math.floor(options.users / AUTHOR_EVERY));
  const user = random.below(tens) * AUTHOR_EVERY + (isAuthor ? 0 : 1 + random.below(AUTHOR_EVERY - 1));
  return {
    transitions: isAuthor ? options.author : options.reader,
    habits: {
      user,
      words: options.words,
      commentBytes: options.commentBytes,
      attachmentBytes: options.attachmentBytes,
    },
    moveShare: options.moveShare,
    freshShare: options.freshShare,
  };
}

async function live(
  client: EmulatedClient,
  options: EmulatorOptions,
  untilMs: number,
  random: Random,
): Promise<void> {
  const { thinkMs, stepsMax = Infinity } = options;
  const think = () => Math.min(random.exponential(thinkMs), thinkMs * THINK_MEANS_MAX);
  // Not all at the same moment.
  let waitMs = think();
  for (let step = 0; step < stepsMax && performance.now() + waitMs < untilMs; step++) {
    await pause(waitMs);
    waitMs = (await client.step()).waitMs || think();
  }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
