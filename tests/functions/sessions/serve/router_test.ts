/** The way of a call to the home of a stateful session, between sites that lose each other. */
import assert from "node:assert/strict";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import type { LinkRequest } from "../../../../functions/vocabulary/site_links.ts";
import { Problem } from "../../../../functions/vocabulary/problem.ts";
import { LinkError } from "../../../../runtime/link/mod.ts";
import type { HostedRequest } from "../../../../functions/sessions/serve/request.ts";
import type { OwnStore } from "../../../../functions/sessions/serve/own_store.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { SessionCalls } from "../../../../functions/sessions/serve/made_calls.ts";
import { NO_WAITS } from "../../../../functions/sessions/serve/waits.ts";
import { StoreUnavailable, type TokenState } from "../../../../store/api/api.ts";
import { type RouterServices, StatefulRouter } from "../../../../functions/sessions/serve/router.ts";

const NAME = { app: "shop", class: "cart", id: "ann" };
const bytes = (text: string) => new TextEncoder().encode(text);
const PARENTS: Record<string, string | null> = { cloud: null, "edge-1": "cloud", "edge-2": "cloud" };

interface SiteState {
  /** What this site believes. */
  where: string | null;
  /** Who it is, if this site asks to become the home: itself, or what it is told. */
  open: () => string;
  readonly ran: string[];
  /** So many requests are run, and their answers lost. */
  mute: number;
  readonly heard: string[];
  /** Ends of waiting, of the requests that are run. */
  readonly signals: (AbortSignal | undefined)[];
  router: StatefulRouter;
}

/** Three sites over links that can be cut; `cut` holds pairs as "a b". */
class Sites {
  readonly cut = new Set<string>();
  readonly states = new Map<string, SiteState>();
  readonly sent: string[] = [];

  constructor(wallMs = 30_000) {
    for (const site of Object.keys(PARENTS)) {
      const state: SiteState = {
        where: null,
        open: () => site,
        ran: [],
        mute: 0,
        heard: [],
        signals: [],
        router: undefined as never,
      };
      this.states.set(site, state);
      state.router = new StatefulRouter(this.#services(site, state, wallMs));
    }
  }

  at(site: string): SiteState {
    const state = this.states.get(site);
    assert.ok(state);
    return state;
  }

  async ask(
    site: string,
    request = "r1",
    chain: readonly string[] = [],
    gone?: AbortSignal,
  ): Promise<string> {
    const asked = { name: NAME, request, chain, token: null, call: bytes("hi") };
    const { answer } = await this.at(site).router.ask(asked, false, gone);
    return new TextDecoder().decode(answer);
  }

  close(): void {
    for (const { router } of this.states.values()) router.close();
  }

  #services(site: string, state: SiteState, wallMs: number): RouterServices {
    let drawn = 0;
    return {
      site,
      ...{ wallMs, clock: SYSTEM_CLOCK },
      homes: { where: () => state.where, misled: () => void (state.where = null) },
      host: {
        request: (_, asked) => this.#run(site, state, asked),
        waits: () => NO_WAITS,
        received: (_, request) => void state.heard.push(request),
      },
      links: {
        request: (to, kind, head, { body = null, signal } = {}) =>
          this.#link(`${site} ${to}`, { kind, head, body, signal: signal ?? new AbortController().signal }),
      },
      sites: () => new Map(Object.entries(PARENTS).map(([id, parent]) => [id, { parent }])),
      draw: () => `drawn-${drawn++}`,
      count: () => {},
    };
  }

