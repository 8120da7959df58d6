/**
 * Lobby of a home: hosts that have come before the session is open here, and what an opening asks of them
 * (docs/protocol/hosts.md, HO2, HO7): each that is on record promises the epoch, and gives the log that it holds.
 *
 *   hello ─ waits ─ fence ─▶ log ─ waits ─ opened ─▶ greeted
 *
 * LB1  Only a host that has the key that this cluster gave it is asked, and counts; what it gives counts when it opens.
 * LB2  A host whose log does not open is refused, and counts from then on as one that holds nothing.
 * LB3  Two programs may speak for one host: the longer of their logs counts, whichever comes last.
 */
import { isFurther } from "../log/hosts_asked.ts";
import type { HostCopy } from "../sealed/open_log.ts";
import type { PeerHello, ToHome } from "./frame.ts";
import type { HomeLine } from "./home_line.ts";
import type { HomePeer } from "./home_peer.ts";
import type { HomePorts, LogAnswers, LogAsk } from "./ports.ts";

type Line = HomeLine<HomePeer>;

/** Hosts that wait for the session to be opened (see the file's header). */
export class Lobby {
  readonly #ports: Pick<HomePorts, "clock" | "openLog">;
  /** Reports whether the peer that says hello has shown who it is. */
  readonly #isKnown: (hello: PeerHello) => boolean;
  #waiting = new Map<Line, PeerHello>();
  #asking: Asking | null = null;
  /** Hosts whose log did not open (LB2). */
  readonly #forged = new Set<string>();

  constructor(ports: Pick<HomePorts, "clock" | "openLog">, isKnown: (hello: PeerHello) => boolean) {
    this.#ports = ports;
    this.#isKnown = isKnown;
  }

  wait(line: Line, hello: PeerHello): void {
    this.#waiting.set(line, hello);
    if (this.#asking !== null) this.#fence(this.#asking, line, hello);
  }

  leave(line: Line): void {
    this.#waiting.delete(line);
  }

  /** Returns all channels that wait, in the order in which they came: the session is open. */
  take(): readonly (readonly [Line, PeerHello])[] {
    const waiting = [...this.#waiting];
    this.#waiting = new Map();
    this.#asking?.done();
    this.#asking = null;
    return waiting;
  }

  /**
   * Asks hosts for the log. Resolves when all have answered, or when time is up, with those that have. One ask at a
   * time.
   */
  ask({ epoch, hosts, withinMs, isForced = false }: LogAsk): Promise<LogAnswers> {
    this.#asking?.done();
    const { promise, resolve } = Promise.withResolvers<LogAnswers>();
    const answers = new Map<string, HostCopy | null>();
    const cancel = this.#ports.clock.after(Math.max(withinMs, 0), () => asking.done());
    const asking: Asking = {
      ...{ epoch, hosts: new Set(hosts), isForced, answers },
      done: (answer: LogAnswers = answers) => {
        cancel();
        if (this.#asking === asking) this.#asking = null;
        resolve(answer);
      },
    };
    this.#asking = asking;
    for (const host of hosts) if (this.#forged.has(host)) answers.set(host, null); // LB2
    for (const [line, hello] of this.#waiting) this.#fence(asking, line, hello);
    this.#look(asking);
    return promise;
  }

  /** Fences a host that is asked (LB1). */
  #fence(asking: Asking, line: Line, hello: PeerHello): void {
    const id = hello.identity?.id;
    if (id === undefined || !asking.hosts.has(id) || !this.#isKnown(hello)) return;
    if (hello.log !== null) return line.fence(asking.epoch);
    if (!asking.answers.has(id)) asking.answers.set(id, null); // it has lost what it held
    this.#look(asking);
  }

  /** Takes the log that a host gives. */
  gave(line: Line, { epoch, records }: Extract<ToHome, { readonly kind: "log" }>): void {
    const asking = this.#asking, id = this.#waiting.get(line)?.identity?.id;
    if (asking === null || id === undefined || epoch !== asking.epoch || !asking.hosts.has(id)) return;
    if (records === null) return asking.isForced ? undefined : asking.done("superseded");
    const known = asking.answers.get(id) ?? null;
    if (records.length === 0) asking.answers.set(id, known);
    else {
      const opened = this.#ports.openLog?.(id, records);
      if (opened === undefined) return;
      if (opened.ok) asking.answers.set(id, longer(known, opened.copy));
      else {
        asking.answers.set(id, known);
        if (known === null) this.#forged.add(id); // LB2
        line.refuse("log_forged", opened.message, "reset");
      }
    }
    this.#look(asking);
  }

  #look(asking: Asking): void {
    if ([...asking.hosts].every((host) => asking.answers.has(host))) asking.done();
  }
}

/** Returns the longer of two logs of one host (LB3). */
const longer = (known: HostCopy | null, one: HostCopy): HostCopy =>
  known === null || isFurther(one.log, known.log) ? one : known;

interface Asking {
  readonly epoch: number;
  readonly hosts: ReadonlySet<string>;
  readonly isForced: boolean;
  readonly answers: Map<string, HostCopy | null>;
  readonly done: (answer?: LogAnswers) => void;
}
