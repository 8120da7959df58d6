/**
 * The arbiter's disk goes back: it is replaced by a copy of itself, or by a blank one, and what it finds out then.
 *
 * A site says how far it has heard of the arbiter, and what it has of the name, at any time, or never. Its process may
 * have been another one before: then its homes are dead, and it has heard of what its disk has.
 */
import { foundOf, rowOfLogs } from "../../../functions/sessions/home/rebuild.ts";
import type { HomeWord, RowState } from "../../../functions/sessions/log/asks.ts";
import {
  arbiterAfter,
  BLANK,
  type Disk,
  keeper,
  LEAP,
  logOf,
  NAME,
  recordOf,
  wentBack,
  witnessOf,
  wordOf,
} from "./real.ts";
import {
  type Add,
  type Exploration,
  type Fences,
  type Home,
  type LostState,
  replaced,
  ROOT,
  siteName,
  type State,
} from "./state.ts";

/** The number of the root's disk when it is known that it went back. */
const OTHER_DISK = 1_000;
/** The second time is after one that was given up. */
const FENCED_MAX = 2;

const sitesOf = ({ sites }: Exploration): string[] => Array.from({ length: sites }, (_, i) => siteName(i));

/** All that may happen next to an arbiter whose disk goes back. */
export async function lostSteps(what: Exploration, state: State, add: Add): Promise<void> {
  const { lost } = state;
  const put = (next: Partial<LostState>) => ({ lost: { ...lost, ...next } });
  if (lost.restores < (what.restoresMax ?? 0)) {
    const back = what.isRootBack === true;
    // It goes by its own site's disk from the start: what that says is what went back.
    const own = back ? { [siteName(ROOT)]: (await logOf(state.disks[ROOT] ?? BLANK, 0)).id } : {};
    const ownSite = what.broken === "own site" || !back ? "" : siteName(ROOT);
    const start = {
      restores: lost.restores + 1,
      heard: { sites: sitesOf(what), disks: own, ownSite },
      words: null,
    };
    const restored = (arbiter: Disk, disk: Disk) => ({
      ...{ arbiter, ...put({ ...start, copy: null, fences: null }) },
      ...(back ? { disks: replaced(state.disks, ROOT, disk), homes: state.homes.map(deadAtRoot) } : {}),
    });
    if (lost.copy === null && what.isLost !== true) {
      add("copy", put({ copy: { arbiter: state.arbiter, own: state.disks[ROOT] ?? BLANK } }));
    }
    if (lost.copy !== null) add("restore", restored(lost.copy.arbiter, lost.copy.own));
    if (what.isLost === true) add("lose", restored(BLANK, BLANK));
  }
  if (lost.heard === null) return;
  for (let site = 0; site < what.sites; site++) await hearSteps(what, state, site, add);
  const row = await recordOf(state.arbiter);
  if (row !== "settled") await recallSteps(what, state, row, add);
}

/** It is not known whether the disk of the arbiter's own site went back: that takes nothing, and gives nothing. */
export function isHeld(
  { isRootBack, broken }: Exploration,
  { lost: { heard } }: State,
  site: number,
): boolean {
  if (isRootBack !== true || site !== ROOT || heard === null || broken === "not held") return false;
  return heard.isOther !== true && heard.sites.some((one) => heard.disks[one] === undefined);
}

const deadAtRoot = (home: Home): Home => home.site === ROOT ? { ...home, isDead: true } : home;

/** The newest home of a site's process that its own disk has not promised another. */
async function hereOf(
  state: State,
  site: number,
): Promise<{ readonly home: HomeWord | null; readonly granted: number }> {
  const { state: log } = await logOf(state.disks[site] ?? BLANK, state.wipes[site] ?? 0);
  const word = await wordOf(state.disks[site] ?? BLANK, state.wipes[site] ?? 0, { home: null, granted: 0 });
  const own = state.homes.filter((home) => home.site === site && !home.isDead);
  const home = own.find((one) =>
    one.isOpen && log !== null && word.log?.promised === one.epoch && word.log.by === siteName(site)
  );
  const granted = Math.max(0, ...own.filter((one) => !one.isOpen).map(({ epoch }) => epoch));
  return { home: home === undefined ? null : homeWord(home), granted };
}

const homeWord = ({ epoch, config, recorded, proposed }: Home): HomeWord =>
  proposed === null
    ? { epoch, config, owners: recorded, isChanging: false }
    : { epoch, config: config + 1, owners: proposed, isChanging: true };

