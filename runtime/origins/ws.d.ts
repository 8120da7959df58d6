/** Of npm:ws what is used here. Its published types bring Node's with them, for every file of this repository. */
import type { Buffer } from "node:buffer";

type Lookup = (
  host: string,
  options: { readonly all?: boolean },
  callback: {
    (error: null, address: string, family: number): void;
    (error: null, addresses: readonly { readonly address: string; readonly family: number }[]): void;
  },
) => void;

export interface ClientOptions {
  readonly perMessageDeflate: boolean;
  readonly handshakeTimeout: number;
  readonly maxPayload: number;
  readonly lookup: Lookup;
}

export class WebSocket {
  static readonly OPEN: 1;
  constructor(url: string, protocols: readonly string[], options: ClientOptions);
  readonly readyState: number;
  readonly bufferedAmount: number;
  on(event: "error", run: (error: Error) => void): void;
  on(event: "message", run: (data: Buffer | ArrayBuffer | Buffer[], isBinary: boolean) => void): void;
  once(event: "open", run: () => void): void;
  once(event: "close", run: (code: number, reason: Buffer) => void): void;
  send(message: string | Uint8Array): void;
  pause(): void;
  resume(): void;
  close(code: number, reason: string): void;
}
