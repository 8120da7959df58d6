/** The claim of a replica number: the site that the number is for. */
import { CodecError, type Reader, type Writer } from "../model/codec.ts";
import type { SiteId } from "../model/ports.ts";
import type { ReplicaNumber } from "../model/row.ts";

/** Claim as the root writes it down (topology.ts). */
export interface Claim {
  readonly site: SiteId;
  readonly path: readonly SiteId[];
  readonly parent: ReplicaNumber;
  readonly from: ReplicaNumber;
}

export function writeClaim(w: Writer, claim: Claim | null): Writer {
  if (claim === null) return w;
  return w.list(claim.path, (site) => w.text(site)).uint(claim.parent).uint(claim.from);
}

export function readClaim(r: Reader): Claim | null {
  if (r.isAtEnd) return null;
  const path = r.list(() => r.text()), parent = r.uint(), from = r.uint();
  const site = path.at(-1);
  if (site === undefined || path.length < 2) throw new CodecError("a number is claimed for no site");
  return { site, path, parent, from };
}
