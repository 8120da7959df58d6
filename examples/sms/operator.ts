/**
 * An operator, as far as a gateway sees one: it takes messages at a rate of its own, answers slowly or not at all, and
 * says later what has reached its phone. A stand-in: nothing outside this example is needed. It is a stateful session,
 * so that there is one of each, with books that outlive the site where it runs.
 *
 * OP1 It takes a message once, however often it is handed over: it is known by company and id.
 * OP2 It gives those that it takes the numbers 1, 2, 3 …, and sends one report of each: so its books say what the
 *     companies' tables are to have.
 * OP3 One that it has no room for is given a time, and is taken when it comes again then: a long line of messages
 *     costs each of them one attempt.
 * OP4 `posted` = waiting + taken + delivered + failed.
 */
import { type EnvOf, map, Session } from "sojourn";
import { contractOf, NOBODY } from "./operators.ts";
import type { Report, resources, TextMessage } from "./resources.ts";

/** The app's env. */
export type Env = EnvOf<typeof resources, { operator: Operator }>;

/** What an operator says of a message. */
export type Answer =
  | { readonly kind: "taken" }
  | { readonly kind: "later"; readonly delayMs: number; readonly why: string }
  | { readonly kind: "never"; readonly why: string };

/** What a person may change. */
export interface Mood {
  readonly isOut?: boolean | undefined;
  readonly slowMs?: number | undefined;
  readonly perSecond?: number | undefined;
}

/** One that is out of service asks for so much patience. */
export const OUT_MS = 2_500;
/** Reports leave, and the page is told, four times a second. */
export const TICK_MS = 250;
/** A phone is reached after 0.3 to 1 s, by the message's number. */
const phoneMs = (serial: number): number => 300 + (serial * 137) % 700;
/** Reports in one tick: what a queue takes at once. */
const REPORTS_MAX = 500;
/** Messages that are known after their delivery: they come again within seconds, or not at all. */
const REMEMBERED_MAX = 5_000;
/** Numbers that nobody has. */
const UNUSED = /000$/;

const keyOf = ({ company, id }: Pick<TextMessage, "company" | "id">): string => `${company} ${id}`;

/** See the file's header. */
export class Operator extends Session<Env> {
  isOut = false;
  slowMs = 0;
  perSecond = contractOf(this.id)?.perSecond ?? NOBODY.perSecond;
  /** Messages that were refused for now, each with the time at which it is taken; 0: it has none. */
  waiting = map<string, number>();
  /** Messages on their way to a phone. */
  taken = map<string, Report>();
  /** Messages that have been delivered, the oldest first. */
  remembered = map<string, true>();
  failed = map<string, true>();
  serial = 0;
  delivered = 0;
  /** The next message is taken no earlier. */
  freeMs = 0;
  isTicking = false;

  /** Takes messages, or says why not; its answers are `afterMs` on their way. */
  async submit(messages: readonly TextMessage[]): Promise<{ answers: Answer[]; afterMs: number }> {
    const answers: Answer[] = [];
    for (const message of messages) answers.push(await this.#take(message));
    this.#tick();
    return { answers, afterMs: this.slowMs };
  }

  /** Notes that a message is given up. @returns false where it has been taken after all. */
  async giveUp(message: TextMessage, why: string): Promise<boolean> {
    const key = keyOf(message);
    if (this.#has(key)) return false;
    this.waiting.delete(key);
    this.failed.set(key, true);
    const { company, id, to } = message;
    await this.env.tables.failures.put({ company, id, to, operator: this.id, why, failedMs: Date.now() });
    this.#tick();
    return true;
  }

  /** Changes how it behaves. */
  behave({ isOut = this.isOut, slowMs = this.slowMs, perSecond = this.perSecond }: Mood): void {
    Object.assign(this, { isOut, slowMs, perSecond });
    // What was promised holds no more.
    this.freeMs = 0;
    for (const key of [...this.waiting.keys()]) this.waiting.set(key, 0);
    this.#tick();
  }

  override async onTimer(): Promise<void> {
    this.isTicking = false;
    const now = Date.now();
    const due = [...this.taken].filter(([, { deliveredMs }]) => deliveredMs <= now).slice(0, REPORTS_MAX);
    for (const [key] of due) {
      this.taken.delete(key);
      this.remembered.set(key, true);
    }
    this.delivered += due.length;
    const [...known] = this.remembered.keys();
    for (const key of known.slice(0, Math.max(0, known.length - REMEMBERED_MAX))) this.remembered.delete(key);
    if (due.length > 0) {
      await this.env.queues.reports.sendBatch(due.map(([key, report]) => ({ id: key, body: { ...report } })));
    }
    await this.#tell();
    if (this.taken.size > 0) this.#tick();
  }

  async #take(message: TextMessage): Promise<Answer> {
    const key = keyOf(message), now = Date.now();
    if (this.#has(key)) return { kind: "taken" }; // OP1
    // It was given up, and comes again: somebody wants it so.
    if (this.failed.delete(key)) await this.env.tables.failures.delete([message.company, message.id]);
    const slotMs = this.waiting.get(key) ?? 0;
    this.waiting.set(key, slotMs);
    if (this.id === NOBODY.name) return { kind: "never", why: "no operator has this number" };
    if (UNUSED.test(message.to)) return { kind: "never", why: `${this.id}: nobody has this number` };
    if (this.isOut) return { kind: "later", delayMs: OUT_MS, why: `${this.id} is out of service` };
    const dueMs = slotMs === 0 ? this.#slot(now) : slotMs;
    if (dueMs > now) { // OP3
      this.waiting.set(key, dueMs);
      return { kind: "later", delayMs: Math.ceil(dueMs - now), why: `${this.id} is busy` };
    }
    this.waiting.delete(key);
    const { company, id, to } = message, serial = ++this.serial; // OP2
    const deliveredMs = now + phoneMs(serial);
    this.taken.set(key, { company, id, to, operator: this.id, serial, takenMs: now, deliveredMs });
    return { kind: "taken" };
  }

  #has(key: string): boolean {
    return this.taken.has(key) || this.remembered.has(key);
  }

  /** Returns when the next message may be taken, and has the one after it wait. */
  #slot(now: number): number {
    const dueMs = Math.max(now, this.freeMs);
    this.freeMs = dueMs + 1_000 / this.perSecond;
    return dueMs;
  }

  #tick(): void {
    if (this.isTicking) return;
    this.isTicking = true;
    this.setTimer("tick", TICK_MS);
  }

  async #tell(): Promise<void> {
    const { isOut, slowMs, perSecond, delivered } = this;
    const [waiting, taken, failed] = [this.waiting.size, this.taken.size, this.failed.size];
    const posted = waiting + taken + delivered + failed; // OP4
    await this.env.tables.operators.put({
      ...{ name: this.id, isOut, slowMs, perSecond },
      ...{ posted, waiting, taken, delivered, failed },
    });
  }
}
