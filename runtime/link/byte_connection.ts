/** Interface of the byte connections that carry a link: a socket, a WebSocket, a pipe in memory. */

/** A reliable, ordered byte connection. `Deno.Conn` is one. */
export interface ByteConnection {
  /** Reads at least one byte; null when the other side has closed. */
  read(into: Uint8Array): Promise<number | null>;
  /** Writes some of the bytes; resolves when the connection has taken them and `bytes` may be reused. */
  write(bytes: Uint8Array): Promise<number>;
  /** Closes: makes reads and writes that are under way fail or end. Closing twice may throw. */
  close(): void;
  /**
   * Tells that the other end has proved that it is a member: until then it may have no more under way than a handshake.
   */
  proved?(): void;
  /** Resolves when the connection has ended entirely; where absent, that is when `close` returns. */
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
