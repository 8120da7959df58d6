/**
 * One app that does all that an app and its clients can do to a site, beside another one that is measured: what a
 * neighbour notices, and whether it loses anything.
 *
 * Life: both apps deployed to two sites → pairs of a quiet time and one under attack, both measured at the lower site; or
 * each attack by itself → the attacks end → what the neighbour was answered is compared with what there is, at both
 * sites.
 *
 * HS1  Requests are sent at their times, whether or not those before were answered, and are counted from these times: a
 *      site that stands still for a second is seen by each request of that second.
 * HS2  Who attacks is another machine's process: here it has what the site, and who measures, leave of the cores (a
 *      niceness of 19, as a session of its own). The isolates of the app that attacks are the site's. Each quiet time lies
 *      beside one under attack: what else this machine does is in both.
 * HS3  An answer is not lost when its request was answered with 201 and the sum has it; one more than was answered is only
 *      where a request had no answer.
 * HS4  How long the site's thread does one thing, and how much it has to do, is measured in time of the processor, which
 *      hardly hangs on what else the machine does (stretch_probe.ts). So is each answer: what that thread did, for
 *      whomever, between its request and it. That is all that other apps can have to do with it where there are cores
 *      enough, and where there are not it is too much rather than too little: more is done while one waits for them.
 */
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { eventually, startCluster, type TestCluster } from "../e2e/cluster.ts";
import { type Stretches, stretchesOf } from "./hostile/stretch_probe.ts";

/** What to run. */
export interface HostileOptions {
  /** Under attack, all times together. */
  readonly msAttacked: number;
  /** Of a pair. */
  readonly quietMs: number;
  readonly attackedMs: number;
  /** Requests a second. */
  readonly rate: number;
  /** One kind of attack; all of them together where it is not given. */
  readonly only?: string | undefined;
  readonly say: (line: string) => void;
}

/** How long answers took. */
export interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** The same in time that the site's thread had a processor (HS4). */
  readonly site: { readonly p50: number; readonly p99: number };
}

/** One answer. */
interface Answered {
  readonly ms: number;
  readonly siteMs: number;
}

/** A time that was measured. */
export interface Measured {
  readonly answers: Latencies;
  readonly stretches: Stretches;
}

/** What came of one kind of attack, or of none. */
export interface Kind extends Measured {
  readonly attack: string;
  readonly made: number;
  /** The most that the site's process held meanwhile. */
  readonly siteMib: number;
}

/** What came of all kinds, one after the other. */
export interface KindsAttacked {
  readonly kinds: readonly Kind[];
  readonly findings: readonly string[];
  readonly ms: number;
}

/** What came of it. */
export interface Attacked {
  readonly pairs: number;
  readonly quiet: Latencies;
  readonly attacked: Latencies;
  /** Of the last pair. */
  readonly stretches: { readonly quiet: Stretches; readonly attacked: Stretches };
  /** p99 under attack by p99 in quiet: of all, the median of the pairs, and of all in time of the site's thread (HS4). */
  readonly ratio: number;
  readonly ratioOfPairs: number;
  readonly ratioOfSite: number;
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
  const came = await withAttackers(options, (run) => run.pairs());
  return { ...came, ms: Math.round(performance.now() - begunMs) };
}

/** Runs each kind of attack by itself, for so long. */
export async function soakKinds(options: HostileOptions, eachMs: number): Promise<KindsAttacked> {
  const begunMs = performance.now();
  const came = await withAttackers(options, (run) => run.kinds(eachMs));
  return { ...came, ms: Math.round(performance.now() - begunMs) };
}

async function withAttackers<T>(options: HostileOptions, work: (run: HostileRun) => Promise<T>): Promise<T> {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-hostile-" });
  const topology = join(folder, "topology.json"), stretches = join(folder, "stretches.jsonl");
  await Deno.writeTextFile(
    topology,
    JSON.stringify({ sites: [{ id: "cloud" }, { id: SITE, parent: "cloud", link: { rttMs: 2 } }] }),
  );
  const attackers = new Attackers();
  try {
    const { port, attacks } = JSON.parse(await attackers.line()) as { port: number; attacks: string[] };
    await using cluster = await startCluster({
      topology,
      apps: [join(FOLDER, "steady"), join(FOLDER, "hostile")],
      reach: [`127.0.0.1:${port}`],
      main: join(FOLDER, "probed_main.ts"),
      env: { STRETCHES_OF_SITE: `${stretches} at ${SITE}` },
    });
    await attackers.say(cluster.url(SITE));
    const { pid } = await cluster.site(SITE);
    return await work(new HostileRun(cluster, attackers, { ...options, attacks, stretches, pid }));
  } finally {
    attackers.kill();
    await Deno.remove(folder, { recursive: true });
  }
}

