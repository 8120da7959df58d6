/** Broken variants that no wrapper from outside can make: each is production code of which one place reads otherwise. */
import type { Rewriting } from "./rewritten.ts";

/** A variant. */
export interface InsideVariant extends Rewriting {
  readonly name: string;
  /** Of hard.ts, or "drawn". */
  readonly plan: string;
  /** The first seed that is tried: those before it need longer, and show nothing. */
  readonly first: number;
  /** How many it may take. */
  readonly seeds: number;
  /** Who has to see it; left out: anybody. */
  readonly caughtBy?: string;
}

export const INSIDE_VARIANTS: readonly InsideVariant[] = [
  {
    name: "answers leave before what their handler wrote is applied",
    file: "functions/sessions/serve/releases.ts",
    says: `    const token = await this.#applyAll(commit.effects, false);
    if (this.#run.isOver) return;
    if ((this.#unapplied[0]?.effect ?? Infinity) <= (commit.effects.at(-1)?.effect ?? 0)) {
      throw new Error("what a commit wrote is not applied, and it was to leave (RL2)");
    }
`,
    becomes: `    const token = this.#look();
    this.#applyAll(commit.effects, false).catch((error) => this.#run.failed(error));
`,
    ...{ plan: "tokens", first: 0, seeds: 6 },
  },
  {
    name: "a token has the clock of the rows that were read, not that at which they were applied",
    file: "store/session/session.ts",
    says:
      "    this.#clock = Math.max(this.#clock, row.position <= rows.committedHead ? headClock : clock.last);\n",
    becomes: `    const own = (row as { readonly clock?: number }).clock ?? this.#clock;
    this.#clock = Math.max(this.#clock, own + 0 * (rows.committedHead + headClock + clock.last));\n`,
    ...{ plan: "tokens", first: 5, seeds: 12 },
  },
  {
    name: "a session's reads are made before what it wrote is applied",
    file: "functions/sessions/serve/session_run.ts",
    says: "    if (!this.releases.areWriting || !ofStore.has(call.kind)) return this.calls.make(call);\n",
    becomes: "    if (this.#over === null) return this.calls.make(call);\n",
    ...{ plan: "tokens", first: 0, seeds: 6 },
  },
  {
    name: "what a message writes is dated from when it came, whatever was read since",
    file: "functions/sessions/turn/live_source.ts",
    says: " && this.#storeClock >= this.#seen",
    becomes: "",
    ...{ plan: "queued", first: 10, seeds: 12 },
  },
  {
    name: "a stateful session's token leaves before what it names is on disk",
    file: "functions/sessions/serve/own_store.ts",
    says: "    return this.#session.durable();",
    becomes: "    return Promise.resolve();",
    ...{ plan: "unread", first: 0, seeds: 12 },
  },
  {
    name: "a session's log leaves out what it rests on",
    file: "functions/sessions/serve/releases.ts",
    says: "    const head = { seen: this.#unwritten(), ...left };\n",
    becomes: "    const head = { seen: this.#unwritten() === null ? null : null, ...left };\n",
    ...{ plan: "taken", first: 10, seeds: 6, caughtBy: "site closure" },
  },
  {
    name: "what a handler wrote at the home before is not let out when it ends at the next",
    file: "functions/sessions/serve/run_versions.ts",
    says: "    if (replica !== this.#of.replica && !this.#ofLog.replicas.has(replica)) {\n",
    becomes: "    if (replica !== this.#of.replica) {\n",
    ...{ plan: "unapplied", first: 0, seeds: 6 },
  },
  {
    name: "an owner is on record before it has what was released in epochs before",
    file: "functions/sessions/home/live_home.ts",
    says: "    return Math.max(this.held, this.#floor);\n",
    becomes: "    return this.held + 0 * this.#floor;\n",
    ...{ plan: "recorded", first: 310, seeds: 6 },
  },
  {
    name: "what a handler sends to queues is stored before its commit is held",
    file: "functions/sessions/serve/releases.ts",
    says: "    this.#comes(effects);\n",
    becomes: "    this.#comes(effects);\n    void this.#sends.store(effects);\n",
    ...{ plan: "mailing", first: 0, seeds: 6, caughtBy: "WC10" },
  },
  {
    name: "what a log leaves to be sent to queues is not sent where it is opened",
    file: "functions/sessions/serve/releases.ts",
    says: "    await this.#sends.store(effects);\n",
    becomes: "    if (!isAgain) await this.#sends.store(effects);\n",
    ...{ plan: "mailing", first: 0, seeds: 6, caughtBy: "WC8" },
  },
  {
    name: "what was sent to queues counts as stored before it is",
    file: "functions/sessions/serve/releases.ts",
    says: "    await this.#sends.store(effects);\n",
    becomes: "    void this.#sends.store(effects);\n",
    ...{ plan: "mailing", first: 0, seeds: 6, caughtBy: "WC8" },
  },
  {
    name: "what a log leaves to be written is not written where it is opened",
    file: "functions/sessions/serve/releases.ts",
    says: "    await this.#applyAll(opened.effects, true);\n",
    becomes: "    await Promise.resolve();\n",
    ...{ plan: "unapplied", first: 0, seeds: 6, caughtBy: "durability" },
  },
  {
    name: "a root that takes the time from no child, where nothing at its own machine says it",
    file: "store/tree/timekeeper.ts",
    says: "    if (time === null || forMs < CLOCK_DOUBT_MS) return;\n",
    becomes: "    if (time === null || forMs >= 0) return;\n",
    ...{ plan: "overslept", first: 15, seeds: 1, caughtBy: "liveness" },
  },
  {
    name: "a session that has ended is gone before what it wrote last is applied",
    file: "functions/sessions/serve/session_run.ts",
    says: "      await this.releases.release(commit, entry, handler);\n",
    becomes: `      if (commit.isEnded) await this.home.end().catch(() => {});
      await this.releases.release(commit, entry, handler);\n`,
    ...{ plan: "ending", first: 0, seeds: 40 },
  },
  {
    name: "a home of before makes a sum after its site was asked whether it had",
    file: "functions/sessions/serve/own_store.ts",
    says: "this.#session.seeWhole(token, this.#stop)",
    becomes: "this.#session.seeWhole(token, () => Promise.resolve(void this.#stop))",
    also: { says: "    this.#session.close();\n", becomes: "" },
    ...{ plan: "severed", first: 5, seeds: 10, caughtBy: "WC6" },
  },
  {
    name: "a home makes again what only a mark tells to be made, before its own piece is at owners",
    file: "functions/sessions/serve/session_run.ts",
    says: "    await this.releases.known(named);\n",
    becomes: "    await this.releases.known(named === null ? named : null);\n",
    ...{ plan: "chained", first: 60, seeds: 20, caughtBy: "integrity" },
  },
  {
    name: "a home's piece is at owners before it is known what homes before have made",
    file: "functions/sessions/serve/releases.ts",
    says: "    return this.#knowing === null ? head() : this.#knowing.then(head);\n",
    becomes: "    return head();\n",
    ...{ plan: "chained", first: 440, seeds: 20, caughtBy: "integrity" },
  },
];
