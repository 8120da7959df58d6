/** Tracked fields in a session that runs: random programs whose isolate is lost, and whose code is replaced, in between. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { list, map, value } from "../../../../functions/tracked/mod.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { anyStep, begin, carryOut, snapshot, type Step } from "../../tracked/programs.ts";
import { type MemoryHost, memoryHost } from "./memory_host.ts";

class Programs extends Session {
  top = begin(true);
  done: string[] = [];

  step(step: Step): unknown {
    this.done.push(`${step.operation}`);
    return { answer: carryOut(this.top, step, true), done: this.done.length };
  }
  all(): unknown {
    return snapshot(this.top);
  }
  /** All that it did is undone: what comes after is as if it had never been. */
  fail(step: Step): never {
    carryOut(this.top, step, true);
    this.done.length = 0;
    throw new Error("it fails");
  }
}

const make = () => new Programs() as unknown as SessionObject;
let requests = 0;

async function ask(host: MemoryHost, id: string, method: string, ...args: unknown[]): Promise<unknown> {
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
  const name = { app: "shop", class: "robot", id };
  const { answer } = await host.host.request(name, {
    request: `p${requests++}`,
    chain: [],
    bytes,
    token: null,
  });
  const told = decodeAnswer(answer);
  if (told.kind === "error") throw new Error(told.message);
  return told.kind === "value" ? decodeValue(told.value) : undefined;
}

const anyAct = fc.oneof(
  { weight: 8, arbitrary: fc.record({ act: fc.constant("step" as const), step: anyStep }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant("fail" as const), step: anyStep }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("deploy" as const) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom("lose" as const, "look" as const) }) },
);

Deno.test("tracked fields are what plain ones would be when the isolate is lost, a handler fails, and code changes", async () => {
  await using host = await memoryHost(make);
  let sessions = 0, versions = 1;
  await fc.assert(
    fc.asyncProperty(fc.array(anyAct, { maxLength: 30, size: "max" }), async (acts) => {
      const id = `s${sessions++}`;
      const model = begin(false);
      let done = 0;
      for (const act of acts) {
        if (act.act === "step") {
          const answer = carryOut(model, act.step, false);
          assert.deepEqual(await ask(host, id, "step", act.step), {
            answer: structuredClone(answer),
            done: ++done,
          });
        } else if (act.act === "fail") {
          await assert.rejects(ask(host, id, "fail", act.step), /it fails/);
        } else if (act.act === "lose") host.loseIsolates();
        // An open session takes a checkpoint then, and other code goes on from it.
        else if (act.act === "deploy") host.deploy(`v${++versions}`, make);
        else assert.deepEqual(await ask(host, id, "all"), structuredClone(snapshot(model)));
      }
      assert.deepEqual(await ask(host, id, "all"), structuredClone(snapshot(model)));
    }),
    { numRuns: 40, interruptAfterTimeLimit: 30_000 },
  );
});

/** Puts into its fields what could not be read back. */
class Keeper extends Session {
  plain: unknown = null;
  named = map<string, unknown>();
  listed = list<unknown>();
  one = value<unknown>(null);

  async keep(where: string, what: keyof typeof THINGS): Promise<void> {
    const thing = await THINGS[what]();
    if (where === "plain") this.plain = { in: [thing] };
    else if (where === "named") this.named.set("a", { in: [thing] });
    else if (where === "listed") this.listed.push({ in: [thing] });
    else this.one.set({ in: [thing] });
  }

  all(): unknown {
    return { plain: this.plain, named: this.named.size, listed: this.listed.length, one: this.one.get() };
  }
}

class Secret {
  readonly #inside = 1;
  get inside() {
    return this.#inside;
  }
}

const THINGS = {
  Blob: () => new Blob(["x"]),
  File: () => new File([], "f"),
  CryptoKey: () => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]),
  Secret: () => new Secret(),
};

Deno.test("what could not be read back is refused with its path, in tracked and in plain fields", async () => {
  await using host = await memoryHost(() => new Keeper() as unknown as SessionObject);
  const places = { named: 'named\\.get\\("a"\\)', listed: "listed\\[0\\]", one: "one", plain: "plain" };
  for (const what of Object.keys(THINGS)) {
    for (const [where, path] of Object.entries(places)) {
      const message = new RegExp(`can't keep ${path}\\.in\\[0\\]: an instance of ${what}`);
      await assert.rejects(ask(host, "k", "keep", where, what), { message }, `${what} in ${where}`);
    }
  }
  assert.deepEqual(await ask(host, "k", "all"), { plain: null, named: 0, listed: 0, one: null });
});