/** HS2: makes the command that follows give way, and the session that it is in. */
const GIVE_WAY = ["-c", 'echo 19 2>/dev/null >/proc/self/autogroup; exec nice -n 19 "$@"', "sh"];

/** Those who attack. */
class Attackers {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncIterator<string>;

  constructor() {
    const clients = [Deno.execPath(), "run", "-A", "--no-check", join(FOLDER, "clients.ts")];
    this.#child = new Deno.Command("/bin/sh", {
      args: [...GIVE_WAY, ...clients],
      detached: true,
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

interface RunOptions extends HostileOptions {
  /** By name. */
  readonly attacks: readonly string[];
  /** Where the site tells its own. */
  readonly stretches: string;
  /** Of the site. */
  readonly pid: number;
}

class HostileRun {
  readonly #cluster: TestCluster;
  readonly #attackers: Attackers;
  readonly #options: RunOptions;
  readonly #findings: string[] = [];
  readonly #acknowledged = new Array<number>(KEYS).fill(0);
  /** Without an answer: they may have been done. */
  readonly #unknown = new Array<number>(KEYS).fill(0);
  #next = 0;
  #siteMib = 0;

  constructor(cluster: TestCluster, attackers: Attackers, options: RunOptions) {
    this.#cluster = cluster;
    this.#attackers = attackers;
    this.#options = options;
  }

  async pairs(): Promise<Omit<Attacked, "ms">> {
    const { msAttacked, quietMs, attackedMs, only, say } = this.#options;
    const cluster = this.#cluster, attackers = this.#attackers;
    const echo = new Echo(cluster.url(SITE), this.#findings);
    const sampling = setInterval(() => this.#sample(), 500);
    const quiet: Answered[] = [], attacked: Answered[] = [], ratios: number[] = [];
    let made: Record<string, number>, stretches = { quiet: NO_STRETCHES, attacked: NO_STRETCHES };
    try {
      await this.#measure(quietMs / 4); // isolates open, connections stand
      for (let doneMs = 0; doneMs < msAttacked; doneMs += attackedMs) {
        const beganMs = Date.now();
        const before = await this.#measure(quietMs);
        const onMs = Date.now();
        await attackers.say(only === undefined ? "on" : `on ${only}`);
        const during = await this.#measure(Math.min(attackedMs, msAttacked - doneMs));
        await attackers.say("off");
        const offMs = Date.now();
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        stretches = { quiet: this.#stretches(beganMs, onMs), attacked: this.#stretches(onMs, offMs) };
        quiet.push(...before);
        attacked.push(...during);
        ratios.push(latencies(during).p99 / latencies(before).p99);
        say(
          `pair ${ratios.length}: quiet ${shown(latencies(before))}; attacked ${
            shown(latencies(during))
          }; ${this.#siteMib} MiB`,
        );
      }
      made = await attackers.end();
    } finally {
      clearInterval(sampling);
    }
    const echoes = await echo.end();
    const ends = await this.#judge();
    const all = { quiet: latencies(quiet), attacked: latencies(attacked) };
    const ratio = all.attacked.p99 / all.quiet.p99, ratioOfSite = all.attacked.site.p99 / all.quiet.site.p99;
    if (this.#siteMib > SITE_MIB_MAX) this.#findings.push(`the site held ${this.#siteMib} MiB`);
    return {
      ...{ pairs: ratios.length, ...all, ratio, ratioOfPairs: median(ratios), ratioOfSite },
      ...{ made, ends, echoes, stretches },
      acknowledged: this.#acknowledged.reduce((sum, count) => sum + count, 0),
      siteMib: this.#siteMib,
      findings: this.#findings,
    };
  }

  /** Each attack by itself, for so long; none comes first. */
  async kinds(eachMs: number): Promise<Omit<KindsAttacked, "ms">> {
    const { attacks, only, say } = this.#options;
    const kinds: Kind[] = [];
    const asked = only === undefined ? ["", ...attacks] : ["", ...attacks.filter((each) => each === only)];
    await this.#measure(eachMs / 4);
    const sampling = setInterval(() => this.#sample(), 100);
    for (const attack of asked) {
      this.#siteMib = 0;
      const beganMs = Date.now();
      if (attack !== "") await this.#attackers.say(`on ${attack}`);
      const answers = latencies(await this.#measure(eachMs));
      if (attack !== "") await this.#attackers.say("off");
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS)); // its end is part of it
      const siteMib = this.#siteMib, stretches = this.#stretches(beganMs, Date.now());
      const kind = { attack, made: 0, siteMib, answers, stretches };
      kinds.push(kind);
      say(shownKind(kind));
    }
    clearInterval(sampling);
    const made = await this.#attackers.end();
    return {
      kinds: kinds.map((kind) => ({ ...kind, made: made[kind.attack] ?? 0 })),
      findings: this.#findings,
    };
  }

  #stretches(fromMs: number, untilMs: number): Stretches {
    return stretchesOf(this.#options.stretches, fromMs, untilMs);
  }

  /** What each answer took (HS1). */
  async #measure(ms: number): Promise<Answered[]> {
    const { rate } = this.#options;
    const beginMs = performance.now(), count = Math.round(ms * rate / 1_000);
    const asked: Promise<Answered>[] = [];
    for (let i = 0; i < count; i++) {
      const atMs = beginMs + i * 1_000 / rate;
      const waitMs = atMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      asked.push(this.#ask(this.#next++, atMs));
    }
    return await Promise.all(asked);
  }

  async #ask(number: number, atMs: number): Promise<Answered> {
    const beganMs = this.#siteMs(), key = number % KEYS, isWrite = Math.floor(number / KEYS) % 2 === 0;
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
    } catch (error) {
      this.#find(`${isWrite ? "POST" : "GET"} had no answer: ${error}`);
    }
    return { ms: performance.now() - atMs, siteMs: this.#siteMs() - beganMs };
  }

  /** For how long the site's thread has had a processor. */
  #siteMs(): number {
    const { pid } = this.#options;
    try {
      const stat = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/schedstat`);
      return Number(stat.split(" ")[0]) / 1e6;
    } catch {
      return NaN; // it has ended: the judge says so
    }
  }

  #find(finding: string): void {
    if (this.#findings.length < 100) this.#findings.push(finding); // the rest follows from the first
  }

  #sample(): void {
    const { pid } = this.#options;
    try {
      const status = Deno.readTextFileSync(`/proc/${pid}/status`);
      const mib = Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1_024);
      this.#siteMib = Math.max(this.#siteMib, mib);
    } catch {
      // It has ended: the judge says so.
    }
  }

  /** HS3, and that the site is the one that it was; answers why isolates ended. */
  async #judge(): Promise<Record<string, number>> {
    const { pid } = this.#options, now = await this.#cluster.site(SITE);
    if (now.pid !== pid) this.#find(`${SITE} has ended: its process was ${pid} and is ${now.pid}`);
    const metrics = await (await fetch(`${this.#cluster.url(SITE)}/_sojourn/metrics`, {
      headers: { authorization: `Bearer ${this.#cluster.adminToken}` },
    })).text();
    for (const [line] of metrics.matchAll(/^sojourn_site_faults_total.* [1-9].*$/gm)) {
      this.#find(`the site has faults: ${line}`);
    }
    for (const site of [SITE, "cloud"]) {
      await Promise.all(Array.from({ length: KEYS }, (_, key) => this.#audit(site, key)));
    }
    const ends = metrics.matchAll(
      /^sojourn_isolate_ends_total\{.*?app="hostile".*?reason="(\w+)".*?\} (\d+)$/gm,
    );
    return Object.fromEntries(Array.from(ends, ([, reason, count]) => [reason, Number(count)]));
  }

  async #audit(site: string, key: number): Promise<void> {
    const least = this.#acknowledged[key] ?? 0, most = least + (this.#unknown[key] ?? 0);
    let said = "";
    const read = async () => {
      const answer = await fetch(`${this.#cluster.url(site)}/steady/${key}`);
      said = await answer.text();
      return Number(said) >= least && Number(said) <= most;
    };
    await eventually(`the sum ${key} at ${site} has what was acknowledged`, read).catch(() => {
      this.#find(`the sum ${key} at ${site} is ${said}; ${least} were acknowledged, ${most} asked for`);
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

function latencies(all: readonly Answered[]): Latencies {
  const { max, ...latencies } = distribution(all.map(({ ms }) => ms));
  const { p50, p99 } = distribution(all.map(({ siteMs }) => siteMs));
  return { count: all.length, ...latencies, max: Math.round(max), site: { p50, p99 } };
}

function distribution(all: readonly number[]): { p50: number; p99: number; max: number } {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

const NO_STRETCHES: Stretches = { cpuMsPerSecond: 0, longestMs: 0, percentIn10Ms: 0 };

const shownKind = ({ attack, answers, stretches, siteMib }: Kind): string =>
  `${attack === "" ? "quiet" : attack}: ${shown(answers)}; ${shownStretches(stretches)}; ${siteMib} MiB`;

/** For people. */
export const shownStretches = ({ cpuMsPerSecond, longestMs, percentIn10Ms }: Stretches): string =>
  `${cpuMsPerSecond} ms of a second, ${longestMs} at one go at most, ${percentIn10Ms} % in more than 10`;

/** For people. */
export const shown = ({ p50, p99, max, site }: Latencies): string =>
  `${p50} ms p50, ${p99} p99, ${max} at most; ${site.p50} p50, ${site.p99} p99 of the site's thread`;

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? NaN;
}
