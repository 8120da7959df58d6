/** What becomes of a stateful session when other code is to run it, and when the code before comes back. */
import assert from "node:assert/strict";
import { decodeAnswer, encodeCall } from "../../../../functions/calls/call.ts";
import { Session } from "../../../../functions/class/session.ts";
import { list, map } from "../../../../functions/tracked/mod.ts";
import type { SessionObject } from "../../../../functions/sessions/turn/handler.ts";
import { decodeValue, encodeValue } from "../../../../functions/values/value.ts";
import { Disks, type MemoryHost, memoryHost } from "./memory_host.ts";

const NAME = { app: "shop", class: "robot", id: "r" };
let requests = 0;

async function ask(host: MemoryHost, method: string, ...args: unknown[]): Promise<unknown> {
  const bytes = encodeCall({ kind: "rpc", method, args: encodeValue(args) });
  const request = `v${requests++}`;
  const { answer } = await host.host.request(NAME, { request, chain: [], bytes, token: null });
  const told = decodeAnswer(answer);
  if (told.kind === "error") throw new Error(told.message);
  return told.kind === "value" ? decodeValue(told.value) : undefined;
}

const make = (Class: new () => unknown) => () => new Class() as SessionObject;

/** As it was first. */
class Card extends Session {
  stamps = map<string, number>();
  total = 0;
  stamp(drink: string): number {
    this.stamps.set(drink, (this.stamps.get(drink) ?? 0) + 1);
    return ++this.total;
  }
}

/** With other fields: what was a number is an object, and the total is counted. */
class Counted extends Session {
  static shape: number = 1;
  static migrated: number[] = [];
  stamps = map<string, { readonly count: number }>();
  events = list<string>();
  stamp(drink: string): number {
    this.stamps.set(drink, { count: (this.stamps.get(drink)?.count ?? 0) + 1 });
    this.events.push(drink);
    return [...this.stamps.values()].reduce((sum, { count }) => sum + count, 0);
  }
  all(): unknown {
    return {
      stamps: Object.fromEntries(this.stamps),
      events: this.events.toArray(),
      keys: Object.keys(this),
    };
  }
  override migrate(old: Record<string, unknown>, shape: number): void {
    Counted.migrated.push(shape);
    for (const [drink, count] of old["stamps"] as Map<string, number>) this.stamps.set(drink, { count });
    this.events.push(`${old["total"]} before`);
  }
}

Deno.test("migrate takes over the fields of an open session, once, before anything else happens (MG2)", async () => {
  await using host = await memoryHost(make(Card));
  for (const drink of ["mocha", "latte", "mocha"]) await ask(host, "stamp", drink);
  Counted.migrated = [];
  host.deploy("v2", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 4);
  const wanted = {
    stamps: { mocha: { count: 3 }, latte: { count: 1 } },
    events: ["3 before", "mocha"],
    keys: ["stamps", "events"],
  };
  assert.deepEqual(await ask(host, "all"), wanted);
  assert.deepEqual(Counted.migrated, [0]);
  host.loseIsolates();
  assert.deepEqual(await ask(host, "all"), wanted);
  assert.deepEqual(Counted.migrated, [0], "what it made was written down before the first stamp");
});

Deno.test("a session at rest goes on with other code, and outlives the loss of its site right after", async () => {
  const disks = new Disks();
  const versions: [string, new () => unknown][] = [["v1", Card], ["v2", Card], ["v3", Counted]];
  let stamps = 0;
  for (let last = 1; last <= versions.length; last++) {
    await using host = await memoryHost(make(Card), { disks });
    for (const [version, Class] of versions.slice(1, last)) host.deploy(version, make(Class));
    assert.equal(await ask(host, "stamp", "mocha"), ++stamps);
    // Its log is behind a checkpoint of the code that wrote it, and not of the one before.
    host.loseIsolates();
    assert.equal(await ask(host, "stamp", "latte"), ++stamps);
  }
});

