/** Packets between homes, and beside a site of the version before (functions/sessions/log/exchange.ts). */
import { strict as assert } from "node:assert";
import type { Reply, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import { LogExchange } from "../../../../functions/sessions/log/exchange.ts";
import { ASK_RETRY_MS } from "../../../../functions/sessions/log/limits.ts";
import {
  BOOT_MIN,
  decodeLogPacket,
  encodeLogPacket,
  type LogPacket,
} from "../../../../functions/sessions/log/packet.ts";

const name = { app: "shop", class: "cart", id: "a" };
const look: SiteAsk = { kind: "look", name };
const BOOT = BOOT_MIN + 5, OLD = BOOT_MIN - 1;

function started(handle: (ask: SiteAsk) => Reply = () => ({ kind: "nobody" })) {
  let nowMs = 0;
  const link = { takes: () => Promise.resolve() };
  const sent: LogPacket[] = [], witnesses: number[] = [];
  const exchange = new LogExchange({
    site: "edge-1",
    boot: BOOT,
    clock: {
      nowMs: () => nowMs,
      steadyMs: () => nowMs,
      after: () => () => {},
      turn: () => Promise.resolve(),
    },
    nowMs: () => nowMs,
    send: (_to, packet) => {
      sent.push(decodeLogPacket(packet));
      return link.takes();
    },
    witness: () => 7,
    heard: (_from, position) => void witnesses.push(position),
    handle: (_from, ask) => Promise.resolve(handle(ask)),
    count: () => {},
  });
  const turns = () => new Promise((resolve) => setTimeout(resolve));
  return {
    ...{ exchange, witnesses, turns, link },
    /** What was sent since the last time. */
    sent: async () => {
      await turns();
      return sent.splice(0);
    },
    pass: (ms: number) => {
      nowMs += ms;
      exchange.tick();
    },
    /** A packet of the version before. */
    old: (packet: Partial<LogPacket>) =>
      exchange.received("cloud", encodeLogPacket({ boot: OLD, to: 0, asks: [], replies: [], ...packet })),
  };
}

const kinds = ({ asks }: LogPacket) => asks.map(({ body }) => body.kind);

/** A packet of another process of this version. */
const packetOf = (packet: Partial<LogPacket>) =>
  encodeLogPacket({ boot: BOOT + 1, to: BOOT, witness: 0, asks: [], replies: [], ...packet });

Deno.test("a reply to another process of this site is none (X2)", async () => {
  const { exchange, sent } = started();
  const asking = exchange.ask("cloud", look);
  const [packet] = await sent();
  const number = packet?.asks[0]?.number ?? 0;
  exchange.received("cloud", packetOf({ to: BOOT - 1, replies: [{ number, body: { kind: "nobody" } }] }));
  const body = { kind: "row", outcome: "granted", row: null } as const;
  exchange.received("cloud", packetOf({ replies: [{ number, body }] }));
  assert.deepEqual(await asking.reply, body);
});

Deno.test("what is asked while a packet is on its way into a link goes with the next (X3)", async () => {
  const { exchange, sent, turns, link } = started();
  exchange.received("cloud", packetOf({}));
  const taken = Promise.withResolvers<void>();
  link.takes = () => taken.promise;
  exchange.ask("cloud", look);
  assert.equal((await sent()).length, 1);
  exchange.ask("cloud", look);
  await turns();
  exchange.ask("cloud", look);
  assert.equal((await sent()).length, 0);
  taken.resolve();
  assert.deepEqual((await sent()).map(kinds), [["look", "look"]]);
});

Deno.test("who was never heard is asked in the second form, and greeted in the first where it does not answer (X4)", async () => {
  const { exchange, sent, pass } = started();
  exchange.ask("cloud", look);
  const [first, ...none] = await sent();
  assert.deepEqual([first?.witness, first && kinds(first), none.length], [7, ["look"], 0]);
  pass(ASK_RETRY_MS);
  const again = await sent();
  assert.deepEqual(again.map((one) => [one.witness, kinds(one)]), [[undefined, ["greet"]], [7, ["look"]]]);
  assert.equal(again[0]?.boot, BOOT, "it says by its number that it reads the second form");
});

Deno.test("a site of the version before is sent the first form, and what was asked of it goes again at once (X4)", async () => {
  const { exchange, sent, old, witnesses } = started();
  const asking = exchange.ask("cloud", look);
  await sent();
  old({ asks: [{ number: 1, body: { kind: "greet" } }] });
  const packets = await sent();
  assert.ok(packets.every(({ witness }) => witness === undefined));
  const [asked] = packets.flatMap(({ asks }) => asks);
  assert.deepEqual(asked?.body, look);
  old({
    to: BOOT,
    replies: [{ number: asked?.number ?? 0, body: { kind: "row", outcome: "granted", row: null } }],
  });
  assert.deepEqual(await asking.reply, { kind: "row", outcome: "granted", row: null });
  assert.deepEqual(witnesses, [0, 0], "it has heard of no step");
});

Deno.test("what a site of the version before can't be asked, or told, is nobody's (X4)", async () => {
  const { exchange, sent, old } = started(() => ({ kind: "waits", sites: ["edge-2"] }));
  const before = exchange.ask("cloud", { kind: "recall", name });
  await sent();
  old({ asks: [{ number: 9, body: look }] });
  assert.deepEqual(await before.reply, { kind: "nobody" });
  assert.deepEqual(await exchange.ask("cloud", { kind: "witness" }).reply, { kind: "nobody" });
  const packets = await sent();
  assert.deepEqual(packets.flatMap(({ asks }) => asks), []);
  assert.deepEqual(packets.flatMap(({ replies }) => replies), [{ number: 9, body: { kind: "nobody" } }]);
});

Deno.test("a process whose number is of the version before is none", () => {
  const { exchange } = started();
  const ports = { boot: OLD } as ConstructorParameters<typeof LogExchange>[0];
  assert.throws(() => new LogExchange(ports), RangeError);
  exchange.close();
});
