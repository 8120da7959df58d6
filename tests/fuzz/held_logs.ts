/**
 * Stateful sessions whose hosts hold the log: hosts that lie to a home about what they hold, and homes that lie to a host
 * about what it is to hold.
 */
import fc from "fast-check";
import {
  decodeToHome,
  encodeToHome,
  encodeToHost,
  type HeldLog,
  HomeSide,
  HostSide,
  type LogAnswers,
  type PeerInput,
  type ToHome,
} from "../../functions/sessions/attach/mod.ts";
import { encodeKept, tag } from "../../functions/sessions/attach/frame_bytes.ts";
import type { LogPiece } from "../../functions/sessions/log/asks.ts";
import {
  decodeSummary,
  encodeSummary,
  HOST_LOG_BYTES_MAX,
  HostFeeds,
  HostLog,
  openHostLog,
  SealedSeries,
  tagOf,
} from "../../functions/sessions/sealed/mod.ts";
import { anyToHome, anyToHost } from "../functions/sessions/attach/frame_arbitrary.ts";
import { End, HandClock, hello, keyOf } from "../functions/sessions/attach/peer_pair.ts";
import { type Dice, mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const CORPUS = 500;
const SECRET = new Uint8Array(32).fill(3);
const NAME = { app: "duel", class: "match", id: "one" };
const BLANK = { seed: new Uint8Array(32), version: "v1", base: null, parts: [] };
const NOBODY = { kind: "client", sent: 0, received: 0, isClosed: false } as const;

const pieceAt = (entry: number, epoch: number): LogPiece => ({
  ...{ epoch, first: entry, count: 1, wakeAtMs: 0 },
  bytes: Uint8Array.of(entry & 0xff, entry >> 8),
});
const opens = (receiver: string, records: readonly Uint8Array[]) =>
  openHostLog([SECRET], { name: NAME, receiver }, records);
const start = (receiver: string, epoch: number, salt: number) => ({
  ...{ secret: SECRET, of: { name: NAME, receiver }, epoch },
  salt: new Uint8Array(16).fill(salt),
});
const turned = async () => {
  for (let i = 0; i < 6; i++) await null;
};

/** What a home of epoch 1 gave a host: a whole record, and one for each commit. */
function sealed(receiver: string, commits: number): Uint8Array[] {
  const series = SealedSeries.whole(start(receiver, 1, 1), { ...BLANK, pieces: [] });
  return [series.first, ...Array.from({ length: commits }, (_, i) => series.next([pieceAt(i + 1, 1)]))];
}

const COMMITS = 4;
const SEALED = { honest: sealed("honest", COMMITS), own: sealed("own", COMMITS) };

/** A home whose disk is lost: it asks its hosts, and serves from what they gave. */
class LyingHostsRun {
  readonly clock = new HandClock();
  readonly heard: string[] = [];
  readonly side: HomeSide;
  readonly host: HostSide;
  readonly #log = HostLog.restore(1, SEALED.honest);
  readonly #events: PeerInput[] = [];
  readonly #pieces = SEALED.honest.slice(1).map((_, i) => pieceAt(i + 1, 1));
  readonly #has = new Map<string, number>();
  readonly #feeds: HostFeeds;
  #answered = 0;
  #released = COMMITS;
  readonly #entries = new Map<number, number>();

  constructor() {
    const { clock } = this;
    this.side = new HomeSide({
      ...{ clock, acknowledge: () => {}, newId: () => "new", outrun: () => {} },
      deliver: (event) => void this.#events.push(event),
      keysOf: (id) => [keyOf(id)],
      openLog: opens,
    });
    const pieces = this.#pieces, has = this.#has, released = () => this.#released;
    this.#feeds = new HostFeeds({
      ...{ name: NAME, epoch: 2 },
      get released() {
        return released();
      },
      get last() {
        return pieces.length;
      },
      copyBytes: 0,
      copy: () => Promise.resolve({ ...BLANK, pieces: [...pieces] }),
      hosts: {
        has: (host, through) => has.set(host, through) === has,
        drop: (host) => void has.delete(host),
        told: () => {},
        isAhead: (host) => has.has(host),
        isAwaited: () => false,
      },
    }, {
      ...{ secret: SECRET, random: (length: number) => new Uint8Array(length).fill(2) },
      ready: () => this.side.hostsChanged(),
      failed: (host, error) => {
        throw new Finding(`${host} can't be sent the log: ${error}`);
      },
    });
    const lost = (what: unknown) => {
      throw new Finding(`the honest host lost its channel: ${JSON.stringify(what)}`);
    };
    this.host = new HostSide({
      ...{ kind: "client", instance: 99, clock, log: this.#log },
      saved: {
        identity: { id: "honest", key: keyOf("honest") },
        epoch: 1,
        received: 0,
        first: 1,
        messages: [],
      },
      listener: { message: (text, at) => this.#hears(String(text), at), lost, closed: lost },
    });
  }

  /** The honest host has a channel. */
  connect(): void {
    const toHome = new End(), toHost = new End();
    toHost.to = this.host.connected(toHome);
    const reader = this.side.accept(toHost, "client");
    const early = toHome.sent.splice(0);
    toHome.to = reader;
    for (const bytes of early) reader.frame(bytes);
  }

  /** What both gave, as far as it must be so. */
  check(answers: LogAnswers): void {
    if (answers === "superseded") return; // whoever is on record may say so
    const honest = answers.get("honest");
    if (honest?.through !== COMMITS) throw new Finding("the honest host's log did not count");
    const own = answers.get("own") ?? null;
    const isPart = own === null ||
      own.log.pieces.every(({ bytes }, i) => same(bytes, pieceAt(i + 1, 1).bytes));
    if (!isPart) throw new Finding("a log counts that was not sealed");
  }

  open(): void {
    this.side.opened({
      ...{ epoch: 2, outputs: [], peers: [{ ...NOBODY, id: "honest" }, { ...NOBODY, id: "own" }] },
      ahead: {
        ...{ feeds: this.#feeds, released: COMMITS },
        asked: ["honest", "own"],
      },
    });
  }

  /** All that was sent is in a commit, which leaves to hosts at once and to others a little later. */
  commit(dice: Dice): void {
    for (const event of this.#events.splice(0)) {
      const isHonest = event.kind === "message" && event.peer === "honest";
      const entry = this.#pieces.length + 1;
      const to = isHonest ? "honest" : "own";
      const piece = pieceAt(entry, 2);
      this.#pieces.push(piece);
      if (isHonest) this.#entries.set(++this.#answered, entry);
      const outputs = isHonest
        ? [{ to, sequence: this.#answered, bytes: tag(`to ${String(event.message)}`) }]
        : [];
      this.#feeds.appended(piece);
      this.side.appended({ entry, outputs });
      if (dice.below(2) === 0) this.clock.turn(3);
      this.#released = entry;
      this.side.released({ done: [{ event, rejected: null }], outputs, entry });
    }
  }

  /** HO1: with the log up to there. */
  #hears(text: string, sequence: number): void {
    this.heard.push(text);
    const found = opens("honest", this.#log.promise(this.#log.promised) ?? []);
    const entry = this.#entries.get(sequence) ?? 0;
    if (!found.ok || found.copy.through < entry) {
      throw new Finding(`output ${sequence} of entry ${entry} came without its log`);
    }
  }
}

/** What a host with a peer of its own says of what it holds. */
function lie(dice: Dice, corpus: readonly Uint8Array<ArrayBuffer>[]): Uint8Array {
  const records = dice.pick([SEALED.own, SEALED.own.slice(0, 1 + dice.below(COMMITS)), SEALED.honest, []]);
  const given = records.map((record) => dice.below(8) === 0 ? mutateBytes(dice, record) : record);
  if (dice.below(4) === 0) given.splice(dice.below(given.length + 1), dice.below(2));
  const frames: ToHome[] = [
    { kind: "log", epoch: dice.pick([1, 2, 2, 2, 3]), records: dice.below(12) === 0 ? null : given },
    { kind: "taken", records: 1 + dice.below(6) },
    { kind: "taken", records: dice.pick([1_000, Number.MAX_SAFE_INTEGER]) },
    { kind: "ack", received: dice.below(3) },
  ];
  if (dice.below(6) === 0) return dice.pick(corpus);
  if (dice.below(6) === 0) {
    return encodeKept({ sequence: 1 + dice.below(3), received: 0, tagged: tag("evil") });
  }
  const frame = encodeToHome(dice.pick(frames));
  return dice.below(8) === 0 ? Uint8Array.from(mutateBytes(dice, frame)) : frame;
}

function lyingHello(dice: Dice): Uint8Array {
  const log = dice.pick([
    null,
    encodeSummary({ promised: dice.below(4), tag: null }),
    encodeSummary({ promised: 1, tag: tagOf(dice.pick([...SEALED.own, ...SEALED.honest])) }),
    Uint8Array.of(1, 1, 2, 3),
  ]);
  const id = dice.pick(["own", "own", "own", "honest"]);
  const identity = { id, key: keyOf(id === "honest" ? "forged" : id) };
  const attempt = 1 + dice.below(3) + dice.below(3) * 2 ** 24;
  const counts = { epoch: dice.below(4), received: 0, first: 1, attempt };
  const bytes = encodeToHome(hello({ identity, instance: 1 + dice.below(3), ...counts, log }));
  return dice.below(8) === 0 ? Uint8Array.from(mutateBytes(dice, bytes)) : bytes;
}

/** Hosts of one session, one of whom says what he likes of the log that he holds. */
export const lyingLogHosts: Target = {
  name: "hosts that lie about the log",
  says:
    "count with what was sealed for them, or nothing; the honest host's log counts, and it has what it is told",
  reaches: ["opened", "superseded"],
  quick: 2_000,
  open(seed) {
    const corpus = fc.sample(anyToHome, { numRuns: CORPUS, seed }).map(encodeToHome);
    return {
      async attempt(dice) {
        const run = new LyingHostsRun(), { side, host, clock } = run;
        const speaks = (times: number) => {
          const line = side.accept(new End(), "client");
          line.frame(lyingHello(dice));
          for (let i = dice.below(times); i > 0; i--) line.frame(lie(dice, corpus));
          if (dice.below(3) === 0) line.broken();
          return line;
        };
        if (dice.below(2) === 0) speaks(3);
        const asked = side.ask({ epoch: 2, hosts: ["honest", "own"], withinMs: 1_000 });
        if (dice.below(2) === 0) speaks(5);
        run.connect();
        const line = speaks(5);
        clock.turn(1_500);
        const answers = await asked;
        run.check(answers);
        run.open();
        await turned();
        let sent = 0;
        for (let round = 1 + dice.below(4); round > 0; round--) {
          host.send(`${++sent}`);
          line.frame(lie(dice, corpus));
          if (dice.below(3) === 0) speaks(6);
          run.commit(dice);
          await turned();
          clock.turn(dice.below(20));
        }
        clock.turn(200);
        await turned();
        clock.turn(200);
        if (run.heard.some((text, i) => text !== `to ${i + 1}`) || run.heard.length !== sent) {
          throw new Finding(`the honest host sent ${sent}, and heard ${run.heard.join()}`);
        }
        if (host.acknowledged !== sent) {
          throw new Finding(`${host.acknowledged} of ${sent} were acknowledged`);
        }
        return answers === "superseded" ? answers : "opened";
      },
    };
  },
};

/** What a host holds, and whether it was right to. */
class WatchedLog implements HeldLog {
  readonly log = new HostLog();
  /** Records held of this channel. */
  held = 0;
  fences: { readonly epoch: number; readonly records: number | null }[] = [];

  get promised(): number {
    return this.log.promised;
  }

  summary(): Uint8Array {
    return this.log.summary();
  }

  promise(epoch: number): readonly Uint8Array[] | null {
    const before = this.log.promised;
    const records = this.log.promise(epoch);
    if (this.log.promised < before) throw new Finding("a promise was taken back");
    this.fences.push({ epoch, records: records?.length ?? null });
    return records;
  }

  take(epoch: number, record: Uint8Array): "held" | "stale" | "invalid" {
    const { promised } = this.log;
    const taken = this.log.take(epoch, record);
    if (taken === "held" && epoch < promised) throw new Finding("a record of an earlier epoch is held");
    if (taken === "held" && !same(this.log.last ?? new Uint8Array(), record)) {
      throw new Finding("another is held");
    }
    if (this.log.bytes > HOST_LOG_BYTES_MAX) throw new Finding("it holds too much");
    if (taken === "held") this.held++;
    return taken;
  }

  drop(): void {
    this.log.drop();
  }
}

/** Checks what a host said on one channel. */
function checkSaid(sent: readonly Uint8Array[], log: WatchedLog, isWelcomed: boolean): void {
  let told = 0;
  const fences = [...log.fences];
  for (const [at, bytes] of sent.entries()) {
    const frame = decodeToHome(bytes);
    if (at === 0 && (frame.kind !== "hello" || frame.log === null)) {
      throw new Finding("it says nothing of its log");
    }
    if (frame.kind === "hello" && frame.log !== null) decodeSummary(frame.log);
    if (frame.kind === "log") {
      const fence = fences.shift();
      if (frame.epoch !== fence?.epoch || (frame.records?.length ?? null) !== fence.records) {
        throw new Finding("it answers what was not asked, or with what it had not");
      }
    }
    if (frame.kind !== "taken") continue;
    if (!isWelcomed || frame.records <= told || frame.records > log.held) {
      throw new Finding(`it says to hold ${frame.records}, and holds ${log.held}`);
    }
    told = frame.records;
  }
  if (fences.length > 0) throw new Finding("it promised, and did not say so");
}

/** A host side to which a home says what it likes of the log that it is to hold. */
export const lyingLogHomes: Target = {
  name: "homes that lie about the log",
  says:
    "are given up, or what they send is held and told as it is; promises are kept, nothing is given out before its log",
  reaches: ["given up", "heard", "ended", "held"],
  quick: 3_000,
  open(seed) {
    const corpus = fc.sample(anyToHost, { numRuns: CORPUS, seed }).map(encodeToHost);
    return { attempt: (dice) => attemptAsHome(dice, corpus) };
  },
};

function attemptAsHome(dice: Dice, corpus: readonly Uint8Array<ArrayBuffer>[]): string {
  const clock = new HandClock(), log = new WatchedLog();
  let outcome = "heard", last = 0, epoch = 0, salt = 0, awaited: Uint8Array | null = null;
  const host = new HostSide({
    ...{ kind: "client", instance: 1, clock, log },
    listener: {
      message: (_, sequence) => {
        if (sequence !== ++last) throw new Finding(`output ${sequence} after ${last - 1}`);
        if (awaited !== null && !same(log.log.last ?? new Uint8Array(), awaited)) {
          throw new Finding("an output was given out before its log");
        }
      },
      lost: () => {
        outcome = "given up";
      },
      closed: () => {
        outcome = "ended";
        if (decodeSummary(log.summary()).tag !== null) {
          throw new Finding("a log is held of a peer that is over");
        }
      },
    },
  });
  for (let channels = 1 + dice.below(4); channels > 0 && outcome !== "ended"; channels--) {
    const end = new End();
    Object.assign(log, { held: 0, fences: [] });
    const reader = host.connected(end);
    host.send("a");
    for (let i = dice.below(3); i > 0; i--) {
      reader.frame(encodeToHost({ kind: "fence", epoch: 1 + dice.below(5) }));
    }
    const says = Math.max(1, epoch + dice.below(4) - 1);
    if (dice.below(6) > 0) {
      const identity = { id: "a", key: keyOf("a") };
      const received = Math.max(0, host.acknowledged + dice.below(2));
      reader.frame(
        encodeToHost({ kind: "welcome", identity, epoch: says, received: Math.min(received, host.sent) }),
      );
    }
    const isWelcomed = host.stage === "open";
    let series = SealedSeries.whole(start("a", Math.max(1, host.epoch), ++salt), { ...BLANK, pieces: [] });
    let entry = 0, next = dice.below(8) > 0 ? series.first : null;
    for (let i = 1 + dice.below(8); i > 0; i--) {
      if (dice.below(8) === 0) {
        const again = start("a", dice.pick([1, host.epoch || 1, host.epoch + 1]), ++salt);
        series = SealedSeries.further(again, { tag: series.tag, after: entry, pieces: [] });
        next = series.first;
      }
      const record = next ?? series.next([pieceAt(++entry, host.epoch || 1)]);
      next = null;
      const bytes = dice.below(6) === 0 ? Uint8Array.from(mutateBytes(dice, record)) : record;
      const received = host.acknowledged;
      awaited = dice.below(4) === 0 ? null : bytes;
      const frame = dice.below(3) === 0
        ? encodeToHost({ kind: "record", record: bytes })
        : encodeKept({ sequence: last + 1, received, tagged: tag("o"), increment: awaited });
      const lies = dice.below(12) === 0;
      if (lies) awaited = null;
      reader.frame(lies ? dice.pick(corpus) : frame);
      if (dice.below(4) === 0) clock.turn(dice.below(10));
    }
    clock.turn(dice.below(100));
    if (host.epoch < epoch) throw new Finding("its epoch fell");
    epoch = host.epoch;
    checkSaid(end.sent, log, isWelcomed || log.held > 0);
    const before = outcome;
    reader.broken();
    outcome = before === "heard" && log.held > 0 ? "held" : before;
    if (outcome === "given up" && channels > 1) outcome = "heard";
  }
  return outcome;
}
