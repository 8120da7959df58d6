/**
 * The broker: what the app's queue handler does with a message. It may be given one twice, at two sites, at once: what
 * it asks of operators and tables is done once.
 */
import type { QueueMessage, SessionStub } from "sojourn";
import type { Env, Operator } from "./operator.ts";
import { contractFor } from "./operators.ts";
import { ATTEMPTS_MAX, resources, type TextMessage, textMessage } from "./resources.ts";

/** Message as the handler was given it, and what it says. */
interface Handed {
  readonly message: QueueMessage;
  readonly text: TextMessage;
}

/** Hands messages over to the operators of their numbers: those of each together, and of all at once. */
export async function handOver(env: Env, messages: readonly QueueMessage[]): Promise<void> {
  const handed = messages.flatMap((message): Handed[] => {
    // What programs outside send is checked by nobody before.
    const read = textMessage.safeParse(message.body);
    return read.success ? [{ message, text: { ...read.data, id: message.id } }] : [];
  });
  const done = await Promise.allSettled([
    ...Map.groupBy(handed, ({ text }) => contractFor(text.to).name)
      .entries().map(([name, of]) => handOverTo(env.sessions.operator.get(name), of)),
    handed.length === messages.length ? undefined : Promise.reject(new Error("it is no text message")),
  ]);
  // Those of which nothing was said come again, or are dead letters with this error.
  for (const one of done) if (one.status === "rejected") throw one.reason;
}

async function handOverTo(operator: SessionStub<Operator>, handed: readonly Handed[]): Promise<void> {
  const { answers, afterMs } = await operator.submit(handed.map(({ text }) => text));
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  let problem: string | null = null;
  for (const [place, { message, text }] of handed.entries()) {
    const answer = answers[place];
    if (answer === undefined) throw new Error("an operator answers to each");
    if (answer.kind === "taken") message.ack();
    // One that no attempt helps uses up those that are left.
    else if (message.attempts < ATTEMPTS_MAX) {
      message.retry({ delayMs: answer.kind === "later" ? answer.delayMs : 0 });
    } else if (await operator.giveUp(text, answer.why)) problem = answer.why;
    else message.ack();
  }
  if (problem !== null) throw new Error(problem);
}

/** Writes down what operators say of messages. */
export async function writeDown(env: Env, messages: readonly QueueMessage[]): Promise<void> {
  const { reports } = env.tables, rows = reports.atomic();
  const read = messages.filter(({ body }) => {
    const report = resources.tables.reports.schema.safeParse(body);
    if (report.success) rows.put(report.data);
    return report.success;
  });
  await rows.commit();
  for (const message of read) message.ack();
  if (read.length < messages.length) throw new Error("it is no delivery report");
}
