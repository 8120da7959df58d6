/**
 * What players at a table of scrabble were told, held against each other. It knows nothing but that.
 *
 * W1  Over one connection, moments never go back.
 * W2  What everybody may know of one moment is the same for all.
 * W3  The moves of a game that one was told are the beginning of those that another is told later.
 * W4  A rack is told to one player: no view has another's tiles.
 */
interface View {
  readonly kind: string;
  readonly moment: number;
  readonly open: {
    readonly phase: string;
    readonly round: number;
    readonly moves: readonly unknown[];
    readonly racks: readonly number[];
  };
  readonly yours: { readonly seat: number | null; readonly rack: string };
}

const OPEN = "bag,board,endsMs,moves,names,phase,points,racks,round,turn,winners";

/** See the file's header. */
export class ScrabbleWitness {
  readonly findings: string[] = [];
  views = 0;
  readonly #byMoment = new Map<number, { readonly text: string; readonly view: View }>();
  readonly #newest = new Map<string, number>();

  /** A connection has heard something. */
  hear(connection: string, text: string): void {
    const view = JSON.parse(text) as View;
    if (view.kind !== "view") return;
    this.views++;
    const before = this.#newest.get(connection) ?? 0;
    if (view.moment < before) this.findings.push(`${connection} heard moment ${view.moment} after ${before}`); // W1
    this.#newest.set(connection, view.moment);
    const open = JSON.stringify(view.open);
    const other = this.#byMoment.get(view.moment);
    if (other === undefined) this.#byMoment.set(view.moment, { text: open, view });
    else if (other.text !== open) this.findings.push(`two moments ${view.moment}: ${other.text} and ${open}`); // W2
    const { seat, rack } = view.yours;
    const isOwn = seat === null ? rack === "" : rack.length === (view.open.racks[seat] ?? 0);
    if (!isOwn || Object.keys(view.open).sort().join() !== OPEN) this.findings.push(`told too much: ${text}`); // W4
  }

  /** W3, of everything that was heard. */
  judge(): readonly string[] {
    const told = [...this.#byMoment.values()].map(({ view }) => view).sort((a, b) => a.moment - b.moment);
    const findings = [...this.findings];
    for (const [i, { moment, open }] of told.entries()) {
      const before = told[i - 1];
      if (before === undefined) continue;
      if (open.round < before.open.round) findings.push(`the round went back at moment ${moment}`);
      // When seats change after a game, it is put away.
      if (open.round !== before.open.round || (open.phase === "waiting" && before.open.phase !== "playing")) {
        continue;
      }
      const [was, is] = [before.open.moves, open.moves.slice(0, before.open.moves.length)].map((moves) =>
        JSON.stringify(moves)
      );
      if (was !== is) findings.push(`a move vanished or changed before moment ${moment}: ${was}, then ${is}`);
    }
    return findings;
  }
}
