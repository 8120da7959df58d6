/**
 * What players of a table of pong were told, held against each other. It knows nothing but that.
 *
 * W1  A player is never told an older frame after a newer one, over one connection.
 * W2  Two who were told a frame of the same number were told the same.
 * W3  Matches, the points of a match, its longest rally, and the moves that count never go back, whoever looks.
 */
interface State {
  readonly frame: number;
  readonly match: number;
  readonly points: readonly [number, number];
  readonly longest: number;
  readonly seen: readonly [number, number];
}

/** See the file's header. */
export class PongWitness {
  readonly findings: string[] = [];
  frames = 0;
  readonly #byFrame = new Map<number, { readonly text: string; readonly state: State }>();
  readonly #newest = new Map<string, number>();

  /** A connection has heard something. */
  hear(connection: string, text: string): void {
    const words = JSON.parse(text) as { readonly kind: string } & State;
    if (words.kind !== "state") return;
    this.frames++;
    const before = this.#newest.get(connection) ?? 0;
    if (words.frame <= before) this.findings.push(`${connection} heard frame ${words.frame} after ${before}`); // W1
    this.#newest.set(connection, words.frame);
    const other = this.#byFrame.get(words.frame);
    if (other === undefined) this.#byFrame.set(words.frame, { text, state: words });
    else if (other.text !== text) this.findings.push(`two frames ${words.frame}: ${other.text} and ${text}`); // W2
  }

  /** W3, of everything that was heard. */
  judge(): readonly string[] {
    const told = [...this.#byFrame.values()].map(({ state }) => state).sort((a, b) => a.frame - b.frame);
    const findings = [...this.findings];
    for (const [i, state] of told.entries()) {
      const before = told[i - 1];
      if (before === undefined) continue;
      const back = (what: string) =>
        findings.push(`${what} went back from frame ${before.frame} to ${state.frame}`);
      if (state.match < before.match) back("the match");
      for (const side of [0, 1] as const) {
        if (state.seen[side] < before.seen[side]) back(`the moves of ${side}`);
        if (state.match === before.match && state.points[side] < before.points[side]) {
          back(`the points of ${side}`);
        }
      }
      if (state.match === before.match && state.longest < before.longest) back("the longest rally");
    }
    return findings;
  }
}
