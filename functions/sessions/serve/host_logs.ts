/**
 * What the hosts of a stateful session hold of its log, at its home (docs/protocol/hosts.md): what they are sent of it,
 * over all runs of one home.
 *
 * HL1  A host that was asked when the home was opened goes on where its log ends.
 */
import { createHmac } from "node:crypto";
import { type Home, HomeError, type StatefulName } from "../home/mod.ts";
import { HostFeeds, type HostLogEnd } from "../sealed/mod.ts";

/** What it needs of its session and its site. */
export interface HostLogsPorts {
  /** The cluster's newest. */
  readonly secret: Uint8Array;
  readonly random: (length: number) => Uint8Array;
  /** Some host may be told what it was not before. */
  readonly changed: () => void;
  readonly log: (text: string) => void;
}

/** See the file's header. */
export class HostLogs {
  readonly epoch: number;
  readonly feeds: HostFeeds;
  #home: Home;

  /** @param ends of those that were asked. */
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
    // Also between two runs: a host that is to be on record is sent it, and the end of a run may wait for that.
    hosts.onReleased = changed;
    hosts.onAppended = (piece) => this.feeds.appended(piece);
    hosts.onBased = (at) => this.feeds.based(at);
  }

  /** Another run serves as the same home. */
  runs(home: Home): void {
    this.#home = home;
  }
}

/** The keys of a session's peers: whoever has one is that peer, whoever knows its id only is not. */
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
