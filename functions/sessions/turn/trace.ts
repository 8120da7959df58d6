/**
 * Trace of what a program asked for and gave out in a turn, and from where in the app: for a report of a session that
 * is parked. Contents are told by their size, since they may be somebody's secret, except in a developer's own check
 * (`shows`).
 */

/** One thing that a program did. */
export interface Act {
  /** Text of the act, for people. */
  readonly what: string;
  /** Stack of the act: the app's own frames, innermost first. */
  readonly at: string;
}

/** Number of acts that are kept. */
const ACTS_MAX = 50;
const FRAMES_MAX = 3;
/** Begin of an app's addresses in stacks, as isolates load it (runtime/isolate/inside/stateful_imports.ts). */
const APP = "app:///";
/** Pattern of the executor's own frames, where no isolate has cut them. */
const OWN = /(?<!\/tests)\/functions\/(?:sessions\/turn|class|calls|tracked)\b/;

/** Collector of acts, where tracing is switched on. */
export class Trace {
  readonly acts: Act[] = [];
  /** True where contents are told too. */
  readonly shows: boolean;

  constructor(shows = false) {
    this.shows = shows;
  }

  clear(): void {
    this.acts.length = 0;
  }

  /**
   * Adds an act.
   *
   * @param otherwise returns where the act comes from, if no code of the app runs.
   * @param contents returns the act with its contents.
   */
  add(what: string, otherwise: () => string = () => "", contents?: () => string): void {
    if (this.acts.length >= ACTS_MAX) return;
    const told = this.shows && contents !== undefined ? contents() : what;
    this.acts.push({ what: told, at: appFrames() || otherwise() });
  }
}

/** Returns the app's stack frames at this moment. */
export function appFrames(): string {
  const lines = String(new Error().stack).split("\n").slice(1).map((line) => line.trim());
  const app = lines.filter((line) => line.includes(APP));
  const frames = app.length > 0 ? app : lines.filter((line) => line.startsWith("at ") && !OWN.test(line));
  return frames.slice(0, FRAMES_MAX).join("\n");
}
