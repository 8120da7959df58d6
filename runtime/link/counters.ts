/** Counters of the traffic with one site, over all its connections. */

/** Counters of a link; bytes are bytes on the wire of that kind's frames, headers included. */
export interface LinkCounters {
  /** Bytes of everything, with handshakes, record headers and MACs. */
  bytesIn: number;
  bytesOut: number;
  /** Number of the store's messages. A row that no site below reads adds nothing here. */
  storeMessagesIn: number;
  storeMessagesOut: number;
  storeBytesIn: number;
  storeBytesOut: number;
  /** Number of requests of either direction: forwarded HTTP requests, admin calls, logs; heads and bodies. */
  requestsIn: number;
  requestsOut: number;
  requestBytesIn: number;
  requestBytesOut: number;
  /** Number of connections admitted so far. */
  connections: number;
}

export function zeroCounters(): LinkCounters {
  return {
    bytesIn: 0,
    bytesOut: 0,
    storeMessagesIn: 0,
    storeMessagesOut: 0,
    storeBytesIn: 0,
    storeBytesOut: 0,
    requestsIn: 0,
    requestsOut: 0,
    requestBytesIn: 0,
    requestBytesOut: 0,
    connections: 0,
  };
}
