/**
 * Ends the connection of a WebSocket at once. Deno's own `close` waits for the other side to close, for ever, and goes on
 * taking what it sends meanwhile: who has sent half of a message and then nothing keeps that half in our memory. There is
 * no public way to end it, so this takes the one that Deno's WebSocket takes itself where a ping is not answered: its
 * resource is closed. `cut_socket_test.ts` fails where a new version of Deno has another.
 */

interface Internals {
  readonly core?: { readonly tryClose?: (resource: number) => void };
}

/** Ends it; `close` is dispatched as for a connection that was lost. What was closed already stays so. */
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
