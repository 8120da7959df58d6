/** The operators of the SMS gateway and its broker, without sites: what they decide. */
import assert from "node:assert/strict";
import type { QueueMessage } from "sojourn";
import app from "../../../examples/sms/app.ts";
import { handOver, writeDown } from "../../../examples/sms/broker.ts";
import { type Answer, type Env, Operator, OUT_MS, TICK_MS } from "../../../examples/sms/operator.ts";
import { ATTEMPTS_MAX, type Report, type TextMessage } from "../../../examples/sms/resources.ts";
import { SESSION_SLOT, type SessionPort, type SessionSlot } from "../../../functions/class/session_slot.ts";
import { readManifest } from "../../../functions/manifest.ts";

const slots = globalThis as { [SESSION_SLOT]?: SessionSlot };
const BEGUN_MS = 1_800_000_000_000;

/** One operator in this process, over a clock that the test moves. */
function open(id = "borealis") {
  const clock = { nowMs: BEGUN_MS };
  const rows: Report[] = [], reports: Report[] = [], told: Record<string, unknown>[] = [];
  const failures = new Map<string, { readonly why: string }>();
  let timer: number | null = null;
  const env = {
    queues: {
      reports: {
        sendBatch: (sent: Iterable<{ body: Report }>) => {
          for (const { body } of sent) reports.push(body);
          return Promise.resolve();
        },
      },
    },
    tables: {
      reports: {
        atomic: () => ({ put: (row: Report) => rows.push(row), commit: () => Promise.resolve() }),
      },
      operators: { put: (row: Record<string, unknown>) => Promise.resolve(told.push(row)) },
      failures: {
        put: (row: { id: string; why: string }) => Promise.resolve(failures.set(row.id, row)),
        delete: ([, id]: readonly [string, string]) => Promise.resolve(failures.delete(id)),
      },
    },
    sessions: { operator: { get: (name: string) => (asked.push(name), operator) } },
  };
  const asked: string[] = [];
  const port: SessionPort = {
    ...{ id, env, attached: () => [], end: () => {}, readCache: (_, load) => Promise.resolve(load()) },
    setTimer: (_, ms) => void (timer = clock.nowMs + ms),
    clearTimer: () => void (timer = null),
  };
  const before = slots[SESSION_SLOT];
  slots[SESSION_SLOT] = { making: port };
  const operator = new Operator();
  if (before === undefined) delete slots[SESSION_SLOT];
  else slots[SESSION_SLOT] = before;
  /** Time passes. */
  const pass = async (ms: number) => {
    const untilMs = clock.nowMs + ms;
    while (timer !== null && timer <= untilMs) {
      clock.nowMs = timer;
      timer = null;
      await at(clock.nowMs, () => operator.onTimer());
    }
    clock.nowMs = untilMs;
  };
  const submit = (message: TextMessage) =>
    at(clock.nowMs, async () => {
      const { answers: [answer] } = await operator.submit([message]);
      assert.ok(answer !== undefined);
      return answer;
    });
  return { operator, env: env as unknown as Env, asked, clock, rows, reports, told, failures, pass, submit };
}

/** Runs something at a time. */
async function at<T>(nowMs: number, run: () => T | Promise<T>): Promise<T> {
  const { now } = Date;
  Date.now = () => nowMs;
  try {
    return await run();
  } finally {
    Date.now = now;
  }
}

const text = (id: string, to = "+9992012345"): TextMessage => ({ company: "acme", id, to, text: "hello" });
const kindOf = ({ kind }: Answer) => kind;

Deno.test("an operator takes a message once, before and after its delivery (OP1, OP2)", async () => {
  const { submit, pass, reports, told } = open();
  for (let i = 0; i < 3; i++) assert.equal(kindOf(await submit(text("a"))), "taken");
  await pass(2_000);
  assert.equal(kindOf(await submit(text("a"))), "taken");
  assert.equal(kindOf(await submit(text("b"))), "taken");
  // Another company's message of the same id is another message.
  await pass(1_000);
  assert.equal(kindOf(await submit({ ...text("a"), company: "bolt" })), "taken");
  await pass(5_000);
  assert.deepEqual(reports.map(({ company, id, serial }) => [company, id, serial]), [
    ["acme", "a", 1],
    ["acme", "b", 2],
    ["bolt", "a", 3],
  ]);
  assert.ok(reports.every(({ takenMs, deliveredMs }) => deliveredMs > takenMs));
  assert.deepEqual([told.at(-1)?.delivered, told.at(-1)?.posted], [3, 3]);
});

Deno.test("a line of messages is taken at the operator's rate, each at its second attempt (OP3)", async () => {
  const { operator, clock, submit, pass, told } = open();
  operator.behave({ perSecond: 10 });
  const waits = new Map<string, number>();
  for (let i = 0; i < 50; i++) {
    const answer = await submit(text(`${i}`));
    if (answer.kind === "later") waits.set(`${i}`, clock.nowMs + answer.delayMs);
  }
  assert.equal(waits.size, 49, "one is taken at once");
  for (const [id, dueMs] of waits) {
    await pass(dueMs - clock.nowMs);
    assert.equal(kindOf(await submit(text(id))), "taken", id);
  }
  assert.equal(clock.nowMs - BEGUN_MS, 4_900, "ten a second");
  for (const { posted, waiting, taken, delivered, failed } of told as Record<string, number>[]) {
    assert.equal(posted, (waiting ?? 0) + (taken ?? 0) + (delivered ?? 0) + (failed ?? 0), "(OP4)");
  }
});

