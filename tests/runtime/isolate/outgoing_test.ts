/** `fetch` inside the isolate: whose it is, what it makes of a failure, and of a body that is encoded. */
import assert from "node:assert/strict";
import { Payload } from "../../../runtime/isolate/frame_reader.ts";
import { FrameWriter } from "../../../runtime/isolate/frame_writer.ts";
import { HEADER_BYTES, ISOLATE_FRAME } from "../../../runtime/isolate/frames.ts";
import { fetchedResponse } from "../../../runtime/isolate/inside/fetched_response.ts";
import { OutgoingFetches } from "../../../runtime/isolate/inside/outgoing.ts";
import { writeError } from "../../../runtime/isolate/store_frames.ts";

/** Payloads of frames, by what is written, each with its type and channel. */
function recorded(): {
  writer: FrameWriter;
  last: () => Promise<{ type: number; id: number; payload: Payload }>;
} {
  let bytes = new Uint8Array();
  const writer = new FrameWriter({
    read: () => Promise.resolve(null),
    write: (batch) => {
      bytes = batch.slice();
      return Promise.resolve(batch.length);
    },
  }, () => {});
  const last = async () => {
    await writer.drained();
    const view = new DataView(bytes.buffer);
    return {
      type: view.getUint8(4),
      id: view.getUint32(5, true),
      payload: new Payload(bytes.slice(HEADER_BYTES)),
    };
  };
  return { writer, last };
}

Deno.test("a fetch is made for the request that runs, and for none it fails but where it reaches nothing (O1)", async () => {
  let running: { readonly id: number } | undefined;
  const { writer, last } = recorded();
  const fetches = new OutgoingFetches(writer, () => running, () => undefined);
  await assert.rejects(fetches.fetch("http://api.test/"), { code: "no_request" });
  assert.equal(await (await fetches.fetch("data:text/plain,here")).text(), "here");
  for (const id of [3, 4]) {
    running = { id };
    void fetches.fetch("http://api.test/");
    const { type, payload } = await last();
    assert.deepEqual([type, payload.u32()], [ISOLATE_FRAME.fetchStart, id]);
  }
});

Deno.test("a fetch that fails is a TypeError with its site's code (O2)", async () => {
  const { writer, last } = recorded();
  const fetches = new OutgoingFetches(writer, () => ({ id: 1 }), () => undefined);
  const failed = fetches.fetch("http://api.test/");
  const { id } = await last(), answer = recorded();
  writeError(
    answer.writer.begin(ISOLATE_FRAME.failed, id),
    { code: "fetch_refused", message: "no" } as never,
  );
  answer.writer.end();
  fetches.receive(ISOLATE_FRAME.failed, id, (await answer.last()).payload);
  await assert.rejects(
    failed,
    (error: unknown) =>
      error instanceof TypeError && error.name === "TypeError" &&
      Reflect.get(error, "code") === "fetch_refused",
  );
});

Deno.test("a response that was decoded names no encoding, and one that was not names its own (R1)", async () => {
  const gzip = new Blob(["text"]).stream().pipeThrough(new CompressionStream("gzip"));
  const facts = { url: "http://api.test/", redirected: false };
  const headers = (
    encoding: string,
  ): [string, string][] => [["content-encoding", encoding], ["content-length", "24"]];
  const decoded = fetchedResponse({ status: 200, statusText: "", headers: headers("GZIP ") }, gzip, facts);
  assert.deepEqual([...decoded.headers], []);
  assert.equal(await decoded.text(), "text");
  const other = fetchedResponse(
    { status: 200, statusText: "", headers: headers("zstd") },
    new Blob(["x"]).stream(),
    facts,
  );
  assert.equal(other.headers.get("content-encoding"), "zstd");
});
