/**
 * One app that does all that an app and its clients can do to a site, beside another one that is measured: what a
 * neighbour notices, and whether it loses anything.
 *
 * Life: both apps deployed to two sites → pairs of a quiet time and one under attack, both measured at the lower site →
 * the attacks end → what the neighbour was answered is compared with what there is, at both sites.
 *
 * HS1  Requests are sent at their times, whether or not those before were answered, and are counted from these times: a
 *      site that stands still for a second is seen by each request of that second.
 * HS2  Who attacks is a process of its own, and each quiet time lies beside one under attack: what else this machine does
 *      is in both.
 * HS3  An answer is not lost when its request was answered with 201 and the sum has it; one more than was answered is only
 *      where a request had no answer.
 */
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { eventually, startCluster, type TestCluster } from "../e2e/cluster.ts";

/** What to run. */
export interface HostileOptions {
  /** Under attack, all times together. */
  readonly msAttacked: number;
  /** Of a pair. */
  readonly quietMs: number;
  readonly attackedMs: number;
  /** Requests a second. */
  readonly rate: number;
  /** One kind of attack; all of them where it is not given. */
  readonly only?: string | undefined;
  readonly say: (line: string) => void;
}

/** How long answers took. */
export interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** What came of it. */
export interface Attacked {
  readonly pairs: number;
  readonly quiet: Latencies;
  readonly attacked: Latencies;
  /** p99 under attack by p99 in quiet: of all, and the median of the pairs. */
  readonly ratio: number;
  readonly ratioOfPairs: number;
  /** How often each attack was made. */
  readonly made: Readonly<Record<string, number>>;
  /** Why isolates of the app that attacks ended, and how often: that its attacks are some. */
  readonly ends: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  readonly echoes: number;
  /** The most that the site's process held. */
  readonly siteMib: number;
  readonly findings: readonly string[];
  readonly ms: number;
}

const FOLDER = join(import.meta.dirname ?? "", "hostile");
const SITE = "edge";
const KEYS = 20;
/** What a neighbour may notice: below so many times its p99 in quiet. */
export const RATIO_MAX = 3;
/** The budget of an app's queues, and what a site has beside. */
const SITE_MIB_MAX = 1_024;
/** Isolates that were attacked end, connections close. */
const SETTLE_MS = 5_000;
const ANSWER_MS_MAX = 20_000;
const ECHO_MS = 250;

/** Runs pairs until there was attack enough. */
export async function soakHostile(options: HostileOptions): Promise<Attacked> {
  const begunMs = performance.now();
  const topology = await Deno.makeTempFile({ suffix: ".json" });
  await Deno.writeTextFile(
    topology,
    JSON.stringify({ sites: [{ id: "cloud" }, { id: SITE, parent: "cloud", link: { rttMs: 2 } }] }),
  );
  const attackers = new Attackers();
  try {
    await using cluster = await startCluster({
      topology,
      apps: [join(FOLDER, "steady"), join(FOLDER, "hostile")],
      reach: [`127.0.0.1:${await attackers.line()}`],
    });
    await attackers.say(cluster.url(SITE));
    return {
      ...await new HostileRun(cluster, attackers, options).run(),
      ms: Math.round(performance.now() - begunMs),
    };
  } finally {
    attackers.kill();
    await Deno.remove(topology);
  }
}

