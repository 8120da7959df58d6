/** What is explored of a stateful session (explore.ts), and a state of it. */
import type { LogState, RowState } from "../../../functions/sessions/log/asks.ts";
import type { Owner } from "../../../functions/sessions/home/mod.ts";
import type { Word } from "../../../functions/sessions/home/rebuild.ts";
import type { Disk, HeardSites } from "./real.ts";

/** What is explored, and which rule is left out. */
export interface Exploration {
  readonly sites: number;
  readonly homesMax: number;
  /** Entries that one home appends, at most. */
  readonly entriesMax: number;
  /** Disks that may be lost. */
  readonly wipesMax: number;
  readonly statesMax: number;
  /** The first of these steps, in this order, come before everything else. */
  readonly begin?: readonly string[];
  /** The home of the first epoch has crashed then. */
  readonly isFirstDead?: boolean;
  /** How many disks a configuration has; 2, where absent. */
  readonly disks?: readonly number[];
  /** The arbiter's disk may be copied, and replaced by the copy, or by a blank one, so often; homes tell others to forget. */
  readonly restoresMax?: number;
  readonly isLost?: boolean;
  /** The site `ROOT` is the arbiter's own, and its disk goes back with the arbiter's. */
  readonly isRootBack?: boolean;
  readonly broken?: Broken;
}

export type Broken =
  /** The answer is used, and the fence was never set. */
  | "no fence"
  /** A recovery opens though nobody answered. */
  | "nobody asked"
  /** Owners are on record before they have the log. */
  | "recorded first"
  /** A home releases what its own disk has. */
  | "own disk alone"
  /** While the arbiter is asked for other owners, those alone count. */
  | "not both"
  /** What another home had appended is not cut. */
  | "not cut"
  /** The arbiter's word is not asked for: owners are changed by the home alone. */
  | "own word"
  /** An arbiter that starts goes by its disk. */
  | "not asked"
  /** Positions go with nothing that is asked. */
  | "no witness"
  /** Owners take the place of those before when the arbiter has them on record. */
  | "not known"
  /** The arbiter's own site counts for a name as any other. */
  | "own site"
  /** The arbiter goes on from the epochs that it has. */
  | "no leap"
  /** A home that says to be one is believed. */
  | "any home"
  /** Logs are taken from those who were heard. */
  | "some heard"
  /** Any log is taken. */
  | "any log"
  /** What is left of logs is told, and not fenced. */
  | "logs not fenced"
  /** The disk of the arbiter's own site that went back is the same one. */
  | "same disk"
  /** It takes what it is asked before it is known whether it went back. */
  | "not held";

export interface Promise1 {
  readonly site: number;
  readonly state: LogState | null;
  readonly log: readonly Entry[];
}

export interface Entry {
  readonly epoch: number;
  readonly n: number;
  /** The home that wrote it: two may have one epoch, where epochs are granted twice. */
  readonly by: number;
}

export interface Home {
  readonly site: number;
  readonly epoch: number;
  readonly config: number;
  readonly recorded: readonly Owner[];
  readonly proposed: readonly Owner[] | null;
  /** The position of the arbiter that it has heard of last. */
  readonly position: number;
  /** The arbiter has what was proposed on record; the sites that know so. */
  readonly known: readonly number[] | null;
  /** Its process is gone. */
  readonly isDead: boolean;
  readonly isOpen: boolean;
  readonly promises: readonly Promise1[];
  readonly log: readonly Entry[];
  /** How many entries it had when it opened, and how many it appended itself. */
  readonly floor: number;
  readonly own: number;
  /** By site: how far it was said to be held; −1: not joined. */
  readonly acked: readonly number[];
  readonly released: number;
}

export interface State {
  readonly disks: readonly Disk[];
  /** Wipes so far, by site: they give a disk another number. */
  readonly wipes: readonly number[];
  readonly arbiter: Disk;
  readonly homes: readonly Home[];
  readonly lost: LostState;
}

export type Add = (what: string, next: Partial<State>) => void;

/** Logs that are left, and those that have promised the epoch that is above all. */
export interface Fences {
  readonly row: RowState | null;
  readonly epoch: number;
  readonly disks: readonly Owner[];
  readonly states: readonly (Owner & { readonly state: LogState })[];
}

export interface LostState {
  readonly copy: { readonly arbiter: Disk; readonly own: Disk } | null;
  readonly restores: number;
  /** null: the arbiter has not started since. */
  readonly heard: HeardSites | null;
  /** What sites have said of the name since it is asked after. */
  readonly words: Readonly<Record<string, Word>> | null;
  readonly fences: Fences | null;
  /** How often logs were fenced that were left: each time raises their epochs. */
  readonly fenced: number;
}

/** The arbiter's own site. */
export const ROOT = 2;
export const siteName = (site: number): string => `s${site}`;
export const replaced = <T>(list: readonly T[], at: number, value: T): readonly T[] =>
  list.map((one, i) => i === at ? value : one);
