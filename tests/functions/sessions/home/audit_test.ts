/** What a site drops of logs that nobody told it to forget (functions/sessions/home/audit.ts). */
import assert from "node:assert/strict";
import { Audit } from "../../../../functions/sessions/home/audit.ts";
import type { Reply, RowState, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import { AUDIT_AT_ONCE, AUDIT_MS } from "../../../../functions/sessions/log/limits.ts";
import type { StatefulName } from "../../../../functions/sessions/log/api.ts";
import { HandClock } from "../attach/peer_pair.ts";

const nameOf = (id: string): StatefulName => ({ app: "shop", class: "cart", id });
const OWNERS = [{ site: "b", disk: 3 }, { site: "a", disk: 7 }];

/** Site a, disk 7, with logs of these ids. */
function auditing(ids: readonly string[] = ["x"]) {
  const clock = new HandClock(), forgotten: string[] = [], asked: string[] = [], swept: string[] = [];
  const state = { row: null as RowState | null, answers: true, atHome: [] as readonly string[], canceled: 0 };
  const logs = ids.map((id) => ({ name: nameOf(id), writtenMs: 0 }));
  const audit = new Audit(
    {
      ...{ site: "a", disk: () => 7, arbiter: () => "root", wallMs: () => 1_000_000, endedMs: 400 },
      ...{ nowMs: () => clock.nowMs(), after: (ms: number, run: () => void) => clock.after(ms, run) },
      ...{ count: () => {}, fatal: (error: Error) => assert.fail(error) },
      ask: (_: string, ask: SiteAsk) => {
        asked.push(ask.kind === "look" ? ask.name.id : ask.kind);
        const reply: Reply = { kind: "row", outcome: "granted", row: state.row };
        return {
          reply: state.answers ? Promise.resolve(reply) : new Promise<Reply>(() => {}),
          cancel: () => void state.canceled++,
        };
      },
      keepers: {
        all: () => logs,
        forgetFormer: ({ id }: StatefulName, epoch: number) =>
          Promise.resolve(void forgotten.push(`${id} ${epoch}`)),
        recollection: { sweep: (beforeMs: number) => Promise.resolve(void swept.push(`before ${beforeMs}`)) },
      },
    } as unknown as ConstructorParameters<typeof Audit>[0],
    ({ id }) => state.atHome.includes(id),
  );
  const pass = async (ms: number) => {
    clock.turn(ms);
    audit.tick({ sweep: () => Promise.resolve(void swept.push("the arbiter's")) } as never);
    await new Promise((resolve) => setTimeout(resolve));
  };
  return { audit, state, logs, clock, forgotten, asked, swept, pass };
}

const rowOf = (row: Partial<RowState> = {}): RowState => ({
  ...{ site: "b", epoch: 3, config: 1, owners: OWNERS, version: "v", ended: false, movesTo: "", ...row },
});

Deno.test("a log is dropped where this disk is no owner of it any more, up to the epoch on record, or it has ended (A1)", async () => {
  const rows: readonly (readonly [string, RowState | null, string | null, readonly string[]])[] = [
    ["it is an owner", rowOf(), "b", []],
    ["it is one, and the session is to move", rowOf({ movesTo: "c" }), "c", []],
    ["another disk of this site is", rowOf({ owners: [{ site: "a", disk: 8 }] }), null, ["x 3"]],
    ["another site with such a disk is", rowOf({ owners: [{ site: "b", disk: 7 }] }), null, ["x 3"]],
    ["it has ended", rowOf({ ended: true }), null, ["x 4"]],
    ["there is no record", null, null, []],
  ];
  for (const [says, row, home, expected] of rows) {
    const { audit, state, forgotten } = auditing();
    state.row = row;
    assert.equal(await audit.home(nameOf("x")), home, says);
    assert.deepEqual(forgotten, expected, says);
  }
  const here = auditing();
  here.state.row = rowOf({ owners: [] });
  here.state.atHome = ["x"];
  assert.equal(await here.audit.home(nameOf("x")), null);
  assert.deepEqual(here.forgotten, [], "it is at home here meanwhile");
});

Deno.test("what was not written for long is looked at, some at a time, and nothing that is at home here", async () => {
  const ids = Array.from({ length: AUDIT_AT_ONCE + 5 }, (_, i) => `${i}`);
  const { state, logs, asked, pass, clock } = auditing(ids);
  state.row = rowOf();
  state.atHome = ["0"];
  await pass(AUDIT_MS - 1);
  assert.deepEqual(asked, []);
  await pass(AUDIT_MS / 10);
  assert.deepEqual(asked.splice(0), ids.slice(1, AUDIT_AT_ONCE + 1));
  await pass(AUDIT_MS / 20);
  assert.deepEqual(asked, [], "not so soon again");
  for (const log of logs.slice(0, AUDIT_AT_ONCE + 3)) log.writtenMs = clock.nowMs();
  await pass(AUDIT_MS / 10);
  assert.deepEqual(asked, ids.slice(AUDIT_AT_ONCE + 3));
});

Deno.test("an arbiter that does not answer is not waited for, and what it has on record is dropped in its time", async () => {
  const { audit, state, clock, forgotten, swept, pass } = auditing();
  state.answers = false;
  const asking = audit.home(nameOf("x"));
  clock.turn(4_000);
  assert.equal(await asking, null);
  assert.deepEqual([forgotten, state.canceled], [[], 1]);
  await pass(3_595_999);
  assert.deepEqual(swept, []);
  await pass(1);
  assert.deepEqual(swept, ["the arbiter's", "before 999600"]);
  await pass(10);
  assert.equal(swept.length, 2);
});

Deno.test("the other owners of a log are told, the nearest first, where it has not ended", async () => {
  const { audit, state } = auditing();
  state.row = rowOf();
  assert.deepEqual(await audit.owners(nameOf("x")), [{ site: "a", disk: 7 }]);
  state.row = rowOf({ ended: true });
  assert.equal(await audit.owners(nameOf("x")), null);
  state.row = null;
  assert.equal(await audit.owners(nameOf("x")), null);
});