  #run(site: string, state: SiteState, { request, bytes: call, signal }: HostedRequest) {
    const home = state.open();
    if (home === "nobody") {
      return Promise.reject(new HomeError("stateful_unreachable", "its home and its owners are silent"));
    }
    if (home !== site) return Promise.reject(new HomeError("elsewhere", "not here", home));
    state.where = site;
    state.ran.push(request);
    state.signals.push(signal);
    if (state.mute-- > 0) return new Promise<never>(() => {});
    return Promise.resolve({ answer: bytes(`${new TextDecoder().decode(call)} from ${site}`), token: null });
  }

  /** As links are: who asks waits no longer than his signal says, and that ends the other side's as well. */
  async #link(way: string, request: LinkRequest) {
    this.sent.push(`${way} ${request.kind}`);
    const [, to = ""] = way.split(" ");
    if (this.cut.has(way)) throw new LinkError("unreachable", `Site ${to} is not reachable`);
    const gone = Promise.withResolvers<never>();
    const leave = () => gone.reject(request.signal.reason);
    request.signal.addEventListener("abort", leave, { once: true });
    try {
      const reply = await Promise.race([this.at(to).router.serve(request), gone.promise]);
      return { head: reply.head, body: reply.body ?? null };
    } finally {
      request.signal.removeEventListener("abort", leave);
    }
  }
}

Deno.test("a call goes to the home that is remembered, and where it is said to be else", async () => {
  const sites = new Sites();
  sites.at("edge-2").where = "edge-2";
  sites.at("edge-1").where = "edge-2";
  assert.equal(await sites.ask("edge-1"), "hi from edge-2");
  // The cloud remembers wrongly; the site that it asks knows better.
  sites.at("cloud").where = "edge-1";
  assert.equal(await sites.ask("cloud"), "hi from edge-2");
  assert.deepEqual(sites.at("edge-1").ran, []);
  // Nobody is remembered: the arbiter says who it is.
  sites.at("edge-1").where = null;
  sites.at("edge-1").open = () => "edge-2";
  assert.equal(await sites.ask("edge-1"), "hi from edge-2");
  sites.close();
});

Deno.test("a call takes the tree where its home can't be reached straight, and becomes a claim where not at all (router.ts T2)", async () => {
  const sites = new Sites();
  sites.at("edge-2").where = "edge-2";
  sites.at("edge-1").where = "edge-2";
  sites.cut.add("edge-1 edge-2");
  assert.equal(await sites.ask("edge-1"), "hi from edge-2");
  assert.deepEqual(sites.sent.slice(0, 3), [
    "edge-1 edge-2 stateful",
    "edge-1 cloud stateful",
    "cloud edge-2 stateful",
  ]);
  sites.cut.add("cloud edge-2");
  assert.equal(await sites.ask("edge-1", "r2"), "hi from edge-1", "it took the session over");
  assert.deepEqual([sites.at("edge-1").ran, sites.at("edge-2").ran], [["r2"], ["r1"]]);
  sites.close();
});

Deno.test("a call that found no home is made again with the same id until one is there (T1)", async () => {
  const sites = new Sites();
  let asked = 0;
  sites.at("edge-1").open = () => asked++ < 3 ? "nobody" : "edge-1";
  assert.equal(await sites.ask("edge-1", "the-one"), "hi from edge-1");
  assert.deepEqual([asked, sites.at("edge-1").ran], [4, ["the-one"]]);
  sites.close();
});

Deno.test("of one that nobody can open only the first call waits, and few of those after it try (T4)", async () => {
  const sites = new Sites();
  let tries = 0;
  sites.at("edge-1").open = () => {
    tries++;
    return "nobody";
  };
  const unreachable = (error: unknown) => error instanceof Problem && error.code === "stateful_unreachable";
  const tookMs = async () => {
    const begunMs = performance.now();
    await assert.rejects(sites.ask("edge-1"), unreachable);
    return performance.now() - begunMs;
  };
  const first = await tookMs();
  assert.ok(first >= 2_900, `the first call gave up after ${first} ms`);
  tries = 0;
  const laterMs = performance.now();
  for (let i = 0; i < 100; i++) {
    const next = await tookMs();
    assert.ok(next < 400, `a later call waited ${next} ms`);
  }
  const triesMax = 1 + (performance.now() - laterMs) / 500;
  assert.ok(tries <= triesMax, `${tries} of 100 later calls asked for a home`);
  sites.close();
});

