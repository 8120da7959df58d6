/**
 * The site's end of a WebSocket that a client asks for. Deno upgrades a connection also where its client has gone since it
 * asked: such a WebSocket never opens and never closes, and the connection, with what it had sent, is kept until the
 * process ends. So it is looked for the client first; `accept_socket_test.ts` says whether that is still needed.
 */

import { setImmediate } from "node:timers";

/** Takes the connection of a request; null where its client has gone. @throws TypeError for what is no handshake. */
export async function acceptSocket(
  request: Request,
  options: Deno.UpgradeWebSocketOptions = {},
): Promise<Deno.WebSocketUpgrade | null> {
  const { signal } = request;
  await new Promise((resolve) => setImmediate(resolve)); // a signal that nobody has looked at tells a little later
  return signal.aborted ? null : Deno.upgradeWebSocket(request, options);
}

/** To a client that has gone: nobody reads it (the status as proxies log it). */
export const goneAnswer = (): Response => new Response(null, { status: 499 });
