/** A client that holds the log: what it sent until it is in the log, what it was given, and the records. */
import { decodeSummary, HostLog } from "../../../functions/sealed_log/mod.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";
import type { HostEnd, ToHost } from "./frames.ts";

/** What a client that lies gives back for its log. */
export type Lie =
  | "none"
  | "nothing"
  | "an older one"
  | "a changed one"
  | "another's"
  | "one without its middle";

export interface ClientWrongs {
  /** It answers first, and promises a while later. */
  readonly promisesLater?: boolean;
  /** It promises nothing. */
  readonly promisesNothing?: boolean;
  /** It drops what it holds when another home begins. */
  readonly cutsEarly?: boolean;
}

export interface ClientPorts {
  readonly world: World;
  readonly draws: Draws;
  /** A channel to some site, or to this one; null: it is down. */
  connect(site: string | null): HostEnd | null;
  given(sequence: number, text: string): void;
  acknowledged(count: number): void;
  complain(message: string): void;
  /** Its log as it is to be given back. */
  told(records: readonly Uint8Array[]): readonly Uint8Array[];
  readonly wrongs: ClientWrongs;
}

const RETRY_MS = 60;
const SILENT_MS = 1_500;

export class Client {
  readonly #ports: ClientPorts;
  readonly id: string;
  #log = new HostLog();
  #channel: HostEnd | null = null;
  #isOpen = false;
  #received = 0;
  sent = 0;
  #acknowledged = 0;
  #onTheirWay = 0;
  #taken = 0;
  #heardMs = 0;

  constructor(id: string, ports: ClientPorts) {
    this.id = id;
    this.#ports = ports;
  }

  /** It is no peer any more. */
  isRefused = false;

  get isDone(): boolean {
    return this.isRefused || this.#acknowledged === this.sent;
  }

  get received(): number {
    return this.#received;
  }

  send(): void {
    this.sent++;
    this.#pump();
  }

  connect(site: string | null = null): void {
    if (this.isRefused) return;
    const channel = this.#ports.connect(site);
    if (channel === null) return this.#again();
    // Nothing that still comes of an earlier one is heard.
    this.#channel = channel;
    this.#isOpen = false;
    this.#taken = 0;
    this.#heardMs = this.#ports.world.nowMs;
    channel.onFrame = (frame) => this.#frame(channel, frame);
    channel.onBroken = () => {
      if (this.#channel !== channel) return;
      this.#channel = null;
      this.#isOpen = false;
      this.#again();
    };
    const { promised, tag } = decodeSummary(this.#log.summary());
    channel.send({ kind: "hello", host: this.id, received: this.#received, promised, tag });
    this.#watch(channel);
  }

  drop(): void {
    this.#channel?.close();
  }

  /** Another site may do better: the old channel is left as it is. */
  roam(): void {
    if (this.#channel !== null) this.connect();
  }

  #again(): void {
    const { world, draws } = this.#ports;
    world.after(draws.between(0, RETRY_MS), () => {
      if (this.#channel === null) this.connect();
    });
  }

  /** A home that has gone says nothing. */
  #watch(channel: HostEnd): void {
    this.#ports.world.after(SILENT_MS, () => {
      if (this.#channel !== channel) return;
      const isSilent = this.#ports.world.nowMs - this.#heardMs >= SILENT_MS;
      if (isSilent && (!this.isDone || !this.#isOpen)) return channel.close();
      this.#watch(channel);
    });
  }

  #frame(channel: HostEnd, frame: ToHost): void {
    if (channel !== this.#channel) return;
    this.#heardMs = this.#ports.world.nowMs;
    switch (frame.kind) {
      case "fence":
        return this.#fence(channel, frame.epoch);
      case "elsewhere":
        return this.connect(frame.site);
      case "refused":
        this.isRefused = true;
        this.#channel = null;
        return;
      case "welcome":
        if (frame.epoch < this.#log.promised) return channel.close();
        this.#isOpen = true;
        if (frame.handled < this.#acknowledged) {
          // What is in the log is not kept here any more.
          this.#ports.complain(
            `${this.id} was told of ${this.#acknowledged}, and the log has ${frame.handled}`,
          );
        }
        this.#onTheirWay = frame.handled;
        this.#heard(frame.received);
        return this.#pump();
      case "output":
        return this.#output(channel, frame);
    }
  }

  #fence(channel: HostEnd, epoch: number): void {
    const { promisesLater, promisesNothing } = this.#ports.wrongs;
    const records = promisesLater === true || promisesNothing === true
      ? this.#peek()
      : this.#log.promise(epoch);
    if (promisesLater === true) this.#ports.world.after(800, () => void this.#log.promise(epoch));
    channel.send({ kind: "log", epoch, records: records && this.#ports.told(records) });
  }

  /** What it holds, as it is. */
  get records(): readonly Uint8Array[] {
    return this.#peek();
  }

  #peek(): readonly Uint8Array[] {
    return this.#log.promise(this.#log.promised) ?? [];
  }

  #output(
    channel: HostEnd,
    { epoch, records, output, received }: ToHost & { readonly kind: "output" },
  ): void {
    if (!this.#isOpen || epoch < this.#log.promised) return;
    for (const record of records) {
      if (this.#ports.wrongs.cutsEarly === true && record[0] === 1) this.#log = new HostLog();
      const taken = this.#log.take(epoch, record);
      if (taken === "stale") return;
      if (taken === "invalid" && this.#ports.wrongs.cutsEarly !== true) {
        return this.#ports.complain(`${this.id} can't take a record of kind ${record[0]} in epoch ${epoch}`);
      }
      this.#taken++;
    }
    if (output !== null && output.sequence > this.#received) {
      if (output.sequence > this.#received + 1) return this.#ports.complain(`${this.id} misses an output`);
      this.#received++;
      this.#ports.given(output.sequence, output.text);
    }
    this.#heard(received);
    channel.send({ kind: "ack", received: this.#received, taken: this.#taken });
  }

  #heard(count: number): void {
    if (count <= this.#acknowledged) return;
    this.#acknowledged = count;
    this.#ports.acknowledged(count);
  }

  #pump(): void {
    const channel = this.#channel;
    if (!this.#isOpen || channel === null) return;
    while (this.#onTheirWay < this.sent) {
      channel.send({ kind: "message", sequence: ++this.#onTheirWay });
    }
  }
}
