/**
 * Room for the peers of one session: as many as may be are attached, and a peer that is in nobody's way stays.
 *
 * PR1  Where it is full, a peer without a line makes room for one that comes: first those that never said a thing and
 *      never took one, then the others, and of both the one that has been without a line the longest. A peer with a
 *      line stays.
 * PR2  A peer that is to go is there until the session has heard of it. Only so many of these may be beside the others:
 *      a session that takes its time is no reason for more.
 */
import type { HomePeer } from "./home_peer.ts";
import { LEAVING_MAX, PEERS_MAX } from "./limits.ts";

/** Room for peers (see the file's header). */
export class PeerRoom {
  readonly #peersMax: number;
  readonly #leavingMax: number;
  /**
   * Peers without a line that never said a thing, in the order in which they lost it; null: none yet. `#apart`: the
   * others.
   */
  #silent: Set<HomePeer> | null = null;
  #apart: Set<HomePeer> | null = null;
  #leaving = 0;

  constructor(peersMax = PEERS_MAX) {
    this.#peersMax = peersMax;
    this.#leavingMax = Math.min(LEAVING_MAX, peersMax);
  }

  /** Notes that a peer has no line. */
  lost(peer: HomePeer): void {
    this.found(peer);
    if (peer.isSilent) (this.#silent ??= new Set()).add(peer);
    else (this.#apart ??= new Set()).add(peer);
  }

  /** Notes that a peer has a line again. */
  found(peer: HomePeer): void {
    this.#silent?.delete(peer);
    this.#apart?.delete(peer);
  }

  /** Notes that a peer is to be detached; it is there until that is in the log. */
  leaves(peer: HomePeer): void {
    this.found(peer);
    this.#leaving++;
  }

  /** Notes that a peer is not there any more. */
  gone(peer: HomePeer): void {
    this.found(peer);
    if (peer.stage === "detaching") this.#leaving--;
  }

  /**
   * Returns null where no further peer may come. `detach`: the peer that is to be detached first.
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
