import { strict as assert } from "node:assert";
import { ConnectionWatch, Descriptors } from "./descriptors.ts";

const LATE_MS = 60_000;

class Look extends ConnectionWatch {
  read = -1;

  looked(read: number): void {
    this.read = read;
  }
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const lateMs = performance.now() + LATE_MS; !isSo();) {
    assert.ok(performance.now() < lateMs, what);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

Deno.test({
  name: "a watch whose connection is gone keeps no descriptor from the one that has it now (DS1)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const descriptors = new Descriptors();
    const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const open = async () => {
      const client = Deno.connect({ port: listener.addr.port, hostname: "127.0.0.1" });
      const [near, far] = [await listener.accept(), await client];
      const watch = new Look(near.remoteAddr);
      descriptors.watch(watch);
      await far.write(new Uint8Array(100));
      await near.read(new Uint8Array(100));
      await until("it is found and looked at", () => watch.read === 100);
      return { watch, close: () => [near, far].forEach((end) => end.close()) };
    };
    const first = await open(), { descriptor } = first.watch;
    first.close();
    const second = await open();
    assert.equal(second.watch.descriptor, descriptor, "another one was free: nothing is tried here");
    assert.equal(first.watch.descriptor, null);
    for (const { watch } of [first, second]) descriptors.end(watch);
    second.close();
    listener.close();
  },
});

Deno.test({
  name: "each of more connections than are looked at together is looked at",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const MANY = 1_500;
    const descriptors = new Descriptors();
    const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const ends: Deno.TcpConn[] = [], watches: Look[] = [];
    for (let i = 0; i < MANY; i++) {
      const client = Deno.connect({ port: listener.addr.port, hostname: "127.0.0.1" });
      const near = await listener.accept();
      ends.push(near, await client);
      watches.push(new Look(near.remoteAddr));
    }
    for (const watch of watches) descriptors.watch(watch);
    await until("all are looked at", () => watches.every(({ read }) => read === 0));
    for (const watch of watches) descriptors.end(watch);
    for (const end of ends) end.close();
    listener.close();
  },
});

Deno.test({
  name: "where no descriptor is left nobody is found, and nothing is thrown",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const script = `
      const { ConnectionWatch, Descriptors } = await import(Deno.args[0]);
      class Look extends ConnectionWatch { looked() {} }
      new Descriptors().watch(new Look({ transport: "tcp", hostname: "127.0.0.1", port: 1 }));
      const open = [];
      try { for (;;) open.push(Deno.openSync("/dev/null")); } catch { /* there are no more */ }
      await new Promise((resolve) => setTimeout(resolve, 300));
      for (const file of open) file.close();
      console.log("went on");
    `;
    const url = new URL("descriptors.ts", import.meta.url).href;
    const { stdout, stderr } = await new Deno.Command("sh", {
      args: ["-c", 'ulimit -n 256; exec "$0" eval --no-check "$1" "$2"', Deno.execPath(), script, url],
    }).output();
    assert.equal(new TextDecoder().decode(stdout), "went on\n", new TextDecoder().decode(stderr));
  },
});