/** A site says how far it has heard of the arbiter: it, or a process of it that was started anew. */
async function hearSteps(what: Exploration, state: State, site: number, add: Add): Promise<void> {
  const { lost: { heard } } = state, name = siteName(site);
  if (heard === null || heard.disks[name] !== undefined) return;
  const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
  const { id } = await logOf(disk, wipes);
  const onDisk = what.broken === "no witness" ? 0 : await witnessOf(disk, wipes);
  const isThere = (home: Home) => home.site === site && !home.isDead;
  const here = state.homes.filter(isThere);
  const said = async (position: number, homes: readonly Home[]) => {
    const arbiter = await arbiterAfter(state.arbiter, `heard ${position}`, async (one) => {
      one.heard(name, position);
      await one.doubted(NAME);
    });
    const disks = { ...heard.disks, [name]: id };
    const isKnown = what.isRootBack === true && site !== ROOT && heard.isOther !== true &&
      await recordOf(arbiter) !== "settled";
    const lost = { ...state.lost, heard: { ...heard, disks, ...(isKnown ? { isOther: true } : {}) } };
    if (!isKnown || what.broken === "same disk") return { arbiter, homes, lost };
    const other = await wentBack(state.disks[ROOT] ?? BLANK, OTHER_DISK);
    // What was said of the disk that it was is said of no disk any more.
    const unheld = homes.map((home) => ({ ...home, acked: replaced(home.acked, ROOT, -1) }));
    return { arbiter, homes: unheld, lost, disks: replaced(state.disks, ROOT, other) };
  };
  const inMemory = what.broken === "no witness"
    ? 0
    : Math.max(onDisk, ...here.map(({ position }) => position));
  add(`hears ${site}`, await said(inMemory, state.homes));
  if (here.length === 0) return;
  const dead = state.homes.map((home) => isThere(home) ? { ...home, isDead: true } : home);
  add(`hears ${site}, which has started`, await said(onDisk, dead));
}

async function recallSteps(what: Exploration, state: State, row: RowState | null, add: Add): Promise<void> {
  const { lost } = state;
  const put = (next: Partial<LostState>) => ({ lost: { ...lost, ...next } });
  if (lost.fences !== null) return await fenceSteps(what, state, lost.fences, add);
  const words = lost.words ?? {};
  for (let site = 0; site < what.sites; site++) {
    const name = siteName(site);
    if (words[name] !== undefined) continue;
    const disk = state.disks[site] ?? BLANK, wipes = state.wipes[site] ?? 0;
    const word = await wordOf(disk, wipes, await hereOf(state, site));
    add(`recalls ${site}`, put({ words: { ...words, [name]: word } }));
  }
  if (lost.words === null) return;
  // It may be asked after again.
  add("asks anew", put({ words: null }));
  const missed = what.broken === "some heard"
    ? []
    : sitesOf(what).filter((site) => words[site] === undefined);
  const told = new Map(Object.entries(words));
  const found = foundOf(row, {
    words: told,
    missed: what.broken === "any home" ? [] : missed,
    stale: what.isRootBack === true ? siteName(ROOT) : null,
  });
  if (found.kind === "missed" || (what.broken === "any home" && missed.length > 0 && found.kind === "logs")) {
    return;
  }
  if (found.kind === "settled") {
    const arbiter = await settled(state.arbiter, found.as);
    add(`settled as e${found.as.epoch}`, { arbiter, ...put({ words: null }) });
    return;
  }
  if (lost.fenced === FENCED_MAX) return;
  const fences = { row, epoch: found.above + LEAP, disks: found.disks, states: [] };
  add("fences", put({ fences, fenced: lost.fenced + 1 }));
}

const settled = (arbiter: Disk, row: RowState): Promise<Disk> =>
  arbiterAfter(arbiter, `settle ${JSON.stringify(row)}`, (one) => one.settle(NAME, row));

/** Each disk that has a log promises; one that does not any more ends it. */
async function fenceSteps(what: Exploration, state: State, fences: Fences, add: Add): Promise<void> {
  const { lost } = state;
  const put = (next: Partial<LostState>) => ({ lost: { ...lost, ...next } });
  add("gives up", put({ fences: null, words: null }));
  for (const { site: name, disk: number } of fences.disks) {
    if (fences.states.some((one) => one.site === name)) continue;
    const site = Number(name.slice(1)), wipes = state.wipes[site] ?? 0;
    if (isHeld(what, state, site)) continue;
    const ask = { kind: "promise", name: NAME, disk: number, epoch: fences.epoch } as const;
    const { reply, disk } = await keeper(state.disks[site] ?? BLANK, wipes, "root", [ask], 0);
    if (reply.kind !== "promised" || reply.log === null) continue;
    const states = [...fences.states, { site: name, disk: number, state: reply.log }]
      .sort((a, b) => a.site < b.site ? -1 : 1);
    const disks = what.broken === "logs not fenced" ? state.disks : replaced(state.disks, site, disk);
    add(`fenced ${site}`, { disks, ...put({ fences: { ...fences, states } }) });
  }
  if (fences.states.length < fences.disks.length) return;
  const words = new Map(Object.entries(lost.words ?? {}));
  const { row, epoch, states } = fences;
  const chosen = what.broken === "any log" ? states.slice(0, 1) : states;
  const arbiter = await settled(state.arbiter, rowOfLogs(row, { words }, { epoch, states: chosen }));
  add(`settled as e${epoch}`, { arbiter, ...put({ fences: null, words: null }) });
}
