/**
 * The byte connection as a link uses it: whole writes, and the topology's delay, rate and loss added to what goes
 * out (Emulation). An unshaped wire passes bytes straight through.
 */
import { RECORD_BYTES_SOFT } from "./limits.ts";
import { type ByteConnection, closeQuietly, writeAll } from "./transport.ts";

export class Wire {
  readonly #connection: ByteConnection;

  constructor(connection: ByteConnection) {
    this.#connection = connection;
  }

  /** How much to put into one record, so that a slow link is not blocked by one for long. */
  get recordBytes(): number {
    return RECORD_BYTES_SOFT;
  }

  read(into: Uint8Array): Promise<number | null> {
    return this.#connection.read(into);
  }

  write(bytes: Uint8Array): Promise<void> {
    return writeAll(this.#connection, bytes);
  }

  close(): void {
    closeQuietly(this.#connection);
  }
}
