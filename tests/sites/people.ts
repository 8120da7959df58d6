/**
 * Those who have to do with the stateful sessions of a run: devices and plain WebSockets, callers that ask until they are
 * answered, programs behind sessions, and what all of them say.
 */
import { decodeAnswer, encodeCall } from "../../functions/calls/call.ts";
import { decodeValue, encodeValue } from "../../functions/values/value.ts";
import type { Cluster } from "../sim/cluster.ts";
import type { CallOperation } from "../sim/handler.ts";
import type { Draws } from "../sim/random.ts";
import { type ClientPorts, Device, PlainClient } from "./device.ts";
import type { OriginProgram } from "./outside.ts";
import type { SitesPlan } from "./plan.ts";
import type { Op } from "./program.ts";
import type { SimSession } from "./session.ts";
import type { Site } from "./site.ts";
import type { Wire } from "./wire.ts";

/** What they need of the run. */
export interface PeoplePorts {
  readonly cluster: Cluster;
  readonly plan: SitesPlan;
  readonly draws: Draws;
  readonly sites: readonly Site[];
  readonly sessions: readonly SimSession[];
  readonly isOver: () => boolean;
  /** A new channel to a gateway. */
  readonly wire: (gateway: Site, draws: Draws) => Wire;
  readonly probe: (name: string) => void;
}

/** Who hears nothing for so long asks again. */
const CALLER_MS = 4_000;
/** Devices and plain clients come within this. */
const COME_MS = 300;
/** What is done to rows that all share. */
const ROWS: readonly Op[] = ["get", "set", "del", "sum", "alarm"];
const WRITES: readonly Op[] = ROWS.filter((op) => op !== "get");

/** See the file's header. */
export class People {
  readonly #ports: PeoplePorts;
  /** Requests that are not answered. */
  open = 0;
  #calls = 0;

  constructor(ports: PeoplePorts) {
    this.#ports = ports;
  }

