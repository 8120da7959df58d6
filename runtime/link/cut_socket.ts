/**
 * Cutting off of a WebSocket's connection. Deno's own `close` waits for the other side to close, for ever, and goes on
 * taking what that sends meanwhile: a client that has sent half of a message and then nothing keeps that half in our
 * memory. There is no public way to end the connection, so this closes its resource, as Deno's WebSocket does itself
 * where a ping is not answered. `cut_socket_test.ts` fails where a new version of Deno does otherwise.
 */

interface Internals {
  readonly core?: { readonly tryClose?: (resource: number) => void };
}

/** Ends the connection; `close` is dispatched as for a connection that was lost. A closed one stays as it is. */
export function cutSocket(socket: WebSocket): void {
  const { core } = internals();
  const name = Object.getOwnPropertySymbols(socket).find(({ description }) => description === "[[rid]]");
  const resource = name === undefined ? undefined : Object.getOwnPropertyDescriptor(socket, name)?.value;
  if (typeof resource === "number") core?.tryClose?.(resource);
  else if (socket.readyState < WebSocket.CLOSING) socket.close();
}

function internals(): Internals {
  const { internal } = Deno as unknown as { readonly internal: symbol };
  return (Deno as unknown as Record<symbol, Internals | undefined>)[internal] ?? {};
}
