/**
 * What a session has seen (store/api/api.ts: TokenState) as bytes between sites and on their disks, where nobody but the
 * cluster reads it: sealed, it would expire.
 */
import type { Reader, Writer } from "../../../store/model/codec.ts";
import { CodecError } from "../../../store/model/codec.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { type Named, namedBy, pathNaming } from "../../../store/api/token_path.ts";

const SESSION_BYTES = 16;
/** As in sealed tokens: deeper than any tree. */
const PATH_MAX = 12;
/** What a position of the path begins with. */
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

/** @throws CodecError */
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
