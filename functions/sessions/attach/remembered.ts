/**
 * Memory of a home for peers that had others wait, or lied. It stays when all of them have gone: one that did so comes
 * back with another id, or with the key of a peer that has left.
 */
import { Outrun } from "./outrun.ts";
import { TardyHosts } from "./tardy_hosts.ts";

/** Memory of peers (see the file's header). */
export class Remembered {
  readonly tardy: TardyHosts;
  readonly outran: Outrun;

  constructor(nowMs: () => number) {
    this.tardy = new TardyHosts(nowMs);
    this.outran = new Outrun(nowMs);
  }
}
