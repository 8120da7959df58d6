/**
 * Calls of a stateful session to others of its app.
 *
 * SC1  A call to a session that waits for this one fails with `cycle`: neither would ever answer.
 */
import { decodeAnswer, encodeCall, type SessionAnswer, type SessionCall } from "../../calls/call.ts";
import type { SessionCaller, SessionTarget } from "../../calls/stub.ts";
import { encodeCallToSession } from "./call_bytes.ts";
import { chainName } from "./event.ts";
import type { Program } from "./program.ts";

/**
 * Length of the longest chain of sessions that wait for one another: longer chains are cycles that change their ids.
 */
const CHAIN_MAX = 32;
const ID_BYTES = 12;

/** The caller behind `env.sessions` of one program. */
export class ChainedCaller implements SessionCaller {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  /** Part of the ids of sessions that are created here. The site's own name would be another at each home. */
  get site(): string {
    return `s${this.#program.replica}`;
  }

  draw(): string {
    const bytes = new Uint8Array(ID_BYTES);
    this.#program.crypto.fill(bytes);
    return bytes.toHex();
  }

  call(target: SessionTarget, call: SessionCall): Promise<SessionAnswer> {
    const program = this.#program;
    const self = chainName(program.className, program.id);
    const chain = [...program.handler?.chain ?? [], self];
    const name = chainName(target.class, target.id);
    if (chain.includes(name) || chain.length > CHAIN_MAX) { // SC1
      return Promise.resolve({
        kind: "error",
        code: "cycle",
        message: `${self} calls ${name}, which waits for it: ${[...chain, name].join(" → ")}`,
      });
    }
    return new Promise((resolve) => {
      program.call({
        kind: "session",
        bytes: encodeCallToSession({ target, chain, call: encodeCall(call) }),
        name: `a call of ${name}`,
        done: (bytes) => resolve(decodeAnswer(bytes)),
        failed: (code, message) => resolve({ kind: "error", code, message }),
      }, true);
    });
  }
}
