import { strict as assert } from "node:assert";
import { INERT } from "../telemetry/mod.ts";
import { AdminForwarder } from "./admin_forward.ts";
import { decodeRequestHead, encodeAnswerHead } from "./forward.ts";
import { OperatorTelemetry } from "./operator_telemetry.ts";

const TREE = new Map([
  ["cloud", { parent: null }],
  ["core-1", { parent: "cloud" }],
  ["core-2", { parent: "cloud" }],
  ["edge-1", { parent: "core-1" }],
  ["edge-3", { parent: "core-2" }],
]);

/** Sends a call from a site to another; where its links were asked to go, in order. */
async function sent(
  call: { from: string; to: string; method: string; body?: string; isTwice?: true | undefined },
  /** `refusing` says that it does not get there, as a site further on does. */
  links: { cut?: readonly string[]; broken?: readonly string[]; refusing?: readonly string[] },
): Promise<string[]> {
  const { from, to, method, body } = call;
  const asked: string[] = [];
  const bodies: (string | null)[] = [];
  const forwarder = new AdminForwarder({
    site: from,
    parent: TREE.get(from)?.parent ?? null,
    sites: () => TREE,
    telemetry: new OperatorTelemetry(from, INERT),
    links: {
      isConnected: (site) => !links.cut?.includes(site),
      request: async (by, _kind, head, options) => {
        asked.push(`${by} for ${decodeRequestHead(head).to}`);
        if (links.cut?.includes(by) || links.broken?.includes(by)) throw new Error("unreachable");
        if (links.refusing?.includes(by)) {
          return { head: encodeAnswerHead({ status: 503, headers: [] }), body: null };
        }
        bodies.push(options?.body ? await new Response(options.body as BodyInit).text() : null);
        return { head: encodeAnswerHead({ status: 200, headers: [] }), body: null };
      },
    },
  });
  const request = new Request("http://site/_sojourn/admin/x", { method, body: body ?? null });
  const answer = call.isTwice
    ? forwarder.sendTwice(to, request, "admin")
    : forwarder.send(to, request, "admin");
  await answer.then(({ status }) => {
    if (status === 503) return void asked.push("503");
    assert.deepEqual(bodies, [body ?? null], "it arrives once, and whole");
  }, (error: Error) => void asked.push(error.message));
  return asked;
}

Deno.test("an admin call goes along the tree, and straight where the next site is not connected (AF1)", async () => {
  const deploy = { from: "edge-1", to: "root", method: "POST", body: "code" };
  const mark = { from: "cloud", to: "edge-3", method: "POST" };
  assert.deepEqual(await sent(deploy, {}), ["core-1 for root"]);
  assert.deepEqual(await sent(deploy, { cut: ["core-1"] }), ["cloud for root"]);
  assert.deepEqual(await sent(mark, {}), ["core-2 for edge-3"]);
  assert.deepEqual(await sent(mark, { cut: ["core-2"] }), ["edge-3 for edge-3"]);
  assert.deepEqual(await sent(deploy, { cut: ["core-1", "cloud"] }), [
    "cloud for root",
    "the root cannot be reached over core-1, nor straight: unreachable",
  ]);
});

Deno.test("a change that may have gone out is not sent again, a read is (AF2)", async () => {
  const broken = { broken: ["core-1"] };
  assert.deepEqual(await sent({ from: "edge-1", to: "root", method: "DELETE" }, broken), [
    "core-1 for root",
    "the root cannot be reached over core-1: unreachable",
  ]);
  assert.deepEqual(await sent({ from: "edge-1", to: "root", method: "GET" }, broken), [
    "core-1 for root",
    "cloud for root",
  ]);
});

Deno.test("a change that may be done twice goes straight where it did not get there along the tree (AF3)", async () => {
  const move = { from: "edge-3", to: "edge-1", method: "POST", isTwice: true } as const;
  assert.deepEqual(await sent(move, {}), ["core-2 for edge-1"]);
  assert.deepEqual(await sent(move, { refusing: ["core-2"] }), ["core-2 for edge-1", "edge-1 for edge-1"]);
  assert.deepEqual(await sent(move, { broken: ["core-2"] }), ["core-2 for edge-1", "edge-1 for edge-1"]);
  assert.deepEqual(await sent(move, { refusing: ["core-2"], broken: ["edge-1"] }), [
    "core-2 for edge-1",
    "edge-1 for edge-1",
    "503",
  ]);
  assert.deepEqual(await sent({ ...move, isTwice: undefined }, { refusing: ["core-2"] }), [
    "core-2 for edge-1",
    "503",
  ]);
});
