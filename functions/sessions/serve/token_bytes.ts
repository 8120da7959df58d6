/**
 * Bytes of a session's token (store/api/api.ts: TokenState), which names what the session has seen, between sites and
 * on their disks. Only the cluster reads them, so they are not sealed: a sealed token would expire.
 */
import type { Reader, Writer } from "../../../store/model/codec.ts";
import { CodecError } from "../../../store/model/codec.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { type Named, namedBy, pathNaming } from "../../../store/api/token_path.ts";

const SESSION_BYTES = 16;
/** Number of positions in a path, as in sealed tokens: deeper than any tree. */
const PATH_MAX = 12;
/** First bytes of a position of the path. */
const PENDING = 0, KNOWN = 1, FOLLOWED = 2;

/** Writes a token, or that there is none. */
export function writeToken(writer: Writer, token: TokenState | null): void {
  writer.flag(token !== null);
  if (token === null) return;
  writer.raw(token.session).uint(token.sequence).uint(token.replica).uint(token.clock).flag(token.open);
  writer.list(namedBy(token), ({ position, isPending }) => {
    if (isPending && position === 0) writer.byte(PENDING);
    else writer.byte(isPending ? FOLLOWED : KNOWN).uint(position);
  });
}

/** Reads a token; null: there is none. @throws CodecError */
export function readToken(reader: Reader): TokenState | null {
  if (!reader.flag()) return null;
  const session = Uint8Array.from({ length: SESSION_BYTES }, () => reader.byte());
  const sequence = reader.uint(), replica = reader.uint(), clock = reader.uint(), open = reader.flag();
  const named = reader.list(() => readNamed(reader));
  if (named.length > PATH_MAX) throw new CodecError(`a path has at most ${PATH_MAX} positions`);
  return { session, sequence, replica, clock, open, ...pathNaming(named) };
}

function readNamed(reader: Reader): Named {
  const kind = reader.byte();
  if (kind > FOLLOWED) throw new CodecError(`a position of a path begins with ${kind}`);
  const position = kind === PENDING ? 0 : reader.uint();
  if (kind === FOLLOWED && position === 0) throw new CodecError("a path follows a site up to nowhere");
  return { position, isPending: kind !== KNOWN };
}
