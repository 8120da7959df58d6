/**
 * What checkers let pass, and why they may: each excuse by its name, with the sentence of docs/faults.md that says so to
 * those who run a cluster, and how often it may be used.
 *
 * X1  A checker lets nothing pass but by a name that is listed; each time counts among the probes (`excused …`).
 * X2  What is used more often than its bound in so many seeds fails the run: about four times as often as it was over
 *     some thousand seeds. That is where to look when what is let pass has become something else.
 * X3  The sentence stands in docs/faults.md (tests/docs/excuses_test.ts).
 */

/** Hears each time that a checker lets something pass, by the name of the excuse. */
export type Excused = (name: string) => void;

/** One of them. */
export interface Excuse {
  readonly name: string;
  /** So often, in a hundred seeds. */
  readonly perHundred: number;
  /** A sentence, or a part of one, of docs/faults.md. */
  readonly says: string;
}

/** What the store's simulator lets pass. */
export const STORE_EXCUSES: readonly Excuse[] = [
  {
    name: "an acknowledged write, with its disk",
    perHundred: 30,
    says: "With `f` = 0 that is the disk of its site, until the site above has it.",
  },
  {
    name: "an acknowledged write, with f + 1 disks",
    perHundred: 2,
    says: "With `f` ≥ 1 more than f disks have to be lost at one time",
  },
  {
    name: "the cause is lost, and read without it",
    perHundred: 6,
    says: "Sessions that saw the lost one are told; others see the effect without its cause.",
  },
  {
    name: "the cause is lost, and a disk has the effect",
    // One row may be looked at again with each commit of its site.
    perHundred: 20,
    says:
      "A row that a site got from an inner disk may survive it, while another that it depends on was nowhere else.",
  },
  {
    name: "source_lost: what it saw is gone",
    perHundred: 35,
    says: "410 `source_lost` where something is gone",
  },
  {
    name: "source_lost: the disk of its source, and what it saw is elsewhere",
    perHundred: 25,
    says: "of a site whose disk is lost, whatever the root was not yet known to have may be gone",
  },
  {
    name: "source_lost: a disk above its source, and what it saw is elsewhere",
    perHundred: 15,
    says: "of a site below a lost disk, so may what it told before it joined again",
  },
  {
    name: "source_lost: its source, or a disk above it, had no owners yet",
    perHundred: 1,
    says: "a site that has just begun has no owners before the root knows of them",
  },
  {
    name: "source_lost: a disk above its source, which an operator named as lost",
    perHundred: 1,
    says: "where an operator names the site above as lost, its children wait for nobody who held its rows",
  },
  {
    name: "source_lost: a disk above, meanwhile",
    perHundred: 40,
    says: "A request that has touched something at a site which becomes another incarnation while it runs",
  },
  {
    name: "refused: source_unreachable",
    perHundred: 25,
    says: "503 `source_unreachable` where a session moved across",
  },
  {
    name: "refused: store_unreachable",
    perHundred: 25,
    says: "503 `store_unreachable` for rows that are not covered",
  },
  {
    name: "read below a site whose owners are silent",
    perHundred: 1,
    says: "what it gives them meanwhile is on its disk and on theirs",
  },
  {
    name: "read below a site that had no owners yet",
    perHundred: 1,
    says: "begins open answers and feeds its children all the same",
  },
  {
    name: "fed to a site that had said that it leaves, whose disk was emptied",
    perHundred: 1,
    says: "what it was fed behind the word that it leaves may not be at the root when it stops",
  },
  { name: "refused: owners_unreachable", perHundred: 25, says: "503 `owners_unreachable` until then" },
  { name: "refused: pending_full", perHundred: 70, says: "503 `pending_full` beyond the limit" },
  { name: "refused: disk_failed", perHundred: 5, says: "503 `disk_failed`" },
  { name: "a last look that is made again", perHundred: 3, says: "waits, at most 2 s, then 503" },
];

/** By name how often something may be used; what is not among the excuses never may. */
export function excusedTooOften(
  excuses: readonly Excuse[],
  probes: Readonly<Record<string, number>>,
  seeds: number,
): string[] {
  const bounds = new Map(excuses.map(({ name, perHundred }) => [`excused ${name}`, perHundred]));
  return Object.entries(probes).filter(([name, count]) =>
    name.startsWith("excused ") && count > (bounds.get(name) ?? 0) * seeds / 100
  ).map(([name]) => name);
}
