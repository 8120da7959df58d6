/**
 * The sessions of a run: users whose requests land at one site after another with the tokens they hold.
 *
 * A client keeps either the last token it received (a cookie jar) or one a site, and then sends all that a later
 * answer has not merged (the client library). Nothing it holds or does comes from inside a site but tokens.
 */
import type { AttachedSession, TokenState } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { HistoryEvent, Written } from "./history.ts";
import type { Keyspace } from "./keyspace.ts";
import { type CallOperation, type Outcome, perform, type Program, type RequestCalls } from "./handler.ts";
import type { Probes } from "./probes.ts";
import type { Draws } from "./random.ts";
import type { Running, SimSite, SiteProcess } from "./site.ts";
import type { OperationWeights, Plan } from "./topology.ts";
import type { World } from "./world.ts";

/** What all clients of a run share. */
export interface ClientSurroundings {
  readonly world: World;
  readonly keyspace: Keyspace;
  readonly plan: Plan;
  readonly probes: Probes;
  readonly sites: ReadonlyMap<SiteId, SimSite>;
  readonly record: (event: HistoryEvent) => void;
  readonly counters: { requests: number; issues: number; writes: number };
  /** Something leaves a site. */
  readonly passed: (site: SiteId, point: string) => void;
  readonly calls?: ClientCalls;
}

/** How requests call what is above the replicas. */
export interface ClientCalls {
  /** That a request does. */
  readonly chance: number;
  draw(draws: Draws): CallOperation;
  /** Of a request that a process runs. */
  of(process: SiteProcess): (session: AttachedSession) => RequestCalls;
}

/** A token in a client's hands. */
export interface HeldToken {
  readonly issue: number;
  readonly state: TokenState;
  readonly site: SiteId;
  /** Whose answer brought it. */
  readonly request: number;
}

/** Old tokens a client may come back with (a restored tab): the last few. */
const OLD_TOKENS = 4;
/** Attempts of a last look … */
const LOOKS_MAX = 6;
/**
 * … one in so long, as long as one waits for what it needs: where a clock is not believed, a request is refused at once,
 * and it takes seconds until who is right is known (docs/protocol/clocks.md, B5 and B8).
 */
const LOOK_EVERY_MS = 2_000;
const CLIENT_LINK_MS = 0.3;
const ASK_AGAIN_MS: readonly [number, number] = [10, 300];

/** One session's client. */
export class Client {
  readonly #number: number;
  readonly #around: ClientSurroundings;
  readonly #merges: boolean;
  #tokens: HeldToken[] = [];
  #old: HeldToken[] = [];
  #site: SiteId;
  #siteBefore: SiteId;
  /** The token that each request under way has brought so far: a later one of the same request replaces it. */
  readonly #last = new Map<number, number>();
  /** Requests under way. */
  busy = 0;

  constructor(number: number, around: ClientSurroundings, draws: Draws) {
    this.#number = number;
    this.#around = around;
    this.#merges = draws.chance(around.plan.mergeShare);
    this.#site = this.#anySite(draws);
    this.#siteBefore = this.#site;
  }

  /** One request of the kind the plan wants. */
  request(draws: Draws): void {
    const { plan } = this.#around;
    if (draws.chance(plan.moveChance)) {
      const to = draws.chance(plan.backChance) ? this.#siteBefore : this.#anySite(draws);
      this.#siteBefore = this.#site;
      this.#site = to;
    }
    const program = this.#program(draws);
    const { calls } = this.#around;
    if (calls === undefined || !draws.chance(calls.chance)) {
      return void this.#send(this.#site, program, this.#presented(draws), false);
    }
    const call = calls.draw(draws);
    const at = draws.integer(0, program.operations.length);
    const operations = program.operations.toSpliced(at, 0, call);
    const thinkMs = program.thinkMs.toSpliced(at, 0, 0);
    void this.#call({ ...program, operations, thinkMs }, call, draws);
  }