Deno.test("one that nobody could open is served soon after it can be, and calls of other sessions try at once (T4)", async () => {
  const sites = new Sites();
  sites.at("edge-1").open = () => "nobody";
  await assert.rejects(sites.ask("edge-1"));
  sites.at("edge-1").open = () => "edge-1";
  assert.equal(await sites.ask("edge-1", "r2", ["cart/bob"]), "hi from edge-1");
  sites.at("edge-1").where = null;
  assert.equal(await sites.ask("edge-1", "r3"), "hi from edge-1", "it is known to be served");
  sites.at("edge-1").where = null;
  sites.at("edge-1").open = () => "nobody";
  await assert.rejects(sites.ask("edge-1", "r4"));
  sites.at("edge-1").open = () => "edge-1";
  const begunMs = performance.now();
  let served = "";
  while (served === "" && performance.now() - begunMs < 5_000) {
    served = await sites.ask("edge-1", "r5").catch(() => "");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(served, "hi from edge-1");
  sites.close();
});

Deno.test("a call ends with a problem that says what can be done (T3)", async () => {
  const sites = new Sites(400);
  sites.at("edge-1").open = () => "nobody";
  await assert.rejects(
    sites.ask("edge-1"),
    (error) => error instanceof Problem && error.code === "wall_time",
  );
  const name = { ...NAME };
  const chain = ["cart/bob", "cart/ann"];
  await assert.rejects(
    sites.at("edge-1").router.ask({ name, request: "r", chain, token: null, call: bytes("") }),
    (error) => error instanceof Problem && error.code === "cycle",
  );
  sites.close();
});

Deno.test("a stateful session that calls another asks anew when its time is over, and nobody else does (T5)", async () => {
  const sites = new Sites(50);
  const wallTime = (error: unknown) => error instanceof Problem && error.code === "wall_time";
  sites.at("edge-1").mute = 1;
  await assert.rejects(sites.ask("edge-1", "r1"), wallTime);
  sites.at("edge-1").mute = 1;
  assert.equal(await sites.ask("edge-1", "r2", ["cart/bob"]), "hi from edge-1");
  assert.deepEqual(sites.at("edge-1").ran, ["r1", "r2", "r2"]);
  sites.close();
});

Deno.test("the home of a call hears that nobody waits for it any more: there, over a link, and along the tree (T6)", async () => {
  for (const [home, cut] of [["edge-1", []], ["edge-2", []], ["edge-2", ["edge-1 edge-2"]]] as const) {
    const sites = new Sites(), gone = new AbortController();
    for (const site of ["edge-1", home]) sites.at(site).where = home;
    for (const way of cut) sites.cut.add(way);
    const { ran, signals } = sites.at(home);
    sites.at(home).mute = 2;
    const asked = sites.ask("edge-1", "r1", ["cart/bob"], gone.signal);
    const left = assert.rejects(asked, Problem);
    while (ran.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(signals[0]?.aborted, false);
    gone.abort();
    assert.equal(signals[0]?.aborted, true, "at once");
    await left;
    assert.deepEqual(ran, ["r1"]);
    await assert.rejects(sites.ask("edge-1", "r2", ["cart/bob"], gone.signal), { code: "superseded" });
    assert.deepEqual(ran, ["r1"], "who is gone before he asks has nothing begun");
    sites.close();
  }
});

Deno.test("a stateful session is not told that a site stops: its call may have been run (T7)", async () => {
  const sites = new Sites(), edge = sites.at("edge-1");
  let closed = 0;
  edge.where = "edge-1";
  edge.open = () => {
    if (closed-- > 0) throw new HomeError("closed", "site edge-1 is stopping");
    return "edge-1";
  };
  closed = 1;
  await assert.rejects(sites.ask("edge-1", "r1"), { code: "draining" }, "a client asks elsewhere");
  closed = 3;
  assert.equal(await sites.ask("edge-1", "r2", ["cart/bob"]), "hi from edge-1");
  assert.deepEqual([closed, edge.ran], [-1, ["r2"]]);
  sites.close();
});

Deno.test("a stateful session is not told that the store waits in vain: its call may have been run (T7)", async () => {
  for (const code of ["owners_unreachable", "source_unreachable", "disk_failed"] as const) {
    const sites = new Sites(), edge = sites.at("edge-1");
    let failing = 2;
    edge.open = () => {
      if (failing-- > 0) throw new StoreUnavailable(code, "in vain");
      return "edge-1";
    };
    await assert.rejects(sites.ask("edge-1", "r1"), { code }, "a client decides itself");
    assert.equal(await sites.ask("edge-1", "r2", ["cart/bob"]), "hi from edge-1");
    assert.deepEqual(edge.ran, ["r2"]);
    sites.close();
  }
});

Deno.test("a stateful session that was answered is not told that what the other one saw has not come yet (XS1)", async () => {
  const failures = [new StoreUnavailable("source_unreachable", "a clock is wrong"), null];
  const seen: TokenState[] = [], token = { clock: 1 } as TokenState, answer = bytes("done");
  const store = {
    token: () => Promise.resolve(token),
    see: (named: TokenState) => {
      seen.push(named);
      const failure = failures.shift() ?? null;
      return failure === null ? Promise.resolve() : Promise.reject(failure);
    },
  } as unknown as OwnStore;
  const caller = { name: NAME, seed: bytes("seed"), store, outside: null as never };
  const calls = new SessionCalls(
    { call: () => Promise.resolve({ answer, token, heard: () => {} }), clock: SYSTEM_CLOCK },
    caller,
  );
  const call = { class: "cart", id: "bob", call: bytes("hi") } as never;
  const ask = (signal = new AbortController().signal) => calls.callSession(call, "r1", signal);
  assert.equal((await ask()).answer, answer);
  assert.deepEqual(seen, [token, token]);
  failures.push(new StoreUnavailable("source_lost", "gone"));
  await assert.rejects(ask(), { code: "source_lost" }, "what is gone does not come");
  failures.push(new StoreUnavailable("source_unreachable", "a clock is wrong"));
  await assert.rejects(ask(AbortSignal.abort()), { code: "stateful_unreachable" }, "nor for ever");
});

Deno.test("a home hears that its answers have arrived, straight or over a link", async () => {
  const sites = new Sites();
  sites.at("edge-1").where = sites.at("edge-2").where = "edge-2";
  await sites.ask("edge-1", "far");
  await sites.ask("edge-2", "near");
  assert.deepEqual(sites.at("edge-2").heard, ["near"]);
  while (sites.at("edge-2").heard.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(sites.at("edge-2").heard, ["near", "far"]);
  sites.close();
});

Deno.test("bytes that are no call are answered with a problem, and reach nobody", async () => {
  const sites = new Sites();
  const { signal } = new AbortController();
  const head = new Uint8Array([255, 1, 2]);
  const reply = await sites.at("edge-1").router.serve({ kind: "stateful", head, body: null, signal });
  assert.ok(reply.head.length > 0);
  assert.deepEqual(sites.at("edge-1").ran, []);
});

Deno.test("an answer that another site may ask for again is kept: its home is not told that it arrived", async () => {
  const sites = new Sites();
  sites.at("edge-1").where = "edge-2";
  sites.at("edge-2").where = "edge-2";
  const { router } = sites.at("edge-2");
  const call = { address: NAME, call: bytes("hi"), token: null };
  await router.call({ ...call, once: "once.1" });
  await router.call(call);
  assert.deepEqual(sites.at("edge-2").ran, ["once.1", "drawn-0"]);
  assert.deepEqual(sites.at("edge-2").heard, ["drawn-0"]);
  sites.close();
});
