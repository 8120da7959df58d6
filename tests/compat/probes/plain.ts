/** The probes in plain Deno: runs the bundle at the first argument, with the echo server at the second. */
const { default: app } = await import(Deno.args[0] ?? "") as {
  default: { fetch(request: Request): Promise<Response> };
};
const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => app.fetch(request));
const url = `http://127.0.0.1:${server.addr.port}/?echo=${Deno.args[1]}`;
const response = await fetch(url, { headers: { "x-probe": "here" } });
console.log(await response.text());
await server.shutdown();
Deno.exit(0);
