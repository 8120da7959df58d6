/** The smallest app: a fetch handler that counts in its key-value store. */
import { defineApp } from "sojourn";

export default defineApp({
  name: "app-name",
  async fetch(_request, env) {
    await env.kv.atomic().sum(["visits"], 1n).commit();
    const { value } = await env.kv.get(["visits"]);
    return new Response(`Hello, visitor ${value}\n`);
  },
});
