/** An app that does what it should, beside one that does what it can: sums, and a socket that says what it heard. */
import { defineApp, type EnvOf } from "sojourn";

type Env = EnvOf<Record<never, never>>;

export default defineApp({
  name: "steady",
  async fetch(request, env: Env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/socket") {
      const { socket, response } = Deno.upgradeWebSocket(request);
      socket.onmessage = ({ data }) => socket.send(data);
      return response;
    }
    const key = ["sum", pathname];
    if (request.method === "POST") {
      await env.kv.atomic().sum(key, 1).commit();
      return new Response("added", { status: 201 });
    }
    const { value } = await env.kv.get<number>(key);
    return Response.json(value ?? 0);
  },
});
