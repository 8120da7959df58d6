/**
 * Queues as a stateful session sees them. What a handler sends is part of its turn, as its writes to the store are.
 *
 * PQ1  A send resolves when its messages are part of the turn, and waits for nobody: they are stored once the log has
 *      the handler, before its answer leaves, or never.
 */
import type { QueueSender, SentMessage } from "../../vocabulary/queue_sender.ts";
import type { Program } from "./program.ts";

/** Queues of one program. */
export class ProgramQueues implements QueueSender {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  send(queue: string, messages: readonly SentMessage[]): Promise<void> {
    return new Promise((resolve) => {
      this.#program.send(queue, messages);
      resolve(); // PQ1
    });
  }
}