  /** Draws what they do, and when. */
  begin(): void {
    const { plan: { devices, plain, callers, requests, deaths, closes }, draws: all } = this.#ports;
    const comeMs = this.#ports.plan.comeMs ?? COME_MS;
    const { world } = this.#ports.cluster;
    for (const session of this.#ports.sessions) {
      const { id } = session.name;
      const draws = all.fork(`people of ${id}`);
      const within = () => this.#within(draws);
      for (let i = 0; i < devices; i++) {
        const device = new Device(`${id}!d${i}`, session.name, this.#clientPorts(draws.fork(`${i}`)));
        session.devices.push(device);
        world.after(draws.between(0, comeMs), () => device.start());
        this.#says(session, draws, (ops) => device.send(ops));
        if (draws.chance(deaths)) world.after(within(), () => device.die());
        else if (draws.chance(closes)) world.after(within(), () => device.close());
      }
      for (let i = 0; i < plain; i++) {
        const ports = this.#clientPorts(draws.fork(`plain ${i}`));
        const client = new PlainClient(`${id}!w${i}`, session.name, ports);
        session.plain.push(client);
        world.after(draws.between(0, comeMs), () => client.start());
        this.#says(session, draws, (ops) => client.send(ops));
      }
      for (let i = 0; i < callers * requests; i++) {
        const request = `${id}!r${i}`, what = `${request} ${this.#ops(draws, session, true)}`;
        this.open++;
        world.after(within(), () => this.#request(draws, session, request, what));
      }
    }
  }

  /** What a program behind a session says. */
  converse(program: OriginProgram, session: SimSession, draws: Draws): void {
    this.#says(session, draws, (ops) => {
      if (!this.#ports.isOver()) program.say(ops);
    });
  }

  /** What a client's request asks of some session. */
  call(draws: Draws): CallOperation {
    const { name, name: { class: className, id } } = draws.pick(this.#ports.sessions);
    const once = `${id}!q${this.#calls++}`;
    const session = this.#ports.sessions.find((one) => one.name === name) as SimSession;
    return { kind: "call", class: className, id, once, what: `${once} ${this.#ops(draws, session, true)}` };
  }

  /** Somebody asks a session, and needs nothing but its answer. */
  last(session: SimSession): void {
    const last = `${session.name.id}!last`;
    this.open++;
    this.#request(this.#ports.draws.fork(last), session, last, `${last} quiet`);
  }

  #within(draws: Draws): number {
    return draws.between(0, this.#ports.plan.store.safetyMs);
  }

  #says(session: SimSession, draws: Draws, say: (ops: string) => void): void {
    for (let k = draws.integer(0, this.#ports.plan.messages); k > 0; k--) {
      const ops = this.#ops(draws, session);
      this.#ports.cluster.world.after(this.#within(draws), () => say(ops));
    }
  }

  /**
   * What always throws has no end but where it is given up. A request of a session that ended may be run by the one after
   * it, too: it writes nothing that all share, since each write is to be made once.
   */
  #ops(draws: Draws, { name }: SimSession, isRequest = false): string {
    const { plan: { ops: all }, sessions } = this.#ports;
    const ops = name.class === "whole" ? all : all.filter((op) => op !== "throw");
    const words = Array.from({ length: draws.integer(1, 3) }, () => draws.pick<Op>(ops));
    const isTwice = isRequest && all.includes("end");
    if (isTwice) words.forEach((op, i) => words[i] = WRITES.includes(op) ? "get" : op);
    // Nothing comes after it.
    if (words.includes("end")) words.splice(0, words.length, ...words.filter((op) => op !== "end"), "end");
    // None is called by one that it calls.
    const other = sessions[sessions.findIndex((one) => one.name === name) + 1]?.name;
    const called = other === undefined ? "quiet" : `call:${other.class}/${other.id}`;
    const used = new Set<number>();
    // A handler's sums are applied after its other writes, and not with them (functions/sessions/serve/own_store.ts).
    if (words.includes("sum")) words.forEach((op, i) => words[i] = op === "set" || op === "del" ? "get" : op);
    return words.map((op) => op === "call" ? called : this.#word(op, draws, used)).join(" ");
  }

  /**
   * With the row that it means, and the number of its write. A message has each row once: what its handler has written
   * itself an executor shows without asking anybody (tests/functions/sessions/turn).
   */
  #word(op: Op, draws: Draws, used: Set<number>): string {
    if (!ROWS.includes(op)) return op;
    const { keyspace, counters } = this.#ports.cluster;
    const isAny = op === "get", isSum = op === "sum" && keyspace.plain < keyspace.size;
    const least = isSum ? keyspace.plain : 0,
      greatest = (isAny || isSum ? keyspace.size : keyspace.plain) - 1;
    const key = draws.integer(least, greatest);
    if (used.has(key)) return "quiet";
    used.add(key);
    const row = keyspace.name(key);
    if (op === "get" || (op === "sum" && !isSum)) return `get:${row}`;
    const write = counters.writes++;
    if (!isSum) return `${op}:${row}:${write}`;
    const amount = keyspace.amount(key, write);
    return amount === null ? `get:${row}` : `sum:${row}:${write}:${amount.toHex()}`;
  }

  #clientPorts(draws: Draws): ClientPorts {
    const { cluster: { world }, sites, wire, probe } = this.#ports;
    return {
      ...{ world, draws, probe },
      site: () => draws.pick(sites),
      wire: (gateway) => wire(gateway, draws),
    };
  }

  /** Until it is answered; each time at some site. */
  #request(draws: Draws, session: SimSession, request: string, what: string): void {
    const { cluster: { world }, sites, probe } = this.#ports;
    let isOver = false;
    const again = () => {
      if (isOver) return;
      isOver = true;
      probe("asked again");
      world.after(draws.between(10, 300), () => this.#request(draws, session, request, what));
    };
    world.after(CALLER_MS, again);
    const { process } = draws.pick(sites);
    if (process === null) return again();
    const call = encodeCall({ kind: "rpc", method: "run", args: encodeValue([what]) });
    process.router.call({ address: session.name, call, token: null, once: request }).then(({ answer }) => {
      if (this.answered(session, request, answer)) this.open--;
      isOver = true;
    }, ({ code }) => {
      probe(`told ${code}`);
      if (code !== "superseded" || isOver) return again();
      // It was run, and its answer is not kept for so long (functions/sessions/home, R3).
      isOver = true;
      this.open--;
    });
  }

  /** Somebody has an answer; whether nobody had one before. What arrives after all was heard, too. */
  answered(session: SimSession, request: string, answer: Uint8Array): boolean {
    const heard = session.answered.get(request) ?? [];
    session.answered.set(request, [...heard, answerText(answer)]);
    return heard.length === 0;
  }
}

function answerText(bytes: Uint8Array): string {
  const answer = decodeAnswer(bytes);
  if (answer.kind === "value") return `value ${decodeValue(answer.value)}`;
  return answer.kind === "error" ? `error ${answer.code} ${answer.message}` : answer.kind;
}
