/** What carries a link's bytes, whatever it is: a socket, a WebSocket, a pipe in memory. */

/** A reliable, ordered byte connection. `Deno.Conn` is one. */
export interface ByteConnection {
  /** At least one byte, or null when the other side has closed. */
  read(into: Uint8Array): Promise<number | null>;
  /** Some of the bytes; resolves when the connection has taken them and `bytes` may be reused. */
  write(bytes: Uint8Array): Promise<number>;
  /** Makes reads and writes that are under way fail or end. Closing twice may throw. */
  close(): void;
  /** Its other end has proved that it is a member: until then it may have no more under way than a handshake. */
  proved?(): void;
  /** Resolves when nothing of it is left; where there is none, that is when `close` returns. */
  readonly closed?: Promise<void>;
}

/** Writes all of the bytes. */
export async function writeAll(connection: ByteConnection, bytes: Uint8Array): Promise<void> {
  let done = 0;
  while (done < bytes.length) done += await connection.write(done === 0 ? bytes : bytes.subarray(done));
}

/** Closes a connection that may be closed already. */
export function closeQuietly(connection: { close(): void }): void {
  try {
    connection.close();
  } catch {
    // It was closed by the other side or by a time limit: that is what we wanted.
  }
}
