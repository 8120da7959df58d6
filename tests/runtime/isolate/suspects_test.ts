/**
 * Calls that may have ended their isolate and run again by themselves: none of them waits for ever, whatever the one
 * before it does there (runtime/isolate/fleet.ts, L4, L5).
 */
import assert from "node:assert/strict";
import { type IsolateAnswer, type IsolateCall, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

const APP = `
  export default {
    fetch(request) {
      switch (new URL(request.url).pathname) {
        case "/loop": for (;;);
        case "/text": return new Response("done");
        case "/stream": return new Response(new ReadableStream({ start: (c) => c.enqueue(new Uint8Array(1)) }));
      }
      return new Promise(() => {});
    },
  };`;
const CPU_MS = 200;

/** A call that ends the isolate it is begun in first, and is for a path where it is begun again. */
function suspect(path: string, signal?: AbortSignal): IsolateCall {
  const call = callOf(path, signal === undefined ? {} : { signal });
  const { method, headers, body } = call.request;
  let begun = 0;
  const request = {
    ...{ method, headers, body, bytes: () => call.request.bytes() },
    get url() {
      return begun++ === 0 ? "http://localhost/loop" : call.request.url;
    },
  };
  return { ...call, request };
}

const kindOf = (answer: IsolateAnswer) => answer.kind === "error" ? answer.code : answer.kind;

async function withPool(
  limits: { isolatesMax: number; wallMs: number },
  work: (ask: (call: IsolateCall) => Promise<IsolateAnswer>) => Promise<void>,
): Promise<void> {
  const pool = new IsolatePool();
  const app = appOf(APP, { limits: { ...limits, cpuMs: CPU_MS } });
  try {
    await work((call) => pool.call(app, call));
  } finally {
    await pool.close();
  }
}

Deno.test("a suspect that answers with a stream without an end leaves its isolate's place to the next one (fleet.ts L2)", async () => {
  await withPool({ isolatesMax: 2, wallMs: 20_000 }, async (ask) => {
    assert.equal(kindOf(await ask(suspect("/stream"))), "response");
    const answer = await ask(suspect("/text"));
    assert.equal(kindOf(answer), "response");
    if (answer.kind === "response") assert.equal(await answer.response.text(), "done");
  });
});

Deno.test("a suspect waits no longer than it may take to answer, where another keeps the only place", async () => {
  await withPool({ isolatesMax: 1, wallMs: 2_000 }, async (ask) => {
    // The text ran beside the one that loops: it is run again in an isolate that takes the only place.
    const [stream, text] = await Promise.all([ask(suspect("/stream")), ask(callOf("/text"))]);
    assert.deepEqual([kindOf(stream), kindOf(text)], ["response", "response"]);
    const answer = await ask(suspect("/text"));
    assert.equal(kindOf(answer), "isolate_killed");
    assert.equal(kindOf(await ask(callOf("/text"))), "response", "others are served");
  });
});

Deno.test("a suspect whose client has gone is not run again", async () => {
  await withPool({ isolatesMax: 2, wallMs: 20_000 }, async (ask) => {
    const gone = new AbortController();
    const first = ask(suspect("/never")); // it keeps the place when it has got it
    await new Promise((resolve) => setTimeout(resolve, CPU_MS * 5));
    const second = ask(suspect("/text", gone.signal));
    await new Promise((resolve) => setTimeout(resolve, CPU_MS * 5));
    gone.abort();
    assert.equal(kindOf(await second), "overloaded");
    void first;
  });
});
