/**
 * One site with queues, in virtual time: a disk, and one process after another over it, each with a detector, the
 * production code of tuples and queues, and consumers that do what is drawn for each message.
 */
import { Detector } from "../../../store/presence/detector.ts";
import type { OwnersSettings } from "../../../store/presence/choose.ts";
import { Tuples, type TuplesUser } from "../../../store/owners/tuples.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { decodeMessage, encodeMessage } from "../../../store/wire/message.ts";
import type { MessageTuples, NewMessage, QueueStatus } from "../../../functions/queues/broker.ts";
import type { DeliveryOutcome, MessageDelivery } from "../../../functions/queues/hand.ts";
import type { QueueSettings } from "../../../functions/queues/settings.ts";
import { MessageQueues } from "../../../functions/queues/message_queues.ts";
import { decodeQueuePacket, encodeQueuePacket, type QueueWord } from "../../../functions/queues/words.ts";
import { fellowsOf } from "../../owners/sim/fellows.ts";
import { SimDisk } from "../../sim/disk.ts";
import type { Endpoint, SimNetwork } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import { ProcessClock, type World } from "../../sim/world.ts";

/** What happens at a site, for the history. */
export type QueueEvent =
  | { readonly kind: "up" | "wiped" | "closed"; readonly site: SiteId }
  /** Messages that a consumer here has at this moment are in its hands still. */
  | { readonly kind: "down"; readonly site: SiteId }
  | { readonly kind: "suspects" | "trusts"; readonly site: SiteId; readonly other: SiteId }
  | {
    readonly kind: "begun";
    readonly site: SiteId;
    readonly queue: string;
    readonly message: string;
    /** Of this delivery. */
    readonly number: number;
    readonly attempt: number;
    /** Messages that this consumer was given with it, and consumers that have some here then. */
    readonly batch: number;
    readonly running: number;
  }
  /** The consumer has said so; by then its owner may not know. */
  | {
    readonly kind: "said";
    readonly site: SiteId;
    readonly message: string;
    readonly number: number;
    readonly outcome: DeliveryOutcome["kind"];
    readonly ms: number | null;
  }
  /** What the owner made of it; only of what was pulled. */
  | { readonly kind: "settled"; readonly site: SiteId; readonly number: number; readonly result: string }
  /** The consumer takes its site with it. */
  | { readonly kind: "killed"; readonly site: SiteId; readonly message: string }
  | { readonly kind: "fatal"; readonly site: SiteId; readonly text: string };

/** What a consumer makes of a message. */
export interface Behaviour {
  readonly takesMs: number;
  readonly outcome: "ack" | "retry" | "reject" | "throw" | "kill" | "silence";
  /** After which it is to come again. */
  readonly ms: number | null;
}

/** How a process is made wrong on purpose. */
export interface Wrongs {
  readonly settings?: (settings: QueueSettings) => QueueSettings;
  readonly aheadMs?: number;
  readonly tuples?: (tuples: MessageTuples) => MessageTuples;
  readonly user?: (user: TuplesUser) => TuplesUser;
  /** Words on their way in; `answer` hands the sender's words to this process as if they came from there. */
  readonly receives?: (words: readonly QueueWord[]) => readonly QueueWord[];
  readonly sends?: (
    words: readonly QueueWord[],
    answer: (words: readonly QueueWord[]) => void,
  ) => readonly QueueWord[];
}

export interface QueueSiteOptions {
  readonly id: SiteId;
  readonly sites: readonly SiteId[];
  readonly owners: OwnersSettings;
  readonly areas: ReadonlyMap<SiteId, string | null>;
  readonly away: ReadonlyMap<SiteId, number>;
  readonly world: World;
  readonly network: SimNetwork;
  readonly draws: Draws;
  readonly commitMs: readonly [number, number];
  readonly settings: (queue: string) => QueueSettings | undefined;
  readonly pulls: (queue: string) => boolean;
  /** Sites with consumers, the nearest first. */
  readonly outlets: (queue: string) => readonly SiteId[];
  readonly rttMs: (other: SiteId) => number;
  /** What a delivery of a message comes to. */
  readonly behaves: (message: string, site: SiteId) => Behaviour;
  readonly wrongs: Wrongs;
  readonly record: (event: QueueEvent) => void;
  readonly kill: (site: SiteId) => void;
}

