import { strict as assert } from "node:assert";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Arrival } from "./arrival.ts";
import { answerAsset } from "./asset_answer.ts";
import type { RequestHead } from "./request_head.ts";

const bytes = new Uint8Array(3);

for (const isStreamed of [false, true]) {
  Deno.test(`a file is of nobody's session, and its arrival tells whether it streams: ${isStreamed} (runtime/assets/serve.ts S4)`, async () => {
    const file = { sha256: "a".repeat(64), bytes: 3 };
    const version = {
      files: () => Promise.resolve(new Map([["/x.bin", file]])),
    } as unknown as LiveVersion;
    const arrival = { url: "http://h/x.bin" } as Arrival;
    const head = {
      method: "GET",
      target: "/x.bin",
      headers: [["cookie", "sojourn=x"]],
    } as unknown as RequestHead;
    const body = () => Promise.resolve(isStreamed ? new Blob([bytes]).stream() : bytes);
    const services = { site: "s", answerHeaders: "asked" as const, reader: { body } };
    const answer = await answerAsset(services, version, head, arrival);
    assert.deepEqual(new Uint8Array(await answer?.arrayBuffer() ?? []), bytes);
    assert.equal(arrival.isStreamed, isStreamed);
    const told = [...answer?.headers.keys() ?? []].filter((name) => /cookie|^sojourn-session/.test(name));
    assert.deepEqual(told, []);
  });
}
