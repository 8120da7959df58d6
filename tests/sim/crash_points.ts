/**
 * Where crashes can hit: at every place where a site's code yields to its host or something of it leaves.
 *
 * A *crossing* is one time that a process passes a *point*: it asks its disk for something or hears from it, sends
 * a message or has heard one, waits a turn, has a timer come due, lets a token go. Between two crossings nothing
 * that a process does can be seen from outside, so that these are all the crashes there are.
 *
 * X1  A crash is at the crossing itself: nothing that its process would do after it has any effect.
 * X2  Crossings are numbered as they happen; up to a crash at crossing n, a run is the run without it.
 */
import { decodeMessage } from "../../store/wire/message.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { ABOVE_TAG } from "./network.ts";

/** Messages by kind; kinds that are not in it crash nobody by name, but count as crossings. */
const KINDS = [
  ...["hello", "welcome", "push", "feed", "fetch", "fetched", "drop", "number", "ask", "carry"],
  ...["warm", "footprint"],
];

/** What has nothing to do with messages between sites. */
export const YIELDS: readonly string[] = [
  "commit begins",
  "commit ends",
  "read begins",
  "read ends",
  "turn begins",
  "timer due",
  "token leaves",
];

/** What crashes may wait for. */
export const POINTS: readonly string[] = [
  ...YIELDS,
  ...KINDS.flatMap((kind) => [`${kind} leaves`, `${kind} arrives`]),
];

/** The same where sites have owners. */
export const WARD_POINTS: readonly string[] = ["ward", "warded", "standIn", "stoodIn"]
  .flatMap((kind) => [`${kind} leaves`, `${kind} arrives`]);

/** Any point: with it, `nth` of a wanted crash is the number of a crossing (X2). */
export const ANY_POINT = "any";

/** A crash that is wanted: as a point is passed for the n-th time in the run. */
export interface WantedCrash {
  readonly point: string;
  readonly nth: number;
}

/** One passing of a point. */
export interface Crossing {
  readonly number: number;
  readonly site: SiteId;
  readonly point: string;
}

/** Counts crossings, and says when to crash. */
export class CrashPoints {
  readonly #crash: (site: SiteId, point: string) => void;
  readonly #survey: ((crossing: Crossing) => void) | undefined;
  /** By point: how often it is still to be passed before the site that passes it crashes. */
  readonly #waiting = new Map<string, number[]>();
  #passed = 0;
  #isOver = false;

  constructor(crash: (site: SiteId, point: string) => void, survey?: (crossing: Crossing) => void) {
    this.#crash = crash;
    this.#survey = survey;
  }

  want({ point, nth }: WantedCrash): void {
    this.#waiting.set(point, [...this.#waiting.get(point) ?? [], nth]);
  }

  /** No crash from now on. */
  end(): void {
    this.#isOver = true;
  }

  /** Whether it pays to say what is passed. */
  get isListening(): boolean {
    return !this.#isOver && (this.#waiting.size > 0 || this.#survey !== undefined);
  }

  passedMessage(site: SiteId, message: Uint8Array, how: "leaves" | "arrives"): void {
    if (!this.isListening) return;
    const kind = message[0] === ABOVE_TAG ? "request" : decodeMessage(message).kind;
    this.passed(site, `${kind} ${how}`);
  }

  passed(site: SiteId, point: string): void {
    if (!this.isListening) return;
    const number = ++this.#passed;
    this.#survey?.({ number, site, point });
    for (const waited of [point, ANY_POINT]) {
      if (this.#isDue(waited)) return this.#crash(site, point);
    }
  }

  #isDue(point: string): boolean {
    const waiting = this.#waiting.get(point);
    if (waiting === undefined) return false;
    const left = waiting.map((times) => times - 1);
    this.#waiting.set(point, left.filter((times) => times > 0));
    return left.includes(0);
  }
}
