/** Leases that clients hold: what opens them, and what does not. */
import assert from "node:assert/strict";
import type { LeaseTicket } from "../../../functions/queues/verdict_post.ts";
import { LEASE_CHARS_MAX, LeaseSeal } from "../../../runtime/queues/lease_seal.ts";

const secret = (byte: number) => new Uint8Array(32).fill(byte);
const ticket: LeaseTicket = { id: "abc.1", lease: 7, sentMs: 1_750_000_000_000, owners: ["edge-1", "cloud"] };
/** Of the ticket, for `shop/sms`, under the secret of ones; made by another program. */
const VECTOR = "AQVhYmMuMQeAuIOh9zICBmVkZ2UtMQVjbG91ZJ9CTVlezd2RSnznnPQDefo";

Deno.test("a lease opens for its queue, and only as it was sealed (LS1)", () => {
  const seal = new LeaseSeal([secret(1)]), text = seal.seal("shop/sms", ticket);
  assert.equal(text, VECTOR, "leases of before open still");
  assert.deepEqual(seal.open("shop/sms", text), ticket);
  const bad = [
    ...Array.from(text, (_, at) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1)),
    ...Array.from(text, (_, at) => text.slice(0, at)),
    `${text}AAAA`,
    `${text} `,
    "é",
    "A".repeat(LEASE_CHARS_MAX + 1),
  ];
  // The last character has bits to spare.
  const opened = bad.filter((one) => seal.open("shop/sms", one) !== null);
  assert.deepEqual(opened.filter((one) => one.slice(0, -1) !== text.slice(0, -1)), []);
  for (const other of ["shop/sm", "shop/sms2", "shop2/sms", ""]) assert.equal(seal.open(other, text), null);
});

Deno.test("a lease opens while its secret is one of the cluster's, and the newest seals (LS2)", () => {
  const old = new LeaseSeal([secret(1)]), both = new LeaseSeal([secret(2), secret(1)]);
  const next = new LeaseSeal([secret(2)]), text = old.seal("shop/sms", ticket);
  assert.deepEqual(both.open("shop/sms", text), ticket);
  assert.equal(next.open("shop/sms", text), null);
  assert.deepEqual(next.open("shop/sms", both.seal("shop/sms", ticket)), ticket);
});

Deno.test("the longest ids of sites and of a tuple fit a lease", () => {
  const seal = new LeaseSeal([secret(1)]);
  const long = { ...ticket, id: "i".repeat(64), owners: Array.from({ length: 9 }, () => "s".repeat(40)) };
  assert.ok(seal.seal("a/b", long).length <= LEASE_CHARS_MAX);
});
