/** Positions that a token names, one for each site on its path (TokenState). */
import type { Position } from "../model/row.ts";
import type { TokenState } from "./api.ts";

/**
 * Position that a token names for one site: it includes all that the session touched, or, where some of that is
 * pending, all but that.
 */
export interface Named {
  readonly position: Position;
  readonly isPending: boolean;
}

/** Returns a position of the site at a depth that includes all that is not pending towards that site. */
export const followedOf = (
  { path, followed }: { readonly [K in "path" | "followed"]?: TokenState[K] | undefined },
  depth: number,
): Position => path?.[depth] ?? followed?.[depth] ?? 0;

/** Lists what a token names, from the root down. */
export const namedBy = (token: Pick<TokenState, "path" | "followed">): Named[] =>
  token.path.map((at, depth) => ({ position: followedOf(token, depth), isPending: at === null }));

/** Makes the part of a token that names these positions. */
export function pathNaming(named: readonly Named[]): Pick<TokenState, "path" | "followed"> {
  const path = named.map(({ position, isPending }) => isPending ? null : position);
  if (named.every(({ position, isPending }) => !isPending || position === 0)) return { path };
  return { path, followed: named.map(({ position, isPending }) => isPending ? position : 0) };
}
