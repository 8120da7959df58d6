/**
 * Logs of a stateful session at its hosts, as its home feeds them (docs/protocol/hosts.md), over all runs of one home.
 *
 * HL1  A host that was asked when the home was opened goes on where its log ends.
 */
import { createHmac } from "node:crypto";
import { type Home, HomeError, type StatefulName } from "../home/mod.ts";
import { HostFeeds, type HostLogEnd } from "../sealed/mod.ts";

/** The part of its session and site that this needs. */
export interface HostLogsPorts {
  /** The cluster's newest secret. */
  readonly secret: Uint8Array;
  readonly random: (length: number) => Uint8Array;
  /** Tells that some host may be told what it was not before. */
  readonly changed: () => void;
  readonly log: (text: string) => void;
}

/** See the file's header. */
export class HostLogs {
  readonly epoch: number;
  readonly feeds: HostFeeds;
  #home: Home;

  /** @param ends where the logs of those hosts end that were asked when the home was opened. */
  constructor(
    home: Home,
    ends: ReadonlyMap<string, HostLogEnd>,
    { secret, random, changed, log }: HostLogsPorts,
  ) {
    const current = () => this.#home;
    const { name, epoch, hosts } = this.#home = home;
    this.epoch = epoch;
    const feedHome = {
      ...{ name, epoch, hosts },
      get last() {
        return current().sequence;
      },
      get released() {
        return current().released;
      },
      get copyBytes() {
        return current().copyBytes;
      },
      copy: () => current().copy(),
    };
    this.feeds = new HostFeeds(feedHome, {
      ...{ secret, random },
      ready: changed,
      failed: (host, error) => {
        if (!(error instanceof HomeError)) log(`cannot send ${host} the log that it is to hold: ${error}`);
      },
    }, ends);
    hosts.onRecorded = changed;
    // Also between two runs: a host that is to be on record is sent what was released, and the end of a run may wait
    // for that.
    hosts.onReleased = changed;
    hosts.onAppended = (piece) => this.feeds.appended(piece);
    hosts.onBased = (at) => this.feeds.based(at);
  }

  /** Notes that another run serves as the same home. */
  runs(home: Home): void {
    this.#home = home;
  }
}

/**
 * Returns the function that makes the keys of a session's peers, the newest first. Whoever has a peer's key is that
 * peer; whoever knows its id only is not.
 */
export function peerKeys(
  secrets: readonly [Uint8Array, ...Uint8Array[]],
  { app, class: className, id }: StatefulName,
): (peer: string) => [Uint8Array, ...Uint8Array[]] {
  const of = JSON.stringify(["sojourn peer key 1", app, className, id]);
  const keyBy = (secret: Uint8Array, peer: string) =>
    createHmac("sha256", createHmac("sha256", secret).update(of).digest()).update(peer).digest();
  const [newest, ...older] = secrets;
  return (peer) => [keyBy(newest, peer), ...older.map((secret) => keyBy(secret, peer))];
}
