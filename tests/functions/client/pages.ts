/** Pages in virtual time, which can be gone from one moment to the next, and their storages. */
import { strict as assert } from "node:assert";
import { type Client, type ConnectOptions, connectWith } from "../../../functions/client/client.ts";
import type { ClientHost, StorageChange } from "../../../functions/client/ports.ts";
import { MemoryClientStorage } from "../../../functions/client/storage.ts";
import type { VirtualHost } from "./virtual_host.ts";

/** A client with one socket. */
export interface Page {
  readonly client: Client;
  readonly socket: WebSocket;
  readonly got: string[];
  readonly events: string[];
}

export async function opened(
  world: VirtualHost,
  host: ClientHost = world,
  more: Partial<ConnectOptions> = {},
): Promise<Page> {
  const client = await world.run(connectWith(host, { sites: "http://edge-1.test/table", ...more }));
  const socket = new client.WebSocket("/7");
  const got: string[] = [], events: string[] = [];
  for (const name of ["open", "error", "away", "back"]) {
    socket.addEventListener(name, () => events.push(name));
  }
  socket.addEventListener(
    "close",
    ({ code, reason, wasClean }) => events.push(`close ${code} ${reason} ${wasClean}`),
  );
  socket.addEventListener("message", ({ data }) => got.push(String(data)));
  return { client, socket, got, events };
}

export const until = async (world: VirtualHost, holds: () => boolean, what: string) => {
  for (let i = 0; !holds(); i++) {
    assert(i < 10_000, what);
    await world.pass(20);
  }
};

/** A storage whose disk takes its time: what is not there when its page ends is lost. */
export class SlowStorage extends MemoryClientStorage {
  readonly #world: VirtualHost;
  readonly #gone: () => boolean;
  constructor(world: VirtualHost, kept: readonly (readonly [string, Uint8Array])[], gone: () => boolean) {
    super(kept);
    this.#world = world;
    this.#gone = gone;
  }
  override async commit(changes: readonly StorageChange[]): Promise<void> {
    await new Promise<void>((resolve) => this.#world.after(4, resolve));
    if (this.#gone()) await new Promise(() => {});
    await super.commit(changes);
  }
}

/** A page in the world, which can be gone from one moment to the next. */
export function pageOf(world: VirtualHost): { host: ClientHost; isGone: () => boolean; gone: () => void } {
  let isGone = false;
  const sockets = new Set<() => void>();
  const host: ClientHost = {
    base: null,
    nowMs: () => world.nowMs(),
    after: (ms, run) => world.after(ms, () => isGone ? undefined : run()),
    fetch: (input, init) =>
      world.fetch(input, init).then((answer) => isGone ? new Promise(() => {}) : answer),
    open: (url, options, listener) => {
      const socket = world.open(url, options, {
        opened: (protocol) => isGone ? undefined : listener.opened(protocol),
        message: (data) => isGone ? undefined : listener.message(data),
        closed: (code, reason) => isGone ? undefined : listener.closed(code, reason),
      });
      sockets.add(() => socket.close(1001));
      return { ...socket, send: (data) => isGone ? undefined : socket.send(data) };
    },
    openElsewhere: () => world.openElsewhere(),
    draw: () => world.draw(),
    number: () => world.number(),
  };
  const gone = () => {
    isGone = true;
    for (const close of sockets) close();
  };
  return { host, isGone: () => isGone, gone };
}
