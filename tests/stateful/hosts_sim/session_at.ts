/** One site's door to the session: channels that wait for it to be open here, and what an opening asks them. */
import { HomeError, type Homes, type StatefulName } from "../../../functions/homes/mod.ts";
import type { HostAnswer, HostsPort } from "../../../functions/homes/hosts_asked.ts";
import { type HostEnd as LogEnd, openHostLog } from "../../../functions/sealed_log/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";
import type { HomeEnd, ToHome } from "./frames.ts";
import { HomeRun, type HomeWrongs } from "./home_run.ts";
import type { Entry } from "./program.ts";

export interface DoorWrongs extends HomeWrongs {
  /** Hosts are not asked: they count as if they held nothing. */
  readonly asksNobody?: boolean;
  /** One that answers is enough. */
  readonly asksOne?: boolean;
  /** Of what a host holds the last record is left out. */
  readonly takesLess?: boolean;
}

export interface DoorPorts {
  readonly site: string;
  readonly name: StatefulName;
  readonly world: World;
  readonly draws: Draws;
  readonly secret: Uint8Array;
  readonly wrongs: DoorWrongs;
  readonly checkpointEvery: number;
  homes(): Homes | null;
  /** An operator has had enough of waiting (HO8). */
  isForced(): boolean;
  /** Whether a client may give back what is not its log. */
  lies(host: string): boolean;
  made(before: string, digest: string, entry: Entry): void;
  complain(message: string): void;
  probe(what: string): void;
}

type Hello = ToHome & { readonly kind: "hello" };
interface Waiting {
  readonly end: HomeEnd;
  readonly hello: Hello;
  answered: ((frame: ToHome & { readonly kind: "log" }) => void) | null;
}

const AGAIN_MS = 120;
/** So long an opening waits for hosts; then it is tried again. */
const ASKED_MS = 1_000;

export class Door {
  readonly #ports: DoorPorts;
  /** By host: those that are not greeted yet. */
  readonly #lobby = new Map<string, Waiting>();
  #run: HomeRun | null = null;
  #isOpening = false;
  /** Counts processes of the site: what was begun in an earlier one is nothing. */
  #life = 0;
  #ends = new Map<string, LogEnd>();
  /** They will not come back: each opening counts them as asked. */
  readonly #refused = new Set<string>();
  #wanted: ((run: HomeRun) => void)[] = [];
  #fence: ((host: string) => void) | null = null;

  constructor(ports: DoorPorts) {
    this.#ports = ports;
  }

  get run(): HomeRun | null {
    return this.#run;
  }