  /** A request that calls is made again until that is answered: then it does nothing else any more. */
  async #call(program: Program, call: CallOperation, draws: Draws): Promise<void> {
    const { world, probes } = this.#around;
    let presented = this.#presented(draws);
    this.busy++;
    for (;;) {
      const outcome = await this.#send(this.#site, program, presented, false);
      if (outcome === "ok" || outcome.startsWith("fault")) break;
      // What the store refuses outright the same token asks for in vain; so does whoever has no session any more.
      if (outcome.endsWith("source_lost")) presented = this.#tokens;
      if (outcome === "call: superseded") {
        probes.count("call: superseded");
        break;
      }
      await world.sleep(draws.between(...ASK_AGAIN_MS));
      if (draws.chance(0.5)) this.#site = this.#anySite(draws);
      program = { operations: [call], thinkMs: [0], openAfter: -1, isParallel: false };
    }
    this.busy--;
  }

  /** The last look: every key, at a site. */
  look(site: SiteId): void {
    const { keyspace } = this.#around;
    const all = keyspace.keys.keys().toArray();
    const operations: Program["operations"] = [
      { kind: "get", keys: all },
      ...keyspace.groups.map((_, group) => ({ kind: "list" as const, group, limit: 0, reverse: false })),
    ];
    void this.#look(site, { operations, thinkMs: [], openAfter: -1, isParallel: false });
  }

  /** A slow link may need a few attempts within the limits of each; what they fetched stays. So may a wrong clock. */
  async #look(site: SiteId, program: Program): Promise<void> {
    const { world, probes } = this.#around;
    this.busy++;
    for (let left = LOOKS_MAX; left > 0; left--) {
      const againMs = world.nowMs + LOOK_EVERY_MS;
      const outcome = await this.#send(site, program, this.#tokens, left === 1);
      if (!outcome.endsWith("_unreachable")) break;
      probes.count("excused a last look that is made again");
      if (left > 1 && world.nowMs < againMs) await world.sleep(againMs - world.nowMs);
    }
    this.busy--;
  }

  #anySite(draws: Draws): SiteId {
    const { plan } = this.#around;
    const edges = plan.sites.filter((site) => site.tier === "edge");
    return draws.pick(edges.length > 0 && draws.chance(plan.edgeShare) ? edges : plan.sites).id;
  }

  #presented(draws: Draws): readonly HeldToken[] {
    if (this.#old.length > 0 && draws.chance(this.#around.plan.oldTokenChance)) {
      return [draws.pick(this.#old)];
    }
    return this.#tokens;
  }

  async #send(
    site: SiteId,
    program: Program,
    presented: readonly HeldToken[],
    final: boolean,
  ): Promise<Outcome> {
    const { world, sites, probes, record, counters } = this.#around;
    this.busy++;
    await world.sleep(CLIENT_LINK_MS);
    const process = sites.get(site)?.process ?? null;
    if (process === null || process.draining) {
      probes.count("request: site down");
      this.busy--;
      return "down";
    }
    const request = counters.requests++;
    record({
      kind: "request",
      atMs: world.nowMs,
      request,
      session: this.#number,
      site,
      presents: presented.map((token) => token.issue),
      final,
    });
    const outcome = await new Promise<Outcome>((resolve) => {
      const running: Running = { stage: "waiting for the site", broken: () => resolve("crashed") };
      process.running.add(running);
      const issued = (state: TokenState, open: boolean) => {
        const issue = counters.issues++;
        record({ kind: "issue", atMs: world.nowMs, request, issue, open });
        this.#around.passed(site, "token leaves");
        world.after(CLIENT_LINK_MS, () => this.#received(presented, { issue, state, site, request }));
      };
      const sent = (chunk: number) => {
        record({ kind: "chunk", atMs: world.nowMs, request, chunk });
        world.after(CLIENT_LINK_MS, () => record({ kind: "told", atMs: world.nowMs, request, chunk }));
      };
      const tokens = presented.map((token) => token.state);
      const calls = this.#around.calls?.of(process) ?? null;
      void perform({
        ...{ process, running, request, tokens, program, issued, sent, calls },
        around: this.#around,
      })
        .then(resolve)
        .finally(() => process.running.delete(running));
    });
    record({ kind: "end", atMs: world.nowMs, request, outcome, final });
    probes.count(`request: ${outcome.startsWith("fault") ? "fault" : outcome}`);
    await world.sleep(CLIENT_LINK_MS);
    if (outcome.endsWith("source_lost")) {
      probes.count("lost");
      this.#tokens = [];
      this.#old = [];
    }
    this.#last.delete(request);
    this.busy--;
    return outcome;
  }

  #received(presented: readonly HeldToken[], token: HeldToken): void {
    const before = this.#last.get(token.request);
    this.#last.set(token.request, token.issue);
    this.#old = [token, ...this.#old].slice(0, OLD_TOKENS);
    if (!this.#merges) {
      this.#tokens = [token];
      return;
    }
    const merged = new Set(presented.map((each) => each.issue));
    // An open one stands for what its answer goes on to tell: nobody has merged that before it has ended.
    const isOpen = (each: HeldToken) => each.state.open && this.#last.has(each.request);
    const left = this.#tokens.filter((each) =>
      each.issue !== before && (!merged.has(each.issue) || isOpen(each))
    );
    this.#tokens = [...left, token];
  }

  #program(draws: Draws): Program {
    const { plan } = this.#around;
    const count = draws.integer(1, plan.operationsMax);
    const operations = Array.from({ length: count }, () => this.#operation(draws));
    const thinkMs = operations.map(() => draws.chance(0.5) ? draws.between(0, plan.thinkMs) : 0);
    const openAfter = draws.chance(plan.openChance) ? draws.integer(0, count - 1) : -1;
    return { operations, thinkMs, openAfter, isParallel: draws.chance(plan.parallelChance) };
  }

  #operation(draws: Draws): Program["operations"][number] {
    const { plan, keyspace, counters } = this.#around;
    const weights: OperationWeights = { ...plan.weights, sum: plan.sumKeys > 0 ? plan.weights.sum : 0 };
    const kind = draws.weighted(weights);
    const any = () => draws.integer(0, keyspace.size - 1);
    const plain = () => this.#own(draws.integer(0, keyspace.plain - 1));
    const some = (pick: () => number) => [...new Set(Array.from({ length: draws.integer(2, 4) }, pick))];
    switch (kind) {
      case "get":
        return { kind: "get", keys: [any()] };
      case "getMany":
        return { kind: "get", keys: some(any) };
      case "list": {
        const group = draws.integer(0, keyspace.groups.length - 1);
        return { kind: "list", group, limit: draws.pick([0, 1, 2]), reverse: draws.chance(0.3) };
      }
      case "set":
      case "expiring":
      case "delete":
        return {
          kind: "write",
          writes: [{ write: counters.writes++, key: plain(), what: kind }],
          check: false,
        };
      case "checked":
        return {
          kind: "write",
          writes: [{ write: counters.writes++, key: plain(), what: "set" }],
          check: true,
        };
      case "atomic":
        return { kind: "write", writes: this.#atomic(some(any), draws), check: draws.chance(0.2) };
      case "sum": {
        const key = draws.integer(keyspace.plain, keyspace.size - 1);
        return { kind: "write", writes: [{ write: counters.writes++, key, what: "sum" }], check: false };
      }
    }
  }

  /** The key itself, or where sessions have keys of their own, the nearest one below that is this session's. */
  #own(key: number): number {
    const { plan, keyspace } = this.#around;
    if (!plan.ownKeys || keyspace.isSum(key)) return key;
    const mine = key - key % plan.sessions + this.#number;
    return mine < keyspace.plain ? mine : this.#number;
  }

  #atomic(drawn: readonly number[], draws: Draws): Written[] {
    const { keyspace, counters, plan } = this.#around;
    const keys = new Set(drawn.map((key) => this.#own(key)));
    return [...keys].map((key) => {
      const deletes = plan.weights.delete > 0 && draws.chance(0.2);
      const what = keyspace.isSum(key) ? "sum" : deletes ? "delete" : "set";
      return { write: counters.writes++, key, what };
    });
  }
}
