/**
 * What a session has seen (store/api/api.ts: TokenState) as bytes between sites and on their disks, where nobody but the
 * cluster reads it: sealed, it would expire.
 */
import type { Reader, Writer } from "../../store/model/codec.ts";
import { CodecError } from "../../store/model/codec.ts";
import type { TokenState } from "../../store/api/api.ts";

const SESSION_BYTES = 16;
/** As in sealed tokens: deeper than any tree. */
const PATH_MAX = 12;

/** Writes a token, or that there is none. */
export function writeToken(writer: Writer, token: TokenState | null): void {
  writer.flag(token !== null);
  if (token === null) return;
  writer.raw(token.session).uint(token.sequence).uint(token.replica).uint(token.clock).flag(token.open);
  writer.list(token.path, (position) => {
    writer.flag(position !== null);
    if (position !== null) writer.uint(position);
  });
}

/** @throws CodecError */
export function readToken(reader: Reader): TokenState | null {
  if (!reader.flag()) return null;
  const session = Uint8Array.from({ length: SESSION_BYTES }, () => reader.byte());
  const token = {
    session,
    sequence: reader.uint(),
    replica: reader.uint(),
    clock: reader.uint(),
    open: reader.flag(),
    path: reader.list(() => reader.flag() ? reader.uint() : null),
  };
  if (token.path.length > PATH_MAX) throw new CodecError(`a path has at most ${PATH_MAX} positions`);
  return token;
}
