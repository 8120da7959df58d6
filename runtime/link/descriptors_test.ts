import { strict as assert } from "node:assert";
import { connect } from "node:net";
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

/** Connections of two peers that have one port, at two addresses; the first has sent 100 bytes, the second 200. */
async function twins() {
  const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const free = Deno.listen({ port: 0, hostname: "127.0.0.1" }), { port: localPort } = free.addr;
  free.close();
  const open = async (localAddress: string, bytes: number) => {
    const far = connect({ host: "127.0.0.1", port: listener.addr.port, localAddress, localPort });
    const near = await listener.accept();
    far.write(new Uint8Array(bytes));
    for (let read = 0; read < bytes;) read += await near.read(new Uint8Array(bytes)) ?? 0;
    assert.deepEqual([near.remoteAddr.hostname, near.remoteAddr.port], [localAddress, localPort]);
    return { near, far };
  };
  const first = await open("127.0.0.1", 100), second = await open("127.0.0.2", 200);
  return {
    port: listener.addr.port,
    first: first.near.remoteAddr,
    second: second.near.remoteAddr,
    async [Symbol.asyncDispose]() {
      for (const { near, far } of [first, second]) {
        const closed = new Promise((resolve) => far.once("close", resolve));
        far.destroy();
        near.close();
        await closed;
      }
      listener.close();
    },
  };
}

Deno.test({
  name: "of two peers that have one port, at two addresses, neither is taken for the other (DS1)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using peers = await twins();
    const descriptors = new Descriptors();
    const first = new Look(peers.first), second = new Look(peers.second);
    const nobody = new Look({ ...peers.first, hostname: "127.0.0.3" });
    const watches = [nobody, second, first]; // not in the order of their descriptors
    for (const watch of watches) descriptors.watch(watch);
    await until("both are looked at", () => first.read >= 0 && second.read >= 0);
    assert.deepEqual([first.read, second.read, nobody.read], [100, 200, -1]);

    assert.ok(descriptors.isStill(first) && descriptors.isStill(second));
    const other = new Look(peers.second);
    other.descriptor = first.descriptor; // as if the second had it by now, or had had it before
    assert.equal(descriptors.isStill(other), false);
    for (const watch of watches) descriptors.end(watch);
  },
});

Deno.test({
  name: "of two peers that have one port each is met with its own address, at the port where it came in",
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using peers = await twins();
    const descriptors = new Descriptors(), leave = descriptors.keep();
    const met = async (port: number) => {
      const hosts: string[] = [];
      for await (const { peer } of descriptors.connectionsAt(port)) hosts.push(peer.hostname);
      return hosts.sort();
    };
    assert.deepEqual(await met(peers.port), ["127.0.0.1", "127.0.0.2"]);
    assert.deepEqual(await met(peers.first.port), ["127.0.0.1", "127.0.0.1"], "their other ends");
    assert.deepEqual(await met(1), []);
    leave();
  },
});

Deno.test({
  name: "a watch whose connection is gone has no descriptor any more (DS1)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const descriptors = new Descriptors();
    const watch = await (async () => {
      await using peers = await twins();
      const watch = new Look(peers.first);
      descriptors.watch(watch);
      await until("it is looked at", () => watch.read === 100);
      return watch;
    })();
    await until("it is lost", () => watch.descriptor === null);
    descriptors.end(watch);
  },
});

/** Counts how often libc is opened and closed, until it is disposed of; it may be that it can't be opened. */
function countLibrary(isThere = true) {
  const { dlopen } = Deno, count = { opened: 0, closed: 0 };
  Object.assign(Deno, {
    dlopen: (name: string, calls: Deno.ForeignLibraryInterface) => {
      count.opened++;
      if (!isThere) throw new Error("there is none");
      const library = dlopen(name, calls);
      return {
        symbols: library.symbols,
        close() {
          count.closed++;
          library.close();
        },
      };
    },
  });
  return { count, [Symbol.dispose]: () => void Object.assign(Deno, { dlopen }) };
}

Deno.test({
  name:
    "libc stays open while it is kept, however often the watches drop to none, and is closed when nobody needs it",
  ignore: Deno.build.os !== "linux",
  async fn() {
    using library = countLibrary();
    await using peers = await twins();
    const descriptors = new Descriptors();
    const watchOnce = async () => {
      const watch = new Look(peers.first);
      descriptors.watch(watch);
      await until("it is looked at", () => watch.read === 100);
      descriptors.end(watch);
    };
    await watchOnce();
    assert.deepEqual(library.count, { opened: 1, closed: 1 }, "nobody keeps it");
    const leave = descriptors.keep();
    for (let i = 0; i < 3; i++) await watchOnce();
    assert.deepEqual(library.count, { opened: 2, closed: 1 });
    leave();
    assert.deepEqual(library.count, { opened: 2, closed: 2 });
  },
});

/** Nobody is found or met, and nothing is thrown. */
async function findsNobody(): Promise<void> {
  await using peers = await twins();
  const descriptors = new Descriptors(), watch = new Look(peers.first), leave = descriptors.keep();
  descriptors.watch(watch);
  for await (const _ of descriptors.connectionsAt(peers.port)) assert.fail("somebody was met");
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.deepEqual([watch.read, watch.descriptor, descriptors.isStill(watch)], [-1, null, false]);
  descriptors.end(watch);
  leave();
}

Deno.test({
  name: "where no foreign code may be called none is, and nobody is found (DS2)",
  ignore: Deno.build.os !== "linux", // elsewhere no other address of the loopback is there to connect from
  permissions: { net: true, read: true, ffi: false },
  async fn() {
    using library = countLibrary();
    await findsNobody();
    assert.equal(library.count.opened, 0);
  },
});

Deno.test({
  name: "where libc can't be opened nobody is found, and it is not tried again (DS2)",
  ignore: Deno.build.os !== "linux",
  async fn() {
    using library = countLibrary(false);
    await findsNobody();
    assert.equal(library.count.opened, 1);
  },
});