/** Those who attack. */
class Attackers {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", join(FOLDER, "clients.ts")],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    const input = Readable.fromWeb(this.#child.stdout as Parameters<typeof Readable.fromWeb>[0]);
    this.#lines = createInterface({ input })[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("who attacks has ended");
    return value;
  }

  async say(word: string): Promise<void> {
    await this.#input.write(new TextEncoder().encode(`${word}\n`));
  }

  /** How often each attack was made. */
  async end(): Promise<Record<string, number>> {
    await this.#input.close();
    const made = JSON.parse(await this.line()) as Record<string, number>;
    await this.#child.status;
    return made;
  }

  /** Where they have not ended. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // They have.
    }
  }
}

class HostileRun {
  readonly #cluster: TestCluster;
  readonly #attackers: Attackers;
  readonly #options: HostileOptions;
  readonly #findings: string[] = [];
  readonly #acknowledged = new Array<number>(KEYS).fill(0);
  /** Without an answer: they may have been done. */
  readonly #unknown = new Array<number>(KEYS).fill(0);
  #next = 0;
  #siteMib = 0;

  constructor(cluster: TestCluster, attackers: Attackers, options: HostileOptions) {
    this.#cluster = cluster;
    this.#attackers = attackers;
    this.#options = options;
  }

  async run(): Promise<Omit<Attacked, "ms">> {
    const { msAttacked, quietMs, attackedMs, only, say } = this.#options;
    const cluster = this.#cluster, attackers = this.#attackers, { pid } = await cluster.site(SITE);
    const echo = new Echo(cluster.url(SITE), this.#findings);
    const sampling = setInterval(() => this.#sample(pid), 500);
    const quiet: number[] = [], attacked: number[] = [], ratios: number[] = [];
    let made: Record<string, number>;
    try {
      await this.#measure(quietMs / 4); // isolates open, connections stand
      for (let doneMs = 0; doneMs < msAttacked; doneMs += attackedMs) {
        const before = await this.#measure(quietMs);
        await attackers.say(only === undefined ? "on" : `on ${only}`);
        const during = await this.#measure(Math.min(attackedMs, msAttacked - doneMs));
        await attackers.say("off");
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        quiet.push(...before);
        attacked.push(...during);
        ratios.push(latencies(during).p99 / latencies(before).p99);
        say(`pair ${ratios.length}: quiet ${shown(before)}; attacked ${shown(during)}; ${this.#siteMib} MiB`);
      }
      made = await attackers.end();
    } finally {
      clearInterval(sampling);
    }
    const echoes = await echo.end();
    const ends = await this.#judge(pid);
    const all = { quiet: latencies(quiet), attacked: latencies(attacked) };
    const ratio = all.attacked.p99 / all.quiet.p99;
    if (this.#siteMib > SITE_MIB_MAX) this.#findings.push(`the site held ${this.#siteMib} MiB`);
    return {
      ...{ pairs: ratios.length, ...all, ratio, ratioOfPairs: median(ratios), made, ends, echoes },
      acknowledged: this.#acknowledged.reduce((sum, count) => sum + count, 0),
      siteMib: this.#siteMib,
      findings: this.#findings,
    };
  }

  /** Milliseconds of each answer (HS1). */
  async #measure(ms: number): Promise<number[]> {
    const { rate } = this.#options;
    const beginMs = performance.now(), count = Math.round(ms * rate / 1_000);
    const asked: Promise<number | null>[] = [];
    for (let i = 0; i < count; i++) {
      const atMs = beginMs + i * 1_000 / rate;
      const waitMs = atMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      asked.push(this.#ask(this.#next++, atMs));
    }
    return (await Promise.all(asked)).filter((each) => each !== null);
  }

  async #ask(number: number, atMs: number): Promise<number | null> {
    const key = number % KEYS, isWrite = Math.floor(number / KEYS) % 2 === 0;
    if (isWrite) this.#unknown[key] = (this.#unknown[key] ?? 0) + 1;
    try {
      const answer = await fetch(`${this.#cluster.url(SITE)}/steady/${key}`, {
        method: isWrite ? "POST" : "GET",
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const text = await answer.text();
      if (!answer.ok) {
        this.#find(`${isWrite ? "POST" : "GET"} was answered with ${answer.status}: ${text.slice(0, 200)}`);
      } else if (isWrite) {
        this.#acknowledged[key] = (this.#acknowledged[key] ?? 0) + 1;
        this.#unknown[key] = (this.#unknown[key] ?? 0) - 1;
      }
      return performance.now() - atMs;
    } catch (error) {
      this.#find(`${isWrite ? "POST" : "GET"} had no answer: ${error}`);
      return performance.now() - atMs;
    }
  }

  #find(finding: string): void {
    if (this.#findings.length < 100) this.#findings.push(finding); // the rest follows from the first
  }

  #sample(pid: number): void {
    try {
      const status = Deno.readTextFileSync(`/proc/${pid}/status`);
      const mib = Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024);
      this.#siteMib = Math.max(this.#siteMib, mib);
    } catch {
      // It has ended: the judge says so.
    }
  }

  /** HS3, and that the site is the one that it was; answers why isolates ended. */
  async #judge(pid: number): Promise<Record<string, number>> {
    const now = await this.#cluster.site(SITE);
    if (now.pid !== pid) this.#find(`${SITE} has ended: its process was ${pid} and is ${now.pid}`);
    const metrics = await (await fetch(`${this.#cluster.url(SITE)}/_sojourn/metrics`, {
      headers: { authorization: `Bearer ${this.#cluster.adminToken}` },
    })).text();
    for (const [line] of metrics.matchAll(/^sojourn_site_faults_total.* [1-9].*$/gm)) {
      this.#find(`the site has faults: ${line}`);
    }
    for (const site of [SITE, "cloud"]) {
      for (let key = 0; key < KEYS; key++) await this.#audit(site, key);
    }
    const ends = metrics.matchAll(
      /^sojourn_isolate_ends_total\{.*?app="hostile".*?reason="(\w+)".*?\} (\d+)$/gm,
    );
    return Object.fromEntries(Array.from(ends, ([, reason, count]) => [reason, Number(count)]));
  }

  async #audit(site: string, key: number): Promise<void> {
    const least = this.#acknowledged[key] ?? 0, most = least + (this.#unknown[key] ?? 0);
    let sum = NaN;
    const read = async () => {
      const answer = await fetch(`${this.#cluster.url(site)}/steady/${key}`);
      sum = Number(await answer.text());
      return sum >= least && sum <= most;
    };
    await eventually(`the sum ${key} at ${site} has what was acknowledged`, read).catch(() => {
      this.#find(`the sum ${key} at ${site} is ${sum}; ${least} were acknowledged, ${most} asked for`);
    });
  }
}

