import { strict as assert } from "node:assert";
import { FreePorts, isFree } from "./free_port.ts";

/** So few that whoever draws at random would soon draw one of another's. */
const MIN = 29_000, MAX = MIN + 24;
const MODULE = new URL("./free_port.ts", import.meta.url).href;

/** A port that nobody else comes by: above those that are drawn, below those of outgoing connections. */
function freeOfAll(): number {
  for (let port = 32_000; port < 32_768; port++) if (isFree(port)) return port;
  throw new Error("somebody listens on all of them");
}

async function draw(ports: FreePorts, count: number): Promise<number[]> {
  const drawn: number[] = [];
  for (let i = 0; i < count; i++) drawn.push(await ports.draw());
  return drawn;
}

Deno.test("nobody else draws a port that is held, in another process neither (FP1)", async () => {
  using one = new FreePorts(MIN, MAX), other = new FreePorts(MIN, MAX);
  const held = new Set([...await draw(one, 6), ...await draw(other, 6)]);
  assert.equal(held.size, 12);
  const code = `import { FreePorts } from ${JSON.stringify(MODULE)};
    const ports = new FreePorts(${MIN}, ${MAX}), drawn = [];
    for (let i = 0; i < 6; i++) drawn.push(await ports.draw());
    console.log(JSON.stringify(drawn));`;
  const { stdout, success } = await new Deno.Command(Deno.execPath(), { args: ["eval", code] }).output();
  assert.ok(success, "a process that holds ports ends");
  const elsewhere = JSON.parse(new TextDecoder().decode(stdout)) as number[];
  assert.deepEqual(elsewhere.filter((port) => held.has(port)), []);
});

Deno.test("a port on which somebody listens is not drawn, and one that is let go is again", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: freeOfAll() });
  const { port } = listener.addr;
  using ports = new FreePorts(port, port + 1);
  await assert.rejects(ports.draw(), /no free port of 127\.0\.0\.1 from \d+ to \d+ in 200 tries/);
  listener.close();
  assert.equal(await ports.draw(), port);
  using again = new FreePorts(port, port + 1);
  await assert.rejects(again.draw());
  ports[Symbol.dispose]();
  let drawn: number | null = null;
  for (let tries = 0; drawn === null && tries < 1_000; tries++) {
    drawn = await again.draw().catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(drawn, port);
});
