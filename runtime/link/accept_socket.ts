/**
 * Upgrade of a client's request to a WebSocket. Deno upgrades a connection also where its client has gone since it
 * asked: such a WebSocket never opens and never closes, and the connection, with what it had sent, is kept until the
 * process ends. So it is checked first that the client is still there; `accept_socket_test.ts` shows whether that is
 * still needed.
 */

import { setImmediate } from "node:timers";

/**
 * Upgrades a request to a WebSocket; null where its client has gone. @throws TypeError for a request that is no
 * handshake.
 */
export async function acceptSocket(
  request: Request,
  options: Deno.UpgradeWebSocketOptions = {},
): Promise<Deno.WebSocketUpgrade | null> {
  const { signal } = request;
  await new Promise((resolve) => setImmediate(resolve)); // a signal first looked at now tells a little later
  return signal.aborted ? null : Deno.upgradeWebSocket(request, options);
}

/** Returns the answer to a client that has gone: nobody reads it (the status as proxies log it). */
export const goneAnswer = (): Response => new Response(null, { status: 499 });
