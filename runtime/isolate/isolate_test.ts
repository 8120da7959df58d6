import assert from "node:assert/strict";
import { type IsolateApp } from "./call.ts";
import { ISOLATE_FRAME } from "./frames.ts";
import { Isolate } from "./isolate.ts";
import { DEFAULT_ISOLATE_LIMITS } from "./limits.ts";
import type { IsolateProcess } from "./process.ts";

const MIB = 1 << 20;

/** A process that takes nothing of what it is sent, and says what it is told to here; null: it has ended. */
function deaf(): {
  readonly process: IsolateProcess;
  say(type: number | null): void;
  readonly kills: () => number;
} {
  const exited = Promise.withResolvers<{ signal: string; code: number; said: string }>();
  let kills = 0, deliver: (frame: Uint8Array | null) => void = () => {};
  const process: IsolateProcess = {
    pid: 1,
    connection: {
      write: () => new Promise(() => {}),
      read: async (into) => {
        const frame = await new Promise<Uint8Array | null>((resolve) => deliver = resolve);
        if (frame !== null) into.set(frame);
        return frame?.length ?? null;
      },
    },
    lastStarted: () => 0,
    lastTurn: () => ({ channel: 0, received: 0 }),
    usage: () => undefined,
    giveWay: () => true,
    startedGivingWay: false,
    exited: exited.promise,
    hasEnded: false,
    release: () => {},
    kill: () => {
      kills++;
      exited.resolve({ signal: "SIGKILL", code: 137, said: "" });
    },
  };
  const say = (type: number | null) => {
    if (type === null) return deliver(null);
    const said = new TextEncoder().encode("{}"), frame = new Uint8Array(13 + said.length);
    const view = new DataView(frame.buffer);
    view.setUint32(0, frame.length - 4, true);
    frame[4] = type;
    view.setUint32(9, said.length, true);
    frame.set(said, 13);
    deliver(frame);
  };
  return { process, say, kills: () => kills };
}

Deno.test("an isolate that reads nothing of what waits for it is killed, and what it says then is ignored (AP2)", async () => {
  const { process, say, kills } = deaf();
  const secrets = { large: "x".repeat(4 * MIB) };
  const app: IsolateApp = {
    ...{ app: "deaf", version: "1", limits: DEFAULT_ISOLATE_LIMITS, vars: {}, fetchHosts: [] },
    bundle: () => Promise.resolve(new Uint8Array()),
    secrets: () => secrets,
  };
  const owner = { freed: () => {}, ended: () => {} };
  const isolate = new Isolate(process, { app, owner });
  const loaded = isolate.load(new Uint8Array());
  let sent = 0;
  for (; sent < 200 && kills() === 0; sent++) isolate.refreshSecrets();
  assert.ok(sent < 200, `${sent * 4} MiB wait for it`);
  assert.ok(isolate.isOver);
  say(ISOLATE_FRAME.loaded);
  await new Promise((resolve) => setTimeout(resolve, 0));
  say(null);
  assert.equal((await loaded).kind, "failed");
  const end = await isolate.ended;
  assert.ok(end.kind === "killed" && (end.cause === "unread" || end.cause === "queues"), JSON.stringify(end));
});