/** A WebSocket of the steady app, which says a number four times a second and hears it again. */
class Echo {
  readonly #socket: WebSocket;
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #gone: Promise<void>;
  #said = 0;
  #heard = 0;
  #isOver = false;

  constructor(url: string, findings: string[]) {
    const socket = this.#socket = new WebSocket(`${url.replace("http", "ws")}/steady/socket`);
    const gone = Promise.withResolvers<void>();
    this.#gone = gone.promise;
    socket.onmessage = ({ data }) => {
      if (data !== `${this.#heard++}`) findings.push(`the socket heard ${data}, not ${this.#heard - 1}`);
    };
    socket.onclose = ({ code, reason }) => {
      if (!this.#isOver) findings.push(`the socket was closed with ${code} ${reason}, after ${this.#heard}`);
      gone.resolve();
    };
    this.#timer = setInterval(() => {
      if (socket.readyState === WebSocket.OPEN) socket.send(`${this.#said++}`);
    }, ECHO_MS);
  }

  /** How much came back: all of it. */
  async end(): Promise<number> {
    clearInterval(this.#timer);
    await eventually("the socket heard all", () => Promise.resolve(this.#heard === this.#said));
    this.#isOver = true;
    this.#socket.close();
    await this.#gone;
    return this.#heard;
  }
}

function latencies(all: readonly number[]): Latencies {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: Math.round(sorted.at(-1) ?? 0) };
}

const shown = (all: readonly number[]): string => {
  const { p50, p99, max } = latencies(all);
  return `${p50} ms p50, ${p99} p99, ${max} at most`;
};

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? NaN;
}