Deno.test("an operator out of service takes nothing, and what it knows already stays taken", async () => {
  const { operator, submit, pass } = open();
  await submit(text("before"));
  operator.behave({ isOut: true });
  assert.deepEqual(await submit(text("a")), {
    ...{ kind: "later", delayMs: OUT_MS, why: "borealis is out of service" },
  });
  assert.equal(kindOf(await submit(text("before"))), "taken");
  operator.behave({ isOut: false, slowMs: 3_000 });
  await pass(TICK_MS);
  assert.deepEqual(await operator.submit([text("a"), text("before")]), {
    ...{ answers: [{ kind: "taken" }, { kind: "taken" }], afterMs: 3_000 },
  });
});

/** A message as the handler gets it, and what the handler says of it. */
function delivery(message: TextMessage | null, attempts: number) {
  const said: unknown[] = [];
  const { id = "x", ...body } = message ?? {};
  const one: QueueMessage = {
    ...{ id, attempts, timestamp: new Date(BEGUN_MS), body: message === null ? "no message" : body },
    ack: () => void said.push("ack"),
    retry: (options) => void said.push(options?.delayMs),
  };
  return { one, said };
}

Deno.test("a message that nobody will ever take uses its attempts up, and is given up with the reason", async () => {
  const { env, asked, failures, pass, told } = open("nobody");
  for (let attempts = 1; attempts < ATTEMPTS_MAX; attempts++) {
    const { one, said } = delivery(text("a", "+99999123"), attempts);
    await handOver(env, [one]);
    assert.deepEqual(said, [0]);
  }
  const { one, said } = delivery(text("a", "+99999123"), ATTEMPTS_MAX);
  await assert.rejects(handOver(env, [one]), /no operator has this number/);
  assert.deepEqual([said, new Set(asked), failures.get("a")?.why], [
    [],
    new Set(["nobody"]),
    "no operator has this number",
  ]);
  await pass(TICK_MS);
  assert.deepEqual([told.at(-1)?.waiting, told.at(-1)?.failed], [0, 1]);
});

Deno.test("a message that can't be handed over keeps no other from its operator", async () => {
  const { env, failures } = open();
  const bad = delivery(null, 1), good = delivery(text("a"), 1);
  const never = delivery(text("b", "+99920123000"), ATTEMPTS_MAX);
  await assert.rejects(handOver(env, [bad.one, never.one, good.one]), /nobody has this number/);
  assert.deepEqual([bad.said, never.said, good.said, [...failures.keys()]], [[], [], ["ack"], ["b"]]);
  await assert.rejects(handOver(env, [bad.one]), /no text message/);
});

Deno.test("what was given up and comes again is no failure any more, and is delivered", async () => {
  const { operator, env, clock, failures, reports, pass } = open();
  operator.behave({ isOut: true });
  const first = delivery(text("a"), 1);
  await at(clock.nowMs, () => handOver(env, [first.one]));
  assert.deepEqual(first.said, [OUT_MS]);
  await assert.rejects(handOver(env, [delivery(text("a"), ATTEMPTS_MAX).one]), /out of service/);
  assert.equal(failures.size, 1);
  operator.behave({ isOut: false });
  const again = delivery(text("a"), 1);
  await at(clock.nowMs, () => handOver(env, [again.one]));
  assert.deepEqual([again.said, failures.size], [["ack"], 0]);
  await pass(5_000);
  assert.deepEqual(reports.map(({ id }) => id), ["a"]);
});

Deno.test("a report that is none keeps no other from its table", async () => {
  const { env, rows } = open();
  const good: Report = {
    company: "acme",
    id: "a",
    to: "+9992012345",
    operator: "borealis",
    serial: 1,
    takenMs: 1,
    deliveredMs: 2,
  };
  const said: unknown[] = [];
  const one = (id: string, body: unknown): QueueMessage => ({
    ...{ id, body, attempts: 1, timestamp: new Date(BEGUN_MS) },
    ...{ ack: () => void said.push(id), retry: () => void said.push(0) },
  });
  await assert.rejects(
    writeDown(env, [one("bad", { company: "acme" }), one("good", good)]),
    /no delivery report/,
  );
  assert.deepEqual([rows, said], [[good], ["good"]]);
});

Deno.test("what another site has handed over meanwhile is not given up", async () => {
  const { operator, failures, submit } = open();
  await submit(text("a"));
  assert.equal(await operator.giveUp(text("a"), "too late"), false);
  assert.equal(failures.size, 0);
});

Deno.test("the gateway can be deployed", () => {
  const { handlers, queues } = readManifest(app);
  assert.deepEqual([handlers, Object.keys(queues)], [["fetch", "queue"], ["outgoing", "reports"]]);
});
