/**
 * The messages of a child and its parent that find out where their rows differ (resync.ts).
 *
 * child → parent   compare: instead of a fetch, where the child has rows of the range from before
 * parent → child   compared: in the feed, as `fetched`; or `fetched` itself, where there is little to tell
 */
import { CodecError, type Reader, type Writer } from "../model/codec.ts";
import { type Digest, DIGEST_BYTES, type DigestPart } from "../model/digest.ts";
import type { Key } from "../model/key.ts";
import { COMPARE_PARTS_MAX } from "../model/limits.ts";
import type { Range } from "../model/range.ts";

/** Request of a child for a range of which it has rows already. */
export interface Compare {
  readonly kind: "compare";
  readonly id: number;
  readonly range: Range;
  /** Digest of all rows that the child has there. */
  readonly digest: Digest;
  /** Name of the trace, as in a fetch. */
  readonly trace: string;
}

/** Answer to a compare. It follows a feed message up to the head as of which the range was digested. */
export interface Compared {
  readonly kind: "compared";
  readonly id: number;
  /** Range that the child is fed from now on; it covers the parts of it that are the same. */
  readonly range: Range;
  /** Parts of the range with their digests; none: all of it has the digest that the child sent. */
  readonly parts: readonly DigestPart[];
}

export type CompareTalk = Compare | Compared;

export const COMPARE_KINDS = ["compare", "compared"] as const;

export const isCompareKind = (kind: string): kind is CompareTalk["kind"] =>
  (COMPARE_KINDS as readonly string[]).includes(kind);

export const isCompareTalk = (message: { readonly kind: string }): message is CompareTalk =>
  isCompareKind(message.kind);

export function writeCompareBody(w: Writer, message: CompareTalk): Writer {
  const { id, range } = message;
  w.uint(id).key(range.start).key(range.end);
  if (message.kind === "compare") return w.raw(message.digest).text(message.trace);
  let before: string = range.start;
  return w.list(message.parts, ({ end, digest }) => {
    const shared = sharedLength(before, end);
    w.uint(shared).key(end.slice(shared)).raw(digest);
    before = end;
  });
}

export function readCompareBody(kind: CompareTalk["kind"], r: Reader): CompareTalk {
  const id = r.uint(), range: Range = { start: r.key(), end: r.key() };
  if (kind === "compare") return { kind, id, range, digest: r.fixed(DIGEST_BYTES), trace: r.text() };
  let before: string = range.start;
  // No end is longer than all that was spelled out before it.
  let spelled = before.length, ends = 0;
  const parts = r.list((): DigestPart => {
    const shared = r.uint(), rest = r.key();
    const end = before.slice(0, shared) + rest as Key;
    spelled += rest.length;
    ends += end.length;
    // A short message must not become gigabytes of keys, each of which shares a long beginning with the one before.
    if (ends > COMPARE_PARTS_MAX * spelled) throw new CodecError("the parts of an answer are too many");
    if (sharedLength(before, end) !== shared) throw new CodecError("a key is not in its shortest form");
    before = end;
    return { end, digest: r.fixed(DIGEST_BYTES) };
  });
  return { kind, id, range, parts };
}

function sharedLength(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let shared = 0;
  while (shared < most && a.charCodeAt(shared) === b.charCodeAt(shared)) shared++;
  return shared;
}
