/** Under which number sessions are born at a site (functions/sessions/home/births.ts). */
import assert from "node:assert/strict";
import { Births, type BirthsPorts } from "../../../../functions/sessions/home/births.ts";
import type { Reply, SiteAsk } from "../../../../functions/sessions/log/asks.ts";
import type { SiteId } from "../../../../store/model/ports.ts";
import { HandClock } from "../attach/peer_pair.ts";

function bearing() {
  const clock = new HandClock(), asked: string[] = [];
  const state = {
    ...{
      f: 1,
      disk: 7,
      others: ["b"] as readonly SiteId[],
      lost: [] as readonly SiteId[],
      number: 0,
      canceled: 0,
    },
    answers: (_: SiteId, _ask: SiteAsk): Promise<Reply | null> | null => null,
  };
  const births = new Births({
    ...{
      site: "a",
      disk: () => state.disk,
      arbiter: () => "root",
      isLost: (site: SiteId) => state.lost.includes(site),
    },
    ...{ nowMs: () => clock.nowMs(), after: (ms: number, run: () => void) => clock.after(ms, run) },
    ask: (to: SiteId, ask: SiteAsk) => {
      asked.push(`${to} ${ask.kind}`);
      const usual = ask.kind === "births"
        ? { kind: "births", number: ++state.number }
        : { kind: "promised", disk: 3 };
      const reply = state.answers(to, ask) ?? Promise.resolve(usual);
      return { reply, cancel: () => void state.canceled++ };
    },
    fellows: {
      get f() {
        return state.f;
      },
      choose: () => {
        if (state.others.length > 2) throw new Error("there are not so many");
        return { owners: ["a", ...state.others], missing: state.f - state.others.length };
      },
    },
  } as unknown as BirthsPorts);
  return { births, state, asked, clock };
}

Deno.test("a number is asked for once, and again where an owner is lost, this disk is another or f is", async () => {
  const { births, state, asked } = bearing();
  const [first, same] = await Promise.all([births.current(1_000), births.current(1_000)]);
  assert.deepEqual(first, { number: 1, owners: [{ site: "a", disk: 7 }, { site: "b", disk: 3 }], lapses: 0 });
  assert.equal(same, first);
  assert.deepEqual(asked.splice(0), ["b greet", "root births"]);
  assert.equal(await births.current(1_000), first);
  const changes: (() => void)[] = [
    () => void (state.lost = ["b"], state.others = ["c"]),
    () => void (state.disk = 8),
    () => void (state.f = 2, state.others = ["c", "d"]),
  ];
  for (const [i, change] of changes.entries()) {
    change();
    const next = await births.current(1_000);
    assert.equal(next.number, i + 2);
    assert.equal(await births.current(1_000), next);
  }
});

Deno.test("nothing is made under a number of before the arbiter asked who is there, also where it was on its way (BR1)", async () => {
  const { births, state } = bearing();
  const before = await births.current(1_000);
  assert.equal(births.isLapsed(before), false);
  births.lapse();
  assert.equal(births.isLapsed(before), true);
  const answer = Promise.withResolvers<Reply>();
  state.answers = (_, { kind }) => kind === "births" ? answer.promise : null;
  const asking = births.current(1_000);
  await new Promise((resolve) => setTimeout(resolve));
  births.lapse();
  answer.resolve({ kind: "births", number: 9 });
  const late = await asking;
  assert.deepEqual([late.number, births.isLapsed(late)], [9, true]);
  state.answers = () => null;
  const next = await births.current(1_000);
  assert.notEqual(next.number, 9, "it is asked for again");
  assert.equal(births.isLapsed(next), false);
});

Deno.test("who can't have a number is told why, in time, and asks anew the next time", async () => {
  const { births, state, clock } = bearing();
  const never = new Promise<never>(() => {});
  for (
    const [silent, code] of [["b", "stateful_unreachable"], ["root", "arbiter_unreachable"]] as const
  ) {
    state.answers = (to) => to === silent ? never : null;
    const asking = births.current(clock.nowMs() + 500);
    asking.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve));
    clock.turn(500);
    await assert.rejects(asking, { code });
  }
  assert.equal(state.canceled, 2, "what is not waited for is not asked for");
  state.answers = () => null;
  for (const others of [[], ["b", "c", "d"]]) {
    state.others = others;
    await assert.rejects(births.current(1_000), {
      code: "stateful_unreachable",
      message: /1 of the 1 other/,
    });
  }
  state.others = ["b"];
  assert.equal((await births.current(clock.nowMs() + 500)).owners.length, 2);
});
