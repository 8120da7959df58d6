/** What waits for what after a loss or a move, where a wait would be for ever. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { packKey } from "../../../store/model/key.ts";
import type { NumberMessage } from "../../../store/wire/message.ts";
import { Least } from "../../../store/model/least.ts";
import { encodeJson, endedKey, replicaKey, Topology } from "../../../store/members/topology.ts";

function coreOf(pendingBytesMax: number): Core {
  return new Core(
    {
      site: "c",
      parent: "root",
      tier: "core",
      url: "",
      linkAddress: "",
      capacityBytes: 1e9,
      pendingBytesMax,
    },
    {
      clock: { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
}

Deno.test("a full site takes what its children push while something is on its way after a move", () => {
  const core = coreOf(200);
  core.replica = 4;
  core.setPath(["root"]);
  core.rows.put(core.own(packKey(["row"]), new Uint8Array(1_000)));
  deepStrictEqual([core.isPendingFull, core.isHolding], [true, true]);
  // Until what e had has come to its new parent nothing above is settled, and that may stand below this very site.
  const tell = (settled: object) =>
    core.rows.put(core.own(endedKey(7), encodeJson({ stable: 1, next: 8, ...settled })));
  tell({});
  deepStrictEqual(
    [core.isPendingFull, core.isHolding],
    [true, false],
    "sessions are refused, children are not",
  );
  tell({ settled: true });
  deepStrictEqual([core.isPendingFull, core.isHolding], [true, true]);
  core.resyncing = true;
  deepStrictEqual([core.isPendingFull, core.isHolding], [false, false]);
});

Deno.test("a blank site waits for whoever was given a number below it, remembered or not", () => {
  const topology = new Topology();
  const claim = { site: "e", path: ["root", "c", "e"], parent: 4, from: 0 };
  const row = { clock: 1, replica: 1, position: 1, known: 0, expiresAtMs: 0 };
  topology.apply({ ...row, key: replicaKey(9), value: encodeJson(claim) });
  deepStrictEqual(topology.joinedBelow("c"), ["e"]);
  topology.apply({ ...row, key: endedKey(9), value: encodeJson({ stable: 3 }) });
  deepStrictEqual(topology.joinedBelow("c"), []);
});

Deno.test("a number goes down behind the rows that came before it, and no sooner", () => {
  const child = new Child("e", 0, { stables: new Least<Child>(), floors: new Least<Child>() });
  const message = (replica: number): NumberMessage => ({ kind: "number", id: replica, replica, claim: null });
  child.numbers.push({ behind: 5, message: message(7) }, { behind: 9, message: message(8) });
  deepStrictEqual(child.takeNumbers(4), []);
  deepStrictEqual(child.takeNumbers(6).map(({ replica }) => replica), [7]);
  strictEqual(child.numbers.length, 1);
  deepStrictEqual(child.takeNumbers(9).map(({ replica }) => replica), [8]);
});
