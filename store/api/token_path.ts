/** What a token names of each site on its path (TokenState). */
import type { Position } from "../model/row.ts";
import type { TokenState } from "./api.ts";

/** What it names of one: all that the session touched lies up to there, or all but what is pending. */
export interface Named {
  readonly position: Position;
  readonly isPending: boolean;
}

/** Of the site at a depth, a position that includes all that is not pending towards it. */
export const followedOf = (
  { path, followed }: { readonly [K in "path" | "followed"]?: TokenState[K] | undefined },
  depth: number,
): Position => path?.[depth] ?? followed?.[depth] ?? 0;

/** What a token names, from the root down. */
export const namedBy = (token: Pick<TokenState, "path" | "followed">): Named[] =>
  token.path.map((at, depth) => ({ position: followedOf(token, depth), isPending: at === null }));

/** The part of a token that names these. */
export function pathNaming(named: readonly Named[]): Pick<TokenState, "path" | "followed"> {
  const path = named.map(({ position, isPending }) => isPending ? null : position);
  if (named.every(({ position, isPending }) => !isPending || position === 0)) return { path };
  return { path, followed: named.map(({ position, isPending }) => isPending ? position : 0) };
}
