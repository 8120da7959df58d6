/** A home side and host sides by hand: a clock that is turned, channels that are carried frame by frame. */
import {
  type Channel,
  type ChannelReader,
  decodeToHost,
  encodeToHome,
  type HomePorts,
  HomeSide,
  type HostEnd,
  type HostOptions,
  HostSide,
  type Lost,
  type PeerClock,
  type PeerFeeds,
  type PeerInput,
  type ToHome,
  type ToHost,
} from "../../../../functions/sessions/attach/mod.ts";

/** Time that goes on when it is told to. */
export class HandClock implements PeerClock {
  #nowMs = 0;
  #due: { readonly atMs: number; readonly run: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const due = { atMs: this.#nowMs + ms, run };
    this.#due.push(due);
    return () => {
      this.#due = this.#due.filter((each) => each !== due);
    };
  }

  turn(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = this.#due.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#due = this.#due.filter((each) => each !== next);
      this.#nowMs = next.atMs;
      next.run();
    }
    this.#nowMs = endMs;
  }
}

/** One end of a channel as a test has it: what was sent to it, and whether it was closed. */
export class End implements Channel {
  readonly sent: Uint8Array<ArrayBuffer>[] = [];
  closed: number | null = null;
  /** What it says to hold. */
  bytes = 0;
  /** Where frames go at once; else they stay in `sent`. */
  to: ChannelReader | null = null;

  send(frame: Uint8Array<ArrayBuffer>): void {
    this.sent.push(frame);
    this.to?.frame(frame);
  }

  bufferedBytes(): number {
    return this.bytes;
  }

  close(code: number): void {
    this.closed ??= code;
    this.to?.broken();
  }
}

/** A home side whose session does nothing by itself. */
export class HandHome {
  readonly clock: HandClock;
  readonly side: HomeSide;
  readonly events: PeerInput[] = [];
  readonly acknowledged: Readonly<Record<string, number>>[] = [];
  readonly outrun: number[] = [];
  readonly #sent = new Map<string, number>();
  #ids = 0;

  constructor(clock = new HandClock(), more: Partial<HomePorts> = {}) {
    this.clock = clock;
    this.side = new HomeSide({
      clock,
      deliver: (event) => void this.events.push(event),
      acknowledge: (outputs) => void this.acknowledged.push(outputs),
      newId: () => `p${++this.#ids}`,
      keysOf: (id) => [keyOf(id)],
      outrun: (epoch) => void this.outrun.push(epoch),
      ...more,
    });
  }

  /** The oldest event that is not done is, with these outputs, each to a peer. */
  done(outputs: Readonly<Record<string, readonly string[]>> = {}, code: string | null = null): void {
    const event = this.events.shift();
    const rejected = code === null ? null : { code, message: "it threw" };
    this.side.released({
      done: event === undefined ? [] : [{ event, rejected }],
      outputs: Object.entries(outputs).flatMap(([to, texts]) => texts.map((text) => this.#output(to, text))),
    });
  }

  /** All that waits is done, and nothing comes of it. */
  doneAll(): void {
    while (this.events.length > 0) this.done();
  }

  /** `!` and a reason sends the peer away. */
  #output(to: string, text: string) {
    const sequence = (this.#sent.get(to) ?? 0) + 1;
    this.#sent.set(to, sequence);
    const body = new TextEncoder().encode(text.replace(/^!/, ""));
    const head = text.startsWith("!") ? [2, 4001 >> 8, 4001 & 0xff] : [0];
    return { to, sequence, bytes: Uint8Array.from([...head, ...body]) };
  }

  /** A channel by hand: what is said goes to the home, what it says is read from `heard`. */
  line(kind: "client" | "origin" = "client") {
    const end = new End();
    const reader = this.side.accept(end, kind);
    return {
      end,
      reader,
      say: (frame: ToHome) => reader.frame(encodeToHome(frame)),
      heard: (): ToHost[] => end.sent.splice(0).map(decodeToHost),
    };
  }
}

/** What hosts are sent of the log, by hand: all may be told up to `last`, each with the records that are put there. */
export class HandFeeds implements PeerFeeds {
  readonly attached: string[] = [];
  readonly took: number[] = [];
  readonly awaited = new Set<string>();
  /** Those that do not take what they are sent, and what became of them. */
  readonly lacks = new Set<string>();
  readonly lates: string[] = [];
  last = 0;
  records: Uint8Array[] = [];

  attach(host: string): void {
    this.attached.push(host);
  }
  detach(host: string): void {
    this.attached.splice(this.attached.indexOf(host), 1);
  }
  forget(host: string): void {
    if (this.attached.includes(host)) this.detach(host);
  }
  isAwaited(host: string): boolean {
    return this.awaited.has(host);
  }
  reach(): number {
    return this.last;
  }
  next(): readonly Uint8Array[] {
    return this.records.splice(0);
  }
  taken(_host: string, records: number): void {
    this.took.push(records);
  }
  untaken(host: string): number {
    return this.lacks.has(host) ? 1 : 0;
  }
  late(host: string, isOut: boolean): void {
    this.lates.push(isOut ? `${host}, out` : host);
  }
  again(host: string): void {
    this.lates.push(`${host} again`);
  }
  sent(): number {
    return 1;
  }
}

export const keyOf = (id: string): Uint8Array => new TextEncoder().encode(id.padEnd(32, "."));

export const hello = (more: Partial<Extract<ToHome, { kind: "hello" }>> = {}): ToHome => ({
  ...{
    kind: "hello",
    peer: "client",
    identity: null,
    instance: 1,
    attempt: 1,
    epoch: 0,
    received: 0,
  } as const,
  ...{ first: 1, log: null },
  ...more,
});

/** A host side that notes what it hears. */
export class HandHost {
  readonly side: HostSide;
  readonly heard: string[] = [];
  readonly lost: Lost[] = [];
  readonly rejected: number[] = [];
  end: HostEnd | null = null;

  constructor(clock: PeerClock, more: Partial<HostOptions> = {}) {
    this.side = new HostSide({
      kind: "client",
      instance: 1,
      clock,
      listener: {
        message: (message) =>
          void this.heard.push(typeof message === "string" ? message : `bytes ${message.join()}`),
        lost: (why) => void this.lost.push(why),
        closed: (end) => {
          this.end = end;
        },
        rejected: (sequence) => void this.rejected.push(sequence),
      },
      ...more,
    });
  }

  /** A channel to a home, on which everything arrives at once. */
  connect(home: HandHome): { readonly toHome: End; readonly toHost: End; breaks(): void } {
    const toHome = new End(), toHost = new End();
    const early: Uint8Array[] = [];
    toHome.to = { frame: (bytes) => early.push(bytes), broken: () => {} };
    const host = this.side.connected(toHome);
    toHost.to = host;
    const reader = home.side.accept(toHost, "client");
    toHome.to = reader;
    for (const bytes of early) reader.frame(bytes);
    return {
      toHome,
      toHost,
      breaks: () => {
        reader.broken();
        host.broken();
      },
    };
  }
}
