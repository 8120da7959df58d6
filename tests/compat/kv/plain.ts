/** The KV probes on Deno's own KV: the bundle at the argument, served once. */
const openKv = Deno.openKv;
Object.defineProperty(Deno, "openKv", { value: () => openKv(":memory:") });
const served = Promise.withResolvers<(request: Request) => Response | Promise<Response>>();
Object.defineProperty(Deno, "serve", { value: served.resolve });
await import(Deno.args[0] ?? "");
const response = await (await served.promise)(new Request("http://localhost/run"));
console.log(await response.text());
Deno.exit(0);
