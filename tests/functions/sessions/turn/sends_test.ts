/** What a stateful session sends to queues, as part of its turns (functions/sessions/turn/sends.ts). */
import { strict as assert } from "node:assert";
import * as z from "zod";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import type { MessageToSend } from "../../../../functions/queue.ts";
import { RequestQueue } from "../../../../functions/request_queue.ts";
import type { HandledEvent } from "../../../../functions/sessions/turn/mod.ts";
import type { Program } from "../../../../functions/sessions/turn/program.ts";
import { HANDLER_SEND_BYTES_MAX, HANDLER_SENDS_MAX } from "../../../../functions/sessions/turn/sends.ts";
import { ProgramQueues } from "../../../../functions/sessions/turn/session_queues.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { inMacrotask } from "./run.ts";
import { Solo } from "./solo.ts";

interface Env {
  readonly jobs: RequestQueue;
}

const envOf = (program: Program): Env => ({
  jobs: new RequestQueue("jobs", { schema: z.object({ n: z.number() }) }, new ProgramQueues(program)),
});

class Sender extends Session<Env> {
  sent = 0;

  async send(): Promise<string> {
    await this.env.jobs.send({ n: 1 }, { id: "one", delayMs: 1.5, ttlMs: 10 });
    await this.env.jobs.sendBatch([{ body: { n: 2 } }, { body: { n: 3 }, delayMs: 7 }]);
    this.sent += 3;
    return "sent";
  }

  async fails(): Promise<void> {
    await this.env.jobs.send({ n: 4 });
    throw new Error("on purpose");
  }

  async wrong(): Promise<string> {
    const options: MessageToSend[] = [{ body: { n: "five" } }, { body: { n: 5 }, delayMs: -1 }];
    const codes: string[] = [];
    for (const { body, ...option } of options) {
      await this.env.jobs.send(body, option).catch(({ code }) => codes.push(code));
    }
    return codes.join();
  }

  async many(count: number, calls: number): Promise<string> {
    let sent = 0;
    try {
      for (; sent < calls; sent++) {
        await this.env.jobs.sendBatch(Array.from({ length: count }, (_, n) => ({ body: { n } })));
      }
      return `${sent} calls`;
    } catch (error) {
      return `${sent} calls, then ${(error as { code: string }).code}`;
    }
  }
}

let requests = 0;
const request = (method: string, ...args: unknown[]): HandledEvent => ({
  kind: "request",
  request: `r${++requests}`,
  chain: [],
  bytes: encodeCall({ kind: "rpc", method, args: encodeValue(args) }),
});

function answer({ commits }: Solo): unknown {
  const output = commits.at(-1)?.outputs.at(-1);
  const read = decodeAnswer(output?.bytes ?? new Uint8Array(0));
  return read.kind === "value" ? decodeValue(read.value) : read.kind;
}

const sendsOf = ({ commits }: Solo) =>
  commits.flatMap(({ effects }) => effects).flatMap(({ sends = [] }) => sends)
    .map(({ body, ...send }) => ({ ...send, body: decodeValue(body) }));

Deno.test("what a handler sends is part of its turn at once, leaves with its commit, and a replay sends the same again (session_queues.ts PQ1)", () =>
  inMacrotask(() => {
    const solo = new Solo(Sender, envOf).open().deliver(request("send"));
    assert.equal(answer(solo), "sent");
    assert.deepEqual(sendsOf(solo), [
      { queue: "jobs", id: "one", delayMs: 2, ttlMs: 10, body: { n: 1 } },
      { queue: "jobs", body: { n: 2 } },
      { queue: "jobs", delayMs: 7, body: { n: 3 } },
    ]);
    const effects = solo.commits.flatMap(({ effects }) => effects);
    assert.deepEqual(effects.map(({ effect, mutations }) => [effect, mutations]), [[1, []]]);
    const again = new Solo(Sender, envOf).open({ entries: solo.entries });
    assert.deepEqual([again.parked, again.opened?.effects], [null, effects]);
    // What the log says to be stored is not given out again.
    const applied = new Solo(Sender, envOf).open({ entries: solo.entries, effectsApplied: 1 });
    assert.deepEqual([applied.parked, applied.opened?.effects], [null, []]);
  }));

Deno.test("what nobody has acknowledged to be stored is in the checkpoint, and given out when that is opened", () =>
  inMacrotask(() => {
    const solo = new Solo(Sender, envOf).open().deliver(request("send"));
    solo.loop.checkpointNow(1);
    solo.run();
    const [checkpoint] = solo.checkpoints;
    assert.ok(checkpoint !== undefined);
    const again = new Solo(Sender, envOf).open({ checkpoint });
    assert.deepEqual(again.opened?.effects, solo.commits.flatMap(({ effects }) => effects));
    solo.loop.acknowledge(1, { outputs: {}, effects: 1 });
    solo.deliver(request("wrong"));
    solo.loop.checkpointNow(1);
    solo.run();
    const without = new Solo(Sender, envOf).open({ checkpoint: solo.checkpoints.at(-1) ?? null });
    assert.deepEqual([without.parked, without.opened?.effects], [null, []]);
  }));

Deno.test("a handler that throws has sent nothing, and the number of its effect is not given again", () =>
  inMacrotask(() => {
    const solo = new Solo(Sender, envOf).open().deliver(request("fails")).deliver(request("send"));
    assert.deepEqual(sendsOf(solo).map(({ body }) => body), [{ n: 1 }, { n: 2 }, { n: 3 }]);
    assert.deepEqual(solo.commits.flatMap(({ effects }) => effects).map(({ effect }) => effect), [2]);
  }));

Deno.test("a message that can't be sent fails its send, and nothing else", () =>
  inMacrotask(() => {
    const solo = new Solo(Sender, envOf).open().deliver(request("wrong"));
    assert.equal(answer(solo), "message_invalid,message_invalid");
    assert.deepEqual(sendsOf(solo), []);
  }));

Deno.test("a handler sends so many messages and no more, and the next one as many again (sends.ts TS1)", () =>
  inMacrotask(() => {
    const solo = new Solo(Sender, envOf).open();
    const calls = HANDLER_SENDS_MAX / 400;
    solo.deliver(request("many", 400, calls));
    assert.equal(answer(solo), `${calls} calls`);
    solo.deliver(request("many", 400, calls + 1));
    assert.equal(answer(solo), `${calls} calls, then limit_message`);
    assert.equal(sendsOf(solo).length, 2 * HANDLER_SENDS_MAX);
  }));

Deno.test("a handler sends so many bytes and no more (sends.ts TS1)", () =>
  inMacrotask(() => {
    const results: string[] = [];
    const direct = (program: Program) => ({
      jobs: {
        sendBatch: () => {
          const body = new Uint8Array(1 << 20), most = HANDLER_SEND_BYTES_MAX >> 20;
          const queues = new ProgramQueues(program);
          const all = Array.from({ length: most + 1 }, () => queues.send("jobs", [{ body }]));
          return Promise.allSettled(all).then((said) => results.push(...said.map(({ status }) => status)));
        },
      },
    });
    const solo = new Solo(Sender, direct).open().deliver(request("many", 1, 1));
    assert.equal(solo.parked, null);
    assert.deepEqual(results.indexOf("rejected"), HANDLER_SEND_BYTES_MAX >> 20);
    assert.equal(results.filter((one) => one === "rejected").length, 1);
  }));
