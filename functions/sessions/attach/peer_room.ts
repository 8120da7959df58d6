/**
 * Room for the peers of one session: as many as may be are attached, and who is in nobody's way stays.
 *
 * PR1  Where it is full, who has no line makes room for who comes: first those who never said a thing and never took
 *      one, then the others, and of both who has been without a line the longest. Who has a line stays.
 * PR2  Who is to go is there until the session has heard of it. So many of these may be beside the others: a session
 *      that takes its time is no reason for more.
 */
import type { HomePeer } from "./home_peer.ts";
import { LEAVING_MAX, PEERS_MAX } from "./limits.ts";

/** See the file's header. */
export class PeerRoom {
  readonly #peersMax: number;
  readonly #leavingMax: number;
  /** Without a line, in the order in which they lost it: who never said a thing, and the others; null: nobody yet. */
  #silent: Set<HomePeer> | null = null;
  #apart: Set<HomePeer> | null = null;
  #leaving = 0;

  constructor(peersMax = PEERS_MAX) {
    this.#peersMax = peersMax;
    this.#leavingMax = Math.min(LEAVING_MAX, peersMax);
  }

  /** It has no line. */
  lost(peer: HomePeer): void {
    this.found(peer);
    if (peer.isSilent) (this.#silent ??= new Set()).add(peer);
    else (this.#apart ??= new Set()).add(peer);
  }

  /** It has one again. */
  found(peer: HomePeer): void {
    this.#silent?.delete(peer);
    this.#apart?.delete(peer);
  }

  /** It is to be detached, and is there until that is in the log. */
  leaves(peer: HomePeer): void {
    this.found(peer);
    this.#leaving++;
  }

  /** It is not there any more. */
  gone(peer: HomePeer): void {
    this.found(peer);
    if (peer.stage === "detaching") this.#leaving--;
  }

  /**
   * Whether one more may come. `detach`: this one is to be detached first.
   *
   * @param peers that are there.
   */
  forOne(peers: number): { readonly detach: HomePeer | null } | null {
    if (peers < this.#peersMax) return { detach: null };
    if (this.#leaving >= this.#leavingMax) return null; // PR2
    if (peers - this.#leaving < this.#peersMax) return { detach: null };
    const detach = firstOf(this.#silent) ?? firstOf(this.#apart); // PR1
    return detach && { detach };
  }
}

function firstOf(peers: ReadonlySet<HomePeer> | null): HomePeer | null {
  for (const peer of peers ?? []) return peer;
  return null;
}
