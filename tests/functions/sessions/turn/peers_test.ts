import assert from "node:assert/strict";
import { encodeCall } from "../../../../functions/calls/call.ts";
import { type From, Session } from "../../../../functions/class/session.ts";
import { encodeCommitResult, peerOutput } from "../../../../functions/sessions/turn/mod.ts";
import { encodeValue } from "../../../../functions/values/value.ts";
import { packKey } from "../../../../store/model/key.ts";
import { inMacrotask } from "./run.ts";
import { Solo, type SoloEnv } from "./solo.ts";

const text = (bytes: Uint8Array) => {
  const output = peerOutput(bytes);
  return output.kind === "close" ? `close ${output.code} ${output.reason}` : String(output.message);
};

/** Says to all what happened, and does what a message says. */
class Room extends Session {
  log: string[] = [];

  override onOpen(from: From) {
    if (from.id === "unwelcome") throw new Error("not you");
    this.#say(`${from.id} came`);
  }

  override onMessage(message: string | Uint8Array, from: From) {
    this.#say(`${from.id}: ${message}`);
    if (message === "throw") throw new Error("as it says");
    if (message === "leave") from.close(3001, "as you wish");
    if (message === "leave") from.send("nobody hears this");
    if (message === "much") { for (let i = 0; i < 7; i++) from.send(new Uint8Array(4 << 20)); }
    if (message === "long") from.send(new Uint8Array((4 << 20) + 1));
    if (message === "badly") from.close(12, "x");
  }

  override onClose(from: From) {
    this.#say(`${from.id} went`);
    from.send("nobody hears this either");
    if (from.id === "clumsy") throw new Error("too late");
  }

  #say(what: string) {
    this.log.push(what);
    for (const client of this.clients) client.send(what);
  }
}

const solo = () => new Solo(Room as new () => Room).open();
const attach = (id: string) => ({ kind: "attach", peer: { kind: "client", id } } as const);
const message = (peer: string, message: string) => ({ kind: "message", peer, message } as const);

/** What a peer was given, by its number. */
const given = (run: Solo, to: string) =>
  run.commits.flatMap(({ outputs }) => outputs).filter((each) => each.to === to)
    .map(({ sequence, bytes }) => `${sequence} ${text(bytes)}`);

/** Another isolate opens what the commits say. */
const again = (run: Solo) => new Solo(Room as new () => Room).open({ entries: run.entries, epoch: 2 });

Deno.test("messages of peers are counted, those too whose handlers throw", async () => {
  await inMacrotask(() => {
    const run = solo().deliver(attach("a")).deliver(message("a", "1")).deliver(message("a", "throw"))
      .deliver(message("a", "2"));
    assert.deepEqual(given(run, "a"), ["1 a came", "2 a: 1", "3 a: 2"]);
    assert.deepEqual(run.commits.map(({ rejected }) => rejected?.message ?? null).slice(-2), [
      "as it says",
      null,
    ]);
    const opened = again(run).opened;
    assert.deepEqual(opened?.peers, [{ kind: "client", id: "a", sent: 3, received: 3, isClosed: false }]);
    assert.deepEqual(opened?.outputs.map(({ bytes }) => text(bytes)), ["a came", "a: 1", "a: 2"]);
  });
});

Deno.test("whose onOpen throws is not attached; whose onClose throws has gone", async () => {
  await inMacrotask(() => {
    const run = solo().deliver(attach("a")).deliver(attach("unwelcome")).deliver(attach("clumsy"));
    assert.equal(run.commits.find(({ rejected }) => rejected !== null)?.rejected?.message, "not you");
    run.deliver(message("unwelcome", "1")).deliver({ kind: "detach", peer: "clumsy" }).deliver(
      message("a", "1"),
    );
    assert.deepEqual(given(run, "unwelcome"), []);
    assert.deepEqual(given(run, "clumsy"), ["1 clumsy came"]);
    assert.deepEqual(given(run, "a"), ["1 a came", "2 clumsy came", "3 a: 1"]);
    const opened = again(run).opened;
    assert.deepEqual(opened?.peers.map(({ id }) => id), ["a"]);
    assert.ok(opened?.outputs.every(({ to }) => to === "a"), "what the one that went was sent is let go");
  });
});

Deno.test("a peer that is closed hears that last, and is there until it has gone", async () => {
  await inMacrotask(() => {
    const run = solo().deliver(attach("a")).deliver(attach("b")).deliver(message("a", "leave"))
      .deliver(message("b", "1")).deliver(message("b", "badly"));
    assert.deepEqual(given(run, "a"), ["1 a came", "2 b came", "3 a: leave", "4 close 3001 as you wish"]);
    assert.match(run.commits.at(-1)?.rejected?.message ?? "", /close\(12\)/);
    const replayed = again(run);
    assert.deepEqual(replayed.opened?.peers.map(({ id, isClosed }) => [id, isClosed]), [["a", true], [
      "b",
      false,
    ]]);
    replayed.deliver({ kind: "detach", peer: "a" });
    assert.deepEqual(given(replayed, "a"), []);
    assert.deepEqual(given(replayed, "b"), ["4 a went"]);
  });
});