Deno.test("code that comes back before the next one ran a session goes on with it, and can be replayed", async () => {
  await using host = await memoryHost(make(Card));
  for (let stamps = 1; stamps < 8;) {
    assert.equal(await ask(host, "stamp", "mocha"), stamps++);
    // Its checkpoint is for the next version, which nobody asks it for anything with.
    host.deploy(`next ${stamps}`, make(Card));
    for (let i = 0; i < 6_000 && host.host.counts.open > 0; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    host.deploy("v1", make(Card));
    assert.equal(await ask(host, "stamp", "mocha"), stamps++);
    host.loseIsolates();
  }
});

Deno.test("code with a lower shape leaves a session as it is, says so, and the newer one goes on (migration.ts MG3)", async () => {
  await using host = await memoryHost(make(Card));
  await ask(host, "stamp", "mocha");
  host.deploy("v2", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 2);
  host.deploy("v3", make(Card));
  await assert.rejects(
    ask(host, "stamp", "mocha"),
    /shape_newer: its state was written with shape 1, by v2.*shape 0/,
  );
  await assert.rejects(ask(host, "stamp", "mocha"), { code: "stateful_parked" });
  host.deploy("v4", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 3);
});

Deno.test("fields whose kinds do not fit are named, nothing is lost, and the code before goes on (functions/tracked/state.ts S4)", async () => {
  class Lists extends Session {
    stamps = list<string>();
    total = 0;
    stamp(): number {
      return ++this.total;
    }
  }
  class Plain extends Session {
    stamps: unknown = {};
    stamp(): number {
      return 0;
    }
  }
  class Tracked extends Session {
    total = map();
    stamp(): number {
      return 0;
    }
  }
  await using host = await memoryHost(make(Card));
  await ask(host, "stamp", "mocha");
  const rows: [new () => unknown, RegExp][] = [
    [
      Lists,
      /state_invalid: can't read stamps: the state has a map there, and this class a list.*static shape.*migrate/,
    ],
    [Plain, /can't read stamps: the state has a map there, and this class a plain field/],
    [Tracked, /can't read total: the state has a plain field there, and this class a map/],
  ];
  for (const [i, [Class, says]] of rows.entries()) {
    host.deploy(`bad ${i}`, make(Class));
    await assert.rejects(ask(host, "stamp", "mocha"), says);
    host.deploy(`good ${i}`, make(Card));
    assert.equal(await ask(host, "stamp", "mocha"), 2 + i);
  }
});

Deno.test("fields that the class has no more, and new ones, need no migrate (MG1)", async () => {
  class Later extends Session {
    stamps = map<string, number>();
    since = "today";
    stamp(): unknown {
      return [this.since, ...Object.keys(this), this.stamps.get("mocha")];
    }
  }
  await using host = await memoryHost(make(Card));
  await ask(host, "stamp", "mocha");
  host.deploy("v2", make(Later));
  assert.deepEqual(await ask(host, "stamp"), ["today", "stamps", "since", "total", 1]);
});

Deno.test("a migrate that throws, waits or acts parks the session, and a better one goes on", async () => {
  class Throws extends Counted {
    override migrate(): void {
      throw new Error("no way");
    }
  }
  class Waits extends Counted {
    override async migrate(): Promise<void> {}
  }
  class Acts extends Counted {
    override migrate(): void {
      this.setTimer("bell", 1);
    }
  }
  await using host = await memoryHost(make(Card));
  await ask(host, "stamp", "mocha");
  const rows = [[Throws, /migrate_failed: .* threw: no way/], [Waits, /returned a promise/], [
    Acts,
    /setTimer works in a handler of a stateful session/,
  ]] as const;
  for (const [i, [Class, says]] of rows.entries()) {
    host.deploy(`bad ${i}`, make(Class));
    await assert.rejects(ask(host, "stamp", "mocha"), says);
  }
  host.deploy("good", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 2);
});

Deno.test("structures can be put into other fields by migrate, and are tracked there", async () => {
  class Moved extends Session {
    static shape = 2;
    drinks = map<string, number>();
    stamp(drink: string): unknown {
      this.drinks.set(drink, (this.drinks.get(drink) ?? 0) + 1);
      return [Object.keys(this), [...this.drinks]];
    }
    override migrate(old: Record<string, unknown>): void {
      this.drinks = old["stamps"] as typeof this.drinks;
    }
  }
  await using host = await memoryHost(make(Card));
  await ask(host, "stamp", "mocha");
  host.deploy("v2", make(Moved));
  assert.deepEqual(await ask(host, "stamp", "mocha"), [["drinks"], [["mocha", 2]]]);
  host.loseIsolates();
  assert.deepEqual(await ask(host, "stamp", "latte"), [["drinks"], [["mocha", 2], ["latte", 1]]]);
});

Deno.test("a session whose log the code before has to replay goes on with the present one, before it serves", async () => {
  await using host = await memoryHost(make(Card));
  assert.equal(await ask(host, "stamp", "mocha"), 1);
  host.loseIsolates();
  host.deploy("v2", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 2);
  assert.deepEqual(await ask(host, "all"), {
    ...{ stamps: { mocha: { count: 2 } }, events: ["1 before", "mocha"], keys: ["stamps", "events"] },
  });
});

Deno.test("a class that begins with what no checkpoint holds says so before it answers, and a mended one goes on", async () => {
  class Arrow extends Card {
    count = (): number => this.total;
  }
  await using host = await memoryHost(make(Arrow));
  for (let i = 0; i < 2; i++) {
    await assert.rejects(ask(host, "stamp", "mocha"), {
      ...{
        code: "stateful_parked",
        message: /state_invalid: can't keep count: a function.*make it a method/,
      },
    });
  }
  host.deploy("v2", make(Card));
  assert.equal(await ask(host, "stamp", "mocha"), 1);
});

Deno.test("a handler that waits for what nobody delivers ends with the version that has it: a mended one goes on", async () => {
  class Hangs extends Card {
    override stamp(drink: string): number {
      const stamps = super.stamp(drink);
      return stamps < 3 ? stamps : new Promise(() => {}) as never;
    }
  }
  await using host = await memoryHost(make(Hangs));
  for (let stamps = 1; stamps < 3; stamps++) assert.equal(await ask(host, "stamp", "mocha"), stamps);
  await assert.rejects(ask(host, "stamp", "mocha"), { message: /waits_unrecorded/ });
  await assert.rejects(ask(host, "stamp", "mocha"), { message: /waits_unrecorded/ });
  host.deploy("v2", make(Counted));
  assert.equal(await ask(host, "stamp", "mocha"), 3);
});