interface Process extends Endpoint {
  readonly tuples: Tuples;
  readonly queues: MessageQueues;
  readonly detector: Detector;
  readonly clock: ProcessClock;
  alive: boolean;
  /** It stops: who pulls is not answered there any more. */
  isLeaving: boolean;
}

const BEAT = 0, TUPLES = 1, QUEUES = 2;
const PULL_WAIT_MS = 3_000, PULL_MESSAGES = 5;
const utf8 = new TextEncoder(), decoder = new TextDecoder();

/** What a message is known by. */
export const bodyOf = (message: string): Uint8Array => utf8.encode(message);
const messageOf = ({ envelope }: MessageDelivery): string => decoder.decode(envelope.body);

export class QueueSite {
  readonly id: SiteId;
  readonly #options: QueueSiteOptions;
  #disk: SimDisk;
  #process: Process | null = null;
  #starts = 0;
  #deliveries = 0;
  /** Consumers by queue that have messages. */
  readonly #running = new Map<string, number>();

  constructor(options: QueueSiteOptions) {
    this.id = options.id;
    this.#options = options;
    const { world } = options, draws = options.draws.fork("disk");
    this.#disk = new SimDisk({
      clock: {
        nowMs: () => world.nowMs,
        steadyMs: () => world.nowMs,
        after: (ms, run) => world.after(ms, run),
        turn: () => world.sleep(0),
      },
      random: () => draws.unit(),
      commitDelayMs: options.commitMs,
      earlyChance: 0,
    });
  }

  get isUp(): boolean {
    return this.#process !== null;
  }

  get queues(): MessageQueues | null {
    return this.#process?.queues ?? null;
  }

  get tuples(): Tuples | null {
    return this.#process?.tuples ?? null;
  }

  status(): readonly QueueStatus[] {
    return this.queues?.broker.status() ?? [];
  }

  async send(queue: string, message: NewMessage): Promise<string | null> {
    const process = this.#process;
    if (process === null) return null;
    const id = await process.queues.broker.send(queue, message);
    // A process that died answers nobody.
    return process.alive ? id : null;
  }

  async start(): Promise<void> {
    if (this.#process !== null) return;
    const { id, world, network, record, owners, sites, away, draws } = this.#options;
    const attempt = ++this.#starts;
    const clock = new ProcessClock(world, { skewMs: 0, drift: 0 }), nowMs = () => world.nowMs;
    const own = draws.fork(`process ${attempt}`), boot = 1 + own.integer(0, 2 ** 40);
    const holder: { process: Process | null } = { process: null };
    const send = (to: SiteId, kind: number, bytes: Uint8Array) => {
      const { process } = holder;
      return process === null
        ? Promise.resolve()
        : network.send(process, id, to, new Uint8Array([kind, ...bytes]));
    };
    const fail = (error: unknown) => {
      const code = error instanceof Error && "code" in error ? error.code : null;
      if (code === "closed") return;
      record({ kind: "fatal", site: id, text: error instanceof Error ? `${error.stack}` : String(error) });
    };
    const detector = new Detector({
      nowMs,
      wallMs: nowMs,
      after: (ms, callback) => clock.after(ms, callback),
      send: (to, beat) => send(to, BEAT, encodeMessage(beat)),
      isKnown: () => true,
      knowsTree: () => true,
      awayUntilMs: (other) => away.get(other),
      count: () => {},
      note: () => {},
    }, owners);
    for (const other of sites) if (other !== id) detector.watch(other);
    const queues = this.#queues({ boot, clock, own, detector, send, fail });
    detector.onChange((other, standing) => {
      if (attempt !== this.#starts) return;
      if (standing === "suspected") {
        record({ kind: "suspects", site: id, other });
        queues.suspects(other);
      } else if (standing === "alive") record({ kind: "trusts", site: id, other });
      queues.broker.rerouted();
    });
    const { wrongs } = this.#options;
    const tuples = await Tuples.open({
      site: id,
      boot,
      clock,
      nowMs,
      wallMs: nowMs,
      storage: this.#disk as Storage,
      send: (to, packet) => send(to, TUPLES, packet),
      fellows: fellowsOf(detector, { ...this.#options, settings: owners, nowMs }),
      refused: () => {},
      fatal: fail,
    }, this.#user(queues));
    if (attempt !== this.#starts) return;
    queues.begin(wrongs.tuples?.(tuples) ?? tuples);
    const process: Process = {
      ...{ tuples, queues, detector, clock },
      alive: true,
      isLeaving: false,
      connected: () => {},
      disconnected: () => {},
      receive: (from, bytes) => {
        if (!process.alive) return;
        detector.heard(from);
        const body = bytes.slice(1);
        if (bytes[0] === TUPLES) process.tuples.received(from, body);
        else if (bytes[0] === QUEUES) this.#receive(process, from, body);
        else {
          const beat = decodeMessage(body);
          if (beat.kind === "beat") detector.received(from, beat);
        }
      },
    };
    holder.process = this.#process = process;
    network.up(id, process);
    record({ kind: "up", site: id });
    this.#consume(process);
  }

  /** Tuples of before their disk was read come when the queues know it. */
  #user(queues: MessageQueues): TuplesUser {
    const user = this.#options.wrongs.user?.(queues.broker) ?? queues.broker;
    return { mine: (tuple) => user.mine(tuple), lost: (slot, id) => user.lost(slot, id) };
  }

  #queues({ boot, clock, own, detector, send, fail }: {
    readonly boot: number;
    readonly clock: ProcessClock;
    readonly own: Draws;
    readonly detector: Detector;
    readonly send: (to: SiteId, kind: number, bytes: Uint8Array) => Promise<void>;
    readonly fail: (error: unknown) => void;
  }): MessageQueues {
    const { id, world, wrongs, settings, outlets, rttMs } = this.#options;
    const isHeard = (site: SiteId) => site === id || detector.standing(site) === "alive";
    const changed = (queue: string) => {
      const plain = settings(queue);
      return plain === undefined ? undefined : wrongs.settings?.(plain) ?? plain;
    };
    return new MessageQueues({
      site: id,
      boot,
      clock,
      wallMs: () => world.nowMs + (wrongs.aheadMs ?? 0),
      random: () => own.unit(),
      settings: changed,
      outlets: (queue) => outlets(queue).filter(isHeard),
      rttMs,
      isHeard,
      tupleIdOf: (queue, name) => `${queue}/${name}`,
      undelivered: () => Promise.resolve(true),
      note: () => {},
      fail,
      send: (to, bytes) => {
        if (wrongs.sends === undefined) return send(to, QUEUES, bytes);
        const packet = decodeQueuePacket(bytes);
        const words = wrongs.sends(packet.words, (answers) => {
          const answer = encodeQueuePacket({ boot: packet.to, to: boot, words: answers });
          world.after(0, () => this.#process?.queues.received(to, answer));
        });
        return send(to, QUEUES, encodeQueuePacket({ ...packet, words }));
      },
    });
  }

  #receive({ queues }: Process, from: SiteId, bytes: Uint8Array): void {
    const { receives } = this.#options.wrongs;
    if (receives === undefined) return queues.received(from, bytes);
    const packet = decodeQueuePacket(bytes);
    queues.received(from, encodeQueuePacket({ ...packet, words: receives(packet.words) }));
  }

  // ── Consumers ──

  /** Its consumers begin; those that pull go on as long as the process lives. */
  #consume(process: Process): void {
    const { outlets, pulls } = this.#options;
    this.#running.clear();
    for (const queue of this.queueNames) {
      if (!outlets(queue).includes(this.id)) continue;
      if (pulls(queue)) void this.#pullAll(process, queue);
      else process.queues.outlet.serve(queue, (messages, say) => this.#handle(process, queue, messages, say));
    }
  }

  queueNames: readonly string[] = [];

  async #handle(
    process: Process,
    queue: string,
    messages: readonly MessageDelivery[],
    say: (place: number, outcome: DeliveryOutcome) => void,
  ): Promise<readonly DeliveryOutcome[]> {
    const running = 1 + (this.#running.get(queue) ?? 0);
    this.#running.set(queue, running);
    const outcomes = await Promise.all(
      messages.map(async (one, place) => {
        const done = await this.#work(process, queue, one, messages.length, running);
        if (done.outcome.kind === "ack") say(place, done.outcome);
        return done;
      }),
    );
    // Nothing of a process goes on when it is dead.
    if (!process.alive) return new Promise(() => {});
    this.#running.set(queue, (this.#running.get(queue) ?? 1) - 1);
    return outcomes.map(({ outcome }) => outcome);
  }

  async #pullAll(process: Process, queue: string): Promise<void> {
    const { outlet } = process.queues;
    while (process.alive && !process.isLeaving) {
      const messages = await outlet.pull(queue, { messages: PULL_MESSAGES, waitMs: PULL_WAIT_MS });
      if (!process.alive) return;
      void Promise.all(messages.map(async (delivery) => {
        const { outcome, number } = await this.#work(process, queue, delivery, messages.length, 1);
        // A client is no part of the site, and says it at any.
        if (outcome.kind === "release") return;
        const queues = this.#process?.queues;
        const result = await queues?.outlet.say(delivery.ticket, outcome);
        if (result !== undefined) {
          this.#options.record({ kind: "settled", site: this.id, number, result });
        }
      }));
    }
  }

  async #work(
    process: Process,
    queue: string,
    delivery: MessageDelivery,
    batch: number,
    running: number,
  ): Promise<{ readonly outcome: DeliveryOutcome; readonly number: number }> {
    const { record, behaves, world, kill, pulls } = this.#options;
    const message = messageOf(delivery), number = ++this.#deliveries, site = this.id;
    const { attempt } = delivery;
    record({ kind: "begun", site, queue, message, number, attempt, batch, running });
    const { takesMs, outcome, ms } = behaves(message, site);
    await world.sleep(takesMs);
    const said = (kind: DeliveryOutcome["kind"]) => {
      if (process.alive || pulls(queue)) record({ kind: "said", site, message, number, outcome: kind, ms });
      return { outcome: { kind, ms, error: "" }, number };
    };
    if (outcome === "kill" && process.alive) {
      record({ kind: "killed", site, message });
      kill(site);
    }
    if (outcome === "throw" || outcome === "kill") return said("retry");
    if (outcome === "silence") {
      await world.sleep(20_000);
      return { outcome: { kind: "release", ms: null, error: "" }, number };
    }
    return said(outcome);
  }

  // ── Ends ──

  /** Stops as planned. */
  async leave(untilMs: number, stops: () => void): Promise<void> {
    const process = this.#process;
    if (process === null) return;
    this.#options.record({ kind: "closed", site: this.id });
    process.isLeaving = true;
    process.queues.close();
    await process.tuples.close(untilMs);
    if (this.#process !== process) return;
    stops();
    this.#down(process);
  }

  /** Power is cut; `wipe`: the disk is lost too. */
  crash(wipe: boolean): void {
    const process = this.#process;
    if (process === null) return;
    if (wipe) this.#options.record({ kind: "wiped", site: this.id });
    this.#down(process);
    this.#disk = wipe ? this.#disk.wipe() : this.#disk.crash();
  }

  #down(process: Process): void {
    const { network, record, id } = this.#options;
    record({ kind: "down", site: id });
    process.alive = false;
    process.detector.close();
    process.clock.stop();
    network.down(id);
    this.#starts++;
    this.#process = null;
  }
}
