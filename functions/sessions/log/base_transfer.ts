/**
 * Transfer of a base from a home to one of its owners: the parts of its state that the owner lacks, some at a time, and
 * with the last of them the base itself.
 *
 * Stages: what the owner has is told → `upload` … → `checkpoint` or `install`. Where one of both dies on the way the
 * owner goes on with the base before; what was uploaded belongs to no base, and is sent again.
 *
 * Appends go on meanwhile: no commit waits for a base.
 *
 * BT1  All that is sent is of one base: where the home's disk has another by then, the transfer begins anew.
 */
import type { Base, Reply, SiteAsk } from "./asks.ts";
import { NO_STATE, type StateMark } from "./state_parts.ts";

/** Home that sends a base, and the way to the owner. */
export interface TransferPorts {
  base(): Promise<Base | null>;
  hasState(mark: StateMark): boolean;
  parts(at: number, first: number): Promise<readonly Uint8Array[] | null>;
  /** Asks the owner; null where nothing more is to be done with it. */
  ask(ask: PartialAsk): Promise<Reply | null>;
}

type Without<T> = T extends unknown ? Omit<T, "name" | "disk" | "epoch"> : never;
/** Ask without the fields that are the same in all of them. */
export type PartialAsk = Without<Extract<SiteAsk, { readonly kind: "upload" | "checkpoint" | "install" }>>;

/**
 * Outcome of a transfer; `again`: the home has another base by now; `lacks`: the owner lacks what it was thought to
 * have.
 */
export type Transferred = { readonly base: Base; readonly through: number } | "again" | "lacks" | "over";

/**
 * Sends the home's base to an owner that has one of the same log.
 *
 * @param had the state that the owner is known to have.
 * @param above entry of the base that the owner has already.
 */
export async function sendBase(ports: TransferPorts, had: StateMark, above: number): Promise<Transferred> {
  const base = await ports.base();
  if (base === null || base.at <= above) return "again";
  const kept = ports.hasState(had) ? had : NO_STATE;
  return await send(ports, base, kept, (parts) => ({ kind: "checkpoint", base, kept, parts }));
}

/**
 * Makes an owner's log the home's in one step, whatever it was before.
 *
 * @param isBlank true where the owner has nothing of the log, and so nowhere to upload to: a base that is too large for
 * one packet comes later, as the next base (`sendBase`).
 */
export async function installBase(
  ports: TransferPorts,
  of: { readonly turn: number; readonly seed: Uint8Array; readonly version: string },
  isBlank: boolean,
): Promise<Transferred | { readonly base: null; readonly through: number }> {
  const install = { kind: "install", ...of } as const;
  const base = await ports.base();
  const first = base !== null && isBlank ? await firstParts(ports, base) : [];
  if (first === null) return "again";
  if (base === null || (isBlank && first.length < base.state.count)) {
    const reply = await ports.ask({ ...install, base: null, parts: [] });
    return reply?.kind === "held" ? { base: null, through: reply.through } : "over";
  }
  return await send(ports, base, NO_STATE, (parts) => ({ ...install, base, parts }));
}

const firstParts = async (ports: TransferPorts, { at, state }: Base): Promise<readonly Uint8Array[] | null> =>
  state.count === 0 ? [] : await ports.parts(at, 0);

async function send(
  ports: TransferPorts,
  base: Base,
  kept: StateMark,
  last: (parts: readonly Uint8Array[]) => PartialAsk,
): Promise<Transferred> {
  const { at, state } = base;
  for (let first = kept.count;;) {
    const parts = first < state.count ? await ports.parts(at, first) : [];
    if (parts === null) return "again"; // BT1
    const isLast = first + parts.length >= state.count;
    const reply = await ports.ask(isLast ? last(parts) : { kind: "upload", at, first, parts });
    if (reply === null) return "over";
    if (reply.kind !== "held") return "lacks";
    if (isLast) return { base, through: reply.through };
    first += parts.length;
  }
}
