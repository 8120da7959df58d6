/** Sends more than its clients take, and says what of it is still to be sent. */
import { defineApp } from "sojourn";

const MESSAGES = 20;
const sockets = new Set<WebSocket>();

export default defineApp({
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/buffered") {
      return Response.json([...sockets].map(({ bufferedAmount }) => bufferedAmount));
    }
    const { socket, response } = Deno.upgradeWebSocket(request);
    sockets.add(socket);
    socket.onclose = () => sockets.delete(socket);
    socket.onopen = () => {
      for (let i = 0; i < MESSAGES; i++) socket.send(new Uint8Array(1 << 20).fill(i + 1));
    };
    return response;
  },
});
