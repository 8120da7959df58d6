import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { POLLED_EACH, POLLED_EACH_NAME, polledLate } from "./socket_polls.ts";

/** How many slices go by, at the median, from a byte that is sent to when it is read, in one process. */
const PROBE = `
const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
const [from, to] = await Promise.all([Deno.connect(listener.addr), listener.accept()]);
from.setNoDelay(true);
const bytes = new Uint8Array(1), all = [];
let slices = 0, isOver = false;
const slice = () => {
  slices++;
  for (const untilMs = performance.now() + 0.5; performance.now() < untilMs;);
  if (!isOver) setImmediate(slice);
};
slice();
for (let i = 0; i < 20; i++) {
  const read = to.read(bytes);
  await new Promise((resolve) => setTimeout(resolve, 1)); // it waits for the socket
  const before = slices;
  await from.write(bytes);
  await read;
  all.push(slices - before);
}
isOver = true;
for (const each of [from, to, listener]) each.close();
console.log(all.sort((a, b) => a - b)[10]);
`;

Deno.test("Deno looks at sockets as often as a site's process asks it to (SP1)", async () => {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", PROBE],
    env: { [POLLED_EACH_NAME]: `${POLLED_EACH}` },
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  const slices = Number(new TextDecoder().decode(stdout));
  assert.ok(slices <= 2 * POLLED_EACH, `${slices} slices`); // without it there are 56
});

Deno.test("a site says when its process was not started so, and the task starts it so (SP1)", async () => {
  const started = (said?: string) => polledLate({ get: () => said });
  for (const said of [undefined, "61", "0", "x"]) assert.match(started(said) ?? "", /EVENT_INTERVAL=4/);
  for (const said of ["1", `${POLLED_EACH}`]) assert.equal(started(said), null);
  const config = JSON.parse(await Deno.readTextFile(fileURLToPath(import.meta.resolve("../../deno.json"))));
  assert.ok(config.tasks.site.startsWith(`${POLLED_EACH_NAME}=${POLLED_EACH} deno run `));
});
