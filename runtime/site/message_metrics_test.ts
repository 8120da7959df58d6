import assert from "node:assert/strict";
import type { QueueStatus } from "../../functions/queues/broker.ts";
import { MessageMetrics } from "./message_metrics.ts";

Deno.test("what waits in queues and what was done with it is told by queue, with the conventions' names", () => {
  const metrics = new MessageMetrics();
  const read = () =>
    Object.fromEntries(metrics.families.map(({ name, series }) => [
      name,
      series.map(({ labels, ...of }) => {
        const shown = labels.map(([, value]) => value).filter((value) => value !== "sojourn");
        return [...shown, "value" in of ? of.value : of.counts.reduce((sum, count) => sum + count, 0)].join(
          " ",
        );
      }),
    ]));
  assert.ok(Object.values(read()).every((series) => series.length === 0));
  const status: QueueStatus = {
    ...{ queue: "shop/sms", ready: 1, delayed: 2, lent: 3, dead: 4, bytes: 500, oldestMs: 1_500 },
    counters: { sent: 9, refused: 1, delivered: 5, redelivered: 2, acknowledged: 6 },
  };
  metrics.watch(() => [status]);
  metrics.operated("shop/sms", "send", performance.now(), null);
  metrics.operated("shop/sms", "ack", performance.now(), "unreachable");
  metrics.handled("shop/sms", performance.now(), null);
  assert.deepEqual(read(), {
    "messaging.client.sent.messages": ["shop/sms send send 9", "shop/sms send send queue_full 1"],
    "messaging.client.consumed.messages": ["shop/sms receive receive 7"],
    "messaging.client.operation.duration": ["shop/sms send send 1", "shop/sms ack settle unreachable 1"],
    "messaging.process.duration": ["shop/sms process process 1"],
    "queue.messages": ["shop/sms ready 1", "shop/sms delayed 2", "shop/sms lent 3", "shop/sms dead 4"],
    "queue.size": ["shop/sms 500"],
    "queue.oldest": ["shop/sms 1.5"],
    "queue.events": [
      "shop/sms sent 9",
      "shop/sms refused 1",
      "shop/sms delivered 5",
      "shop/sms redelivered 2",
      "shop/sms acknowledged 6",
    ],
  });
});
