/**
 * What a program asked for and gave out in a turn, and from where in the app: for a report of a session that is parked.
 * Contents are told by their size, since they may be somebody's secret; but for a developer's own check (`shows`).
 */

/** One thing that a program did. */
export interface Act {
  /** As people say it. */
  readonly what: string;
  /** Where: the app's own frames, innermost first. */
  readonly at: string;
}

/** What is kept of a turn. */
const ACTS_MAX = 50;
const FRAMES_MAX = 3;
/** An app's code, as isolates load it (runtime/isolate/inside/stateful_imports.ts). */
const APP = "app:///";
/** The executor's own frames, where no isolate has cut them. */
const OWN = /(?<!\/tests)\/functions\/(?:sessions\/turn|class|calls|tracked)\b/;

/** Collects them, where it is switched on. */
export class Trace {
  readonly acts: Act[] = [];
  /** Contents are told too. */
  readonly shows: boolean;

  constructor(shows = false) {
    this.shows = shows;
  }

  clear(): void {
    this.acts.length = 0;
  }

  /**
   * @param otherwise where it comes from, if no code of the app runs.
   * @param contents what it is, with its contents.
   */
  add(what: string, otherwise: () => string = () => "", contents?: () => string): void {
    if (this.acts.length >= ACTS_MAX) return;
    const told = this.shows && contents !== undefined ? contents() : what;
    this.acts.push({ what: told, at: appFrames() || otherwise() });
  }
}

/** Where the app is now. */
export function appFrames(): string {
  const lines = String(new Error().stack).split("\n").slice(1).map((line) => line.trim());
  const app = lines.filter((line) => line.includes(APP));
  const frames = app.length > 0 ? app : lines.filter((line) => line.startsWith("at ") && !OWN.test(line));
  return frames.slice(0, FRAMES_MAX).join("\n");
}