  /** The site's process has died. */
  crash(): void {
    this.#life++;
    this.#run?.close();
    this.#run = null;
    this.#isOpening = false;
    for (const { end } of this.#lobby.values()) end.close();
    this.#lobby.clear();
    this.#wanted = [];
    this.#fence = null;
  }

  accept(end: HomeEnd): void {
    const life = this.#life;
    end.onFrame = (frame) => {
      if (life !== this.#life) return;
      if (frame.kind === "hello") this.#hello(end, frame);
      else if (frame.kind === "log") {
        const waiting = [...this.#lobby.values()].find((one) => one.end === end);
        waiting?.answered?.(frame);
      }
    };
    end.onBroken = () => {
      for (const [host, waiting] of this.#lobby) if (waiting.end === end) this.#lobby.delete(host);
    };
  }

  async request(request: string): Promise<string> {
    if (this.#run !== null) return await this.#run.request(request);
    const { promise, resolve } = Promise.withResolvers<HomeRun>();
    this.#wanted.push(resolve);
    this.#open();
    return await (await promise).request(request);
  }

  #hello(end: HomeEnd, hello: Hello): void {
    if (this.#run !== null) return this.#run.greet(end, hello);
    this.#lobby.set(hello.host, { end, hello, answered: null });
    this.#fence?.(hello.host);
    this.#open();
  }

  #open(): void {
    const homes = this.#ports.homes();
    if (this.#isOpening || this.#run !== null || homes === null) return;
    this.#isOpening = true;
    void this.#opened(homes, this.#life);
  }

  async #opened(homes: Homes, life: number): Promise<void> {
    const { name, world, probe } = this.#ports;
    this.#ends = new Map();
    const isLive = () => life === this.#life;
    try {
      const opened = await homes.open(name, "v1", this.#ports.isForced());
      if (!isLive()) return;
      this.#isOpening = false;
      const run: HomeRun = new HomeRun(opened, this.#ends, {
        ...this.#ports,
        isAlive: (): boolean => isLive() && this.#run === run,
        over: (error) => this.#over(run, error),
      });
      this.#run = run;
      if (this.#ports.isForced()) probe("opened by force");
      probe(`opened in ${opened.epoch > 1 ? "a later" : "the first"} epoch`);
      for (const { end, hello } of this.#lobby.values()) run.greet(end, hello);
      this.#lobby.clear();
      for (const wanted of this.#wanted.splice(0)) wanted(run);
    } catch (error) {
      if (!isLive()) return;
      this.#isOpening = false;
      if (!(error instanceof HomeError)) return this.#ports.complain(`${(error as Error).stack}`);
      probe(`not opened: ${error.code}`);
      if (error.code === "elsewhere" && error.site !== null) {
        for (const { end } of this.#lobby.values()) end.send({ kind: "elsewhere", site: error.site });
        this.#lobby.clear();
        this.#wanted = [];
      }
      world.after(this.#ports.draws.between(AGAIN_MS / 2, AGAIN_MS), () => {
        if (isLive() && (this.#lobby.size > 0 || this.#wanted.length > 0)) this.#open();
      });
    }
  }

  #over(run: HomeRun, _error: HomeError): void {
    if (this.#run !== run) return;
    this.#ports.probe("superseded");
    this.#run = null;
    run.close();
  }

  /** How openings reach hosts: those in the lobby, and who comes while time is left. */
  readonly hosts: HostsPort = {
    ask: (_name, epoch, hosts) => {
      const { wrongs, world } = this.#ports;
      if (wrongs.asksNobody === true) return Promise.resolve(new Map(hosts.map((host) => [host, null])));
      const answers = new Map<string, HostAnswer>(
        hosts.filter((host) => this.#refused.has(host)).map((host) => [host, null]),
      );
      const { promise, resolve } = Promise.withResolvers<ReadonlyMap<string, HostAnswer> | "superseded">();
      const done = () => {
        if (wrongs.asksOne === true) {
          for (const host of hosts) if (!answers.has(host)) answers.set(host, null);
        }
        resolve(answers);
      };
      this.#fence = (host) => {
        const waiting = this.#lobby.get(host);
        if (waiting === undefined || !hosts.includes(host) || answers.has(host)) return;
        waiting.answered = (frame) => {
          if (frame.epoch !== epoch) return;
          if (frame.records === null) return resolve("superseded");
          answers.set(host, this.#take(host, waiting.end, frame.records));
          if (hosts.every((one) => answers.has(one)) || wrongs.asksOne === true) done();
        };
        waiting.end.send({ kind: "fence", epoch });
      };
      for (const host of this.#lobby.keys()) this.#fence(host);
      if (hosts.every((one) => answers.has(one))) done();
      const homes = this.#ports.homes();
      world.after(ASKED_MS, () => homes === this.#ports.homes() && resolve(answers));
      return promise;
    },
  };

  /** What is no log of its is no answer, and it is no host any more: in these runs it has shown who it is. */
  #take(host: string, end: HomeEnd, records: readonly Uint8Array[]): HostAnswer {
    const { secret, name, wrongs, probe } = this.#ports;
    if (records.length === 0) {
      probe("host with nothing");
      return null;
    }
    const given = wrongs.takesLess === true && records.length > 1 ? records.slice(0, -1) : records;
    const opened = openHostLog([secret], { name, receiver: host }, given);
    if (!opened.ok) {
      if (!this.#ports.lies(host)) this.#ports.complain(opened.message);
      probe("host refused");
      this.#lobby.delete(host);
      this.#refused.add(host);
      end.send({ kind: "refused" });
      return null;
    }
    const { log, ...found } = opened.copy;
    this.#ends.set(host, { ...found, baseAt: log.base?.at ?? 0 });
    probe("host asked");
    return log;
  }
}
