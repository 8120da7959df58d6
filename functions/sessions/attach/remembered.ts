/**
 * What a home remembers of peers that had others wait, or lied: also when all of them have gone, since whoever did so comes
 * back with another id, or with the key of one that has left.
 */
import { Outrun } from "./outrun.ts";
import { TardyHosts } from "./tardy_hosts.ts";

/** See the file's header. */
export class Remembered {
  readonly tardy: TardyHosts;
  readonly outran: Outrun;

  constructor(nowMs: () => number) {
    this.tardy = new TardyHosts(nowMs);
    this.outran = new Outrun(nowMs);
  }
}
