/** Where a token of an incarnation that is over stands, by what its owners have put into the tree (recovery.ts, Y4). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import type { TokenState } from "../../../store/api/api.ts";
import { Core } from "../../../store/core/core.ts";
import type { Key } from "../../../store/model/key.ts";
import {
  encodeJson,
  type Ended,
  endedKey,
  keptKey,
  removedKey,
  replicaKey,
} from "../../../store/members/topology.ts";
import { recoveredKey, type RecoveredWard, wardsKey } from "../../../store/members/configuration.ts";
import { recoveryOf } from "../../../store/wards/recovery.ts";

const ROOT = 1, CORE = 2, EDGE = 3, NEXT = 4;
/** The session saw position 7 of e's journal, at clock 500; e had got c's up to 4 by then. */
const token: TokenState = {
  session: new Uint8Array(16),
  sequence: 1,
  replica: EDGE,
  clock: 500,
  path: [null, null, 7],
  open: false,
};

/** A site that knows of e below c below the root; e's ward was at o and p, c's at q. */
class Tree {
  readonly core: Core;

  constructor() {
    const core = this.core = new Core(
      { site: "d", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
      {
        clock: { nowMs: () => 0, steadyMs: () => 0, after: () => () => {}, turn: () => Promise.resolve() },
        random: { bytes: (length) => new Uint8Array(length) },
        storage: new MemoryStorage(),
        network: { send: () => Promise.resolve() },
        fatal: (error) => {
          throw error;
        },
        note: () => {},
      },
    );
    core.setPath(["root"]);
    this.write(replicaKey(ROOT), { site: "root", path: ["root"], parent: 0, from: 0 });
    this.write(replicaKey(CORE), { site: "c", path: ["root", "c"], parent: ROOT, from: 0 });
    this.write(replicaKey(EDGE), { site: "e", path: ["root", "c", "e"], parent: CORE, from: 0 });
  }

  write(key: Key, value: unknown): this {
    this.core.rows.put(this.core.own(key, encodeJson(value)));
    return this;
  }

  owned(replica = EDGE, owners = ["o", "p"], previous: readonly string[] = []): this {
    return this.write(wardsKey(replica), { number: 2, owners, previous });
  }

  ended(replica = EDGE, more: Partial<Ended> = {}): this {
    return this.write(endedKey(replica), { stable: 50, ...more });
  }

  recovered(owner: string, said: Partial<RecoveredWard>, replica = EDGE): this {
    const recovered: RecoveredWard = { position: 0, down: [3, 4], config: 2, clock: 600, ...said };
    return this.write(recoveredKey(replica, owner), recovered);
  }

  /** What becomes of the token, and the clock that has to be stable. */
  says(changes: Partial<TokenState> = {}): string {
    const standing = recoveryOf(this.core.topology, { ...token, ...changes });
    return standing.kind === "recovered" ? `from ${standing.clock}` : standing.kind;
  }
}

const tree = () => new Tree();

Deno.test("a token of a lost disk stands when an owner has put all that it saw into the tree", () => {
  assert.equal(tree().ended().says(), "lost", "nobody owned it");
  assert.equal(tree().owned().ended().says(), "unknown", "no owner has said what it has");
  assert.equal(tree().owned().ended().recovered("o", { position: 7 }).says(), "from 500");
  assert.equal(
    tree().owned().ended().recovered("o", { position: 6 }).says(),
    "unknown",
    "the other may have more",
  );
  const both = () => tree().owned().ended().recovered("o", { position: 6 });
  assert.equal(both().recovered("p", { position: 7 }).says(), "from 500");
  assert.equal(both().recovered("p", { position: 0 }).says(), "lost");
  assert.equal(
    both().write(removedKey("p"), { atMs: 1 }).says(),
    "lost",
    "who was removed says nothing any more",
  );
});

Deno.test("of the sites above it that are over, too, owners must have what the site below had got", () => {
  const below = () => tree().owned().owned(CORE, ["q"]).ended().recovered("o", { position: 7, down: [3, 4] });
  assert.equal(below().ended(CORE).says(), "unknown");
  assert.equal(below().ended(CORE).recovered("q", { position: 4, down: [3] }, CORE).says(), "from 500");
  assert.equal(below().ended(CORE).recovered("q", { position: 3, down: [3] }, CORE).says(), "lost");
  const unheard = tree().owned().owned(CORE, ["q"]).ended(CORE);
  assert.equal(unheard.says(), "unknown", "nobody has heard of e since: it may have everything");
  assert.equal(tree().ended(CORE).says(), "unknown", "without owners, too");
});

Deno.test("an open token stands by an owner of the last configuration alone, and from all that it had", () => {
  const open = { open: true };
  const from = (config: number) => tree().owned().ended().recovered("o", { position: 9, config });
  assert.equal(from(2).says(open), "from 600");
  assert.equal(from(1).says(open), "unknown", "what was told later is at p, or nowhere");
  assert.equal(from(1).recovered("p", { position: 8, config: 1 }).says(open), "lost");
  assert.equal(from(1).says(), "from 500", "a closed one names its position");
  const removed = tree().owned().ended(EDGE, { removed: true }).recovered("o", { position: 9 });
  assert.equal(removed.says(open), "lost", "a removed site may have told more");
  assert.equal(removed.says(), "from 500");
});

Deno.test("an open token stands by an owner of the configuration before, where the last one was not in effect (Y5)", () => {
  const open = { open: true };
  const changing = () => tree().owned(EDGE, ["o", "p"], ["o", "q"]).ended();
  const before = () => changing().recovered("o", { position: 7, config: 1 });
  assert.equal(before().says(open), "from 600", "o is an owner in both");
  const more = before().recovered("p", { position: 7, config: 0, clock: 650 });
  assert.equal(more.says(open), "from 600", "p was new");
  assert.equal(
    more.recovered("q", { position: 9, config: 1, clock: 700 }).says(open),
    "from 700",
    "of the one before the furthest counts",
  );
  const ofQ = (said: Partial<RecoveredWard>) =>
    changing().recovered("q", { position: 9, config: 1 }).recovered("o", said).recovered("p", {
      position: 0,
    });
  assert.equal(
    ofQ({ position: 0, config: 0 }).says(open),
    "lost",
    "o has lost what it had, and may have known",
  );
  assert.equal(ofQ({ position: 8, config: 2 }).says(open), "from 600", "it was in effect");
  assert.equal(ofQ({ position: 6, config: 2 }).says(open), "lost", "it was, and o lacks what was seen");
  assert.equal(before().says({ ...open, path: [null, null, 8] }), "unknown", "p may have more");
});

Deno.test("where the disk is in use under another number, what it had told is pushed, whatever owners have", () => {
  const goesOn = () =>
    tree().owned().ended().write(replicaKey(NEXT), {
      ...{ site: "e", path: ["root", "c", "e"], parent: CORE, from: EDGE },
    });
  assert.equal(goesOn().recovered("o", { position: 2 }).says(), "from 500");
  assert.equal(goesOn().recovered("o", { position: 2 }).ended(NEXT).says(), "unknown");
});

Deno.test("one that lives below one that lacks what went with a lost disk is waited for, where it has owners (Y7)", () => {
  const lacking = () =>
    tree().write(replicaKey(NEXT), { site: "c", path: ["root", "c"], parent: ROOT, from: CORE })
      .ended(CORE, { next: NEXT, gap: 100 }).write(keptKey(CORE), { floor: 0, known: 0, whole: false });
  assert.equal(lacking().owned().says(), "unknown", "it has not been heard of since");
  assert.equal(lacking().says(), "lost", "nobody will ever say how far it had seen that disk's journal");
  assert.equal(lacking().owned().says({ clock: 100 }), "from 100", "the root had all of it");
  assert.equal(
    lacking().owned().says({ path: [7, null, 7] }),
    "from 500",
    "all that it saw had come to the root",
  );
});
