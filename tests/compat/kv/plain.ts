/** The KV probes on Deno's own KV: the bundle at the argument, served for each of the paths that follow. */
const [bundle = "", ...paths] = Deno.args;
const openKv = Deno.openKv;
Object.defineProperty(Deno, "openKv", { value: () => openKv(":memory:") });
const served = Promise.withResolvers<(request: Request) => Response | Promise<Response>>();
Object.defineProperty(Deno, "serve", { value: served.resolve });
await import(bundle);
const handler = await served.promise, answers: Record<string, string> = {};
for (const path of paths) {
  Object.assign(answers, await (await handler(new Request(`http://localhost${path}`))).json());
}
// What handlers throw is told on the standard output, too.
console.log(`\n${JSON.stringify(answers)}`);
Deno.exit(0);