Deno.test("what peers were sent is kept, through checkpoints, until they say that they have it (commit.ts CM3)", async () => {
  await inMacrotask(() => {
    const run = solo().deliver(attach("a"));
    for (let i = 0; i < 2_000; i++) run.deliver(message("a", `${i}`));
    run.loop.acknowledge(1, { outputs: { a: 500 }, effects: 0 });
    run.loop.checkpointNow(1);
    run.run();
    const checkpoint = run.checkpoints.at(-1);
    assert.ok(checkpoint !== undefined);
    const opened = new Solo(Room as new () => Room).open({ checkpoint, epoch: 2 }).opened;
    assert.equal(opened?.outputs.length, 1_501);
    assert.equal(opened?.outputs[0]?.sequence, 501);
    assert.deepEqual(opened?.peers, [{
      kind: "client",
      id: "a",
      sent: 2_001,
      received: 2_000,
      isClosed: false,
    }]);
  });
});

Deno.test("a handler that sends too much has sent nothing", async () => {
  await inMacrotask(() => {
    const run = solo().deliver(attach("a")).deliver(message("a", "much"));
    assert.match(run.commits.at(-1)?.rejected?.message ?? "", /at most 25165824 bytes/);
    run.deliver(message("a", "long"));
    assert.match(run.commits.at(-1)?.rejected?.message ?? "", /at most 4194304 bytes/);
    run.deliver(message("a", "1"));
    assert.deepEqual(given(run, "a"), ["1 a came", "2 a: 1"]);
  });
});

/** Says something, asks the store for a write with a check, and says what came of it. */
class Asker extends Session<SoloEnv> {
  override onOpen(from: From) {
    from.send("welcome");
  }

  override async onMessage(message: string | Uint8Array, from: From) {
    from.send("wait");
    if (message === "leave") from.close();
    const key = packKey(["row"]);
    const { ok } = await this.env.store.commit([{ key, versionstamp: null }], [{ kind: "delete", key }]);
    from.send(`done: ${ok}`);
  }

  async ask(): Promise<boolean> {
    const key = packKey(["row"]);
    return (await this.env.store.commit([{ key, versionstamp: null }], [{ kind: "delete", key }])).ok;
  }
}

Deno.test("what a handler that is not over has sent is no output of its peer's when its log is opened", async () => {
  await inMacrotask(() => {
    for (const said of ["stay", "leave"]) {
      const run = new Solo(Asker as new () => Asker).open().deliver(attach("a")).deliver(message("a", said));
      assert.equal(run.commits.at(-1)?.isPoint, false, "its intent is in the log");
      const opened = new Solo(Asker as new () => Asker).open({ entries: run.entries, epoch: 2 });
      assert.deepEqual(opened.opened?.peers, [
        { kind: "client", id: "a", sent: 1, received: 1, isClosed: false },
      ]);
      assert.deepEqual(opened.opened?.outputs.map(({ sequence }) => sequence), [1]);
      const [call] = opened.opened?.calls ?? [];
      opened.result(call?.call ?? 0, encodeCommitResult({ ok: true, versionstamp: "00000000000010000001" }));
      const then = said === "stay" ? "3 done: true" : "3 close 1000 ";
      assert.deepEqual(given(opened, "a"), ["2 wait", then]);
    }
  });
});

Deno.test("a request has one answer, also where it is said to have killed an isolate when its handler went on and is over", async () => {
  await inMacrotask(() => {
    const bytes = encodeCall({ kind: "rpc", method: "ask", args: encodeValue([]) });
    const request = { kind: "request", request: "r", chain: [], bytes } as const;
    const run = new Solo(Asker as new () => Asker).open().deliver(request);
    const opened = new Solo(Asker as new () => Asker).open({ entries: run.entries, epoch: 2 });
    assert.equal(opened.opened?.handling, "r");
    const [call] = opened.opened?.calls ?? [];
    opened.deliver(attach("a"));
    opened.result(call?.call ?? 0, encodeCommitResult({ ok: true, versionstamp: "00000000000010000001" }));
    opened.deliver({ kind: "reject", of: request, code: "isolate_killed", message: "it was lost" });
    const answers = opened.commits.flatMap(({ outputs }) => outputs).filter(({ to }) => to === "r");
    assert.equal(answers.length, 1);
    assert.deepEqual(opened.commits.filter(({ rejected }) => rejected !== null), []);
  });
});

Deno.test("a message that was taken for what killed an isolate is handled when a handler of the log ran, of another one", async () => {
  await inMacrotask(() => {
    const run = new Solo(Asker as new () => Asker).open().deliver(attach("a")).deliver(message("a", "first"));
    const reject = (said: string) => {
      const of = { kind: "message", peer: "a", message: said } as const;
      return { kind: "reject", of, code: "isolate_killed", message: "it was lost" } as const;
    };
    for (const [said, received, handlers] of [["first", 1, 0], ["second", 2, 1]] as const) {
      const opened = new Solo(Asker as new () => Asker).open({ entries: run.entries, epoch: 2 });
      opened.deliver(reject(said));
      const rejected = opened.commits.filter((commit) => commit.rejected !== null);
      assert.deepEqual(rejected.map((commit) => commit.rejected?.subject), [{ kind: "message", id: "a" }]);
      assert.equal(opened.commits.at(-1)?.isPoint, handlers === 0, "the second one's handler has begun");
      const again = new Solo(Asker as new () => Asker).open({
        entries: new Uint8Array([...run.entries, ...opened.entries]),
        epoch: 3,
      });
      assert.equal(again.opened?.peers[0]?.received, received);
      assert.equal(again.opened?.calls.length, handlers);
    }
  });
});
