/** Search for the word that was probably meant: for commands and options with a slip of the finger in them. */

/** Returns the known word at the smallest distance; null where none is near. */
export function nearestWord(word: string, known: readonly string[]): string | null {
  // A third of the letters may be wrong: "verison" is versions, "x" is nothing.
  let bound = Math.floor(word.length / 3) + (word.length > 2 ? 1 : 0);
  let found: string | null = null;
  for (const candidate of known) {
    const begins = word.length > 1 && candidate.startsWith(word);
    const steps = begins ? 1 : distance(word, candidate);
    if (steps < bound || (steps === bound && found === null)) {
      bound = steps;
      found = candidate;
    }
  }
  return found;
}

/** Returns the number of letters to insert, leave out, change, or swap with their neighbour. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[j - 2] ?? 0) + 1 : Infinity,
      );
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
}
