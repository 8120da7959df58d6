/** Stateful sessions whose hosts hold the log, over the host of stateful sessions: its runs, real homes, and a disk that is lost. */
import assert from "node:assert/strict";
import { type From, Session } from "../../functions/session.ts";
import { HostLog } from "../../functions/sealed_log/mod.ts";
import type { SessionObject } from "../../functions/turns/handler.ts";
import { check, Client, soon, until } from "./host_client.ts";
import { Disks, type MemoryHost, memoryHost } from "./memory_host.ts";

class Counter extends Session {
  count = 0;

  override onMessage(message: string | Uint8Array, from: From): void {
    from.send(`${++this.count} ${message}`);
  }
}

const counter = () => new Counter() as unknown as SessionObject;
const hosts = { durability: "hosts" } as const;

/** A client that holds the log. */
const holder = (host: MemoryHost, instance: number) => new Client(host, instance, new HostLog());

const isAhead = ({ homes }: MemoryHost) => homes.status().counters["configured"] ?? 0;

Deno.test("a session goes on when its home and its only disk are gone, from what its host holds", async () => {
  const disks = new Disks();
  const first = await memoryHost(counter, { disks, ...hosts });
  const client = holder(first, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  await until("its host is on record", () => isAhead(first) > 1);
  for (let i = 1; i <= 5; i++) client.side.send(`m${i}`);
  await until("all is heard", () => client.heard.length === 5);
  disks.crash({ homes: true });
  const dead = first[Symbol.asyncDispose]();
  client.moveTo(null);
  client.side.send("m6");
  await using second = await memoryHost(counter, { disks, ...hosts });
  client.moveTo(second);
  client.connect();
  await until("it goes on", () => client.heard.length === 6 && client.side.acknowledged === 6);
  check([client], [["m1", "m2", "m3", "m4", "m5", "m6"]]);
  assert.equal(second.homes.status().counters["from_hosts"], 1);
  await client.end();
  await dead;
});

Deno.test("a session whose hosts hold the log goes on after rests and lost isolates, its host ahead again", async () => {
  await using host = await memoryHost(counter, { idleMs: 30, ...hosts });
  const client = holder(host, 1);
  client.connect();
  await until("it is attached", () => client.side.stage === "open");
  const sent: string[] = [];
  for (let i = 1; i <= 6; i++) {
    client.side.send(`m${i}`);
    sent.push(`m${i}`);
    await until("it is heard", () => client.heard.length === i);
    if (i % 2 === 0) host.loseIsolates();
    else await soon(150);
  }
  await until("all is in the log", () => client.side.acknowledged === 6);
  check([client], [sent]);
  client.side.close();
  await until("it has left", () => client.problem !== null);
  assert.match(client.problem ?? "", /"bye"/);
  await client.end();
});
