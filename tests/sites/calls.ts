/**
 * Calls of clients' requests to stateful sessions, as a gateway makes them (runtime/gateway/stateful_calls.ts): with what
 * the request has seen, and back with what the stateful session had. A call has its client's id, so that it may be made
 * again at any site.
 */
import { decodeAnswer, encodeCall } from "../../functions/calls/call.ts";
import { encodeValue } from "../../functions/values/value.ts";
import { OnceCalls } from "../../runtime/gateway/once.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { StatefulCalls } from "../../runtime/gateway/stateful_calls.ts";
import type { AttachedSession } from "../../store/api/api.ts";
import type { CallOperation, RequestCalls } from "../sim/handler.ts";
import { APP, type Deployed } from "./deployed.ts";
import type { SiteProcess } from "./process.ts";

/** Under the ids that clients have drawn. */
class Once extends OnceCalls {
  id = "";

  constructor() {
    super({ app: APP, session: null, key: "", method: "", target: "", authorization: null });
  }

  override next(): string {
    return this.id;
  }
}

/** What the calls of one request need. */
export interface RequestCallsParts {
  readonly process: SiteProcess;
  readonly deployed: Deployed;
  readonly session: AttachedSession;
  /** A client's request was answered, or its handler threw. */
  readonly answered: (call: CallOperation, answer: Uint8Array) => void;
}

/** See the file's header. */
export class GatewayCalls implements RequestCalls {
  readonly #once = new Once();
  readonly #calls: StatefulCalls;
  readonly #answered: RequestCallsParts["answered"];

  constructor({ process, deployed, session, answered }: RequestCallsParts) {
    this.#answered = answered;
    this.#calls = new StatefulCalls({
      caller: {
        call: (request) => process.router.call(request),
        attach: (attachment) => process.attacher.attach(attachment),
      },
      ...{ version: deployed.at(process.site), session, once: this.#once },
      seen: () => {},
    });
  }

  async call(call: CallOperation): Promise<void> {
    this.#once.id = call.once;
    const bytes = encodeCall({ kind: "rpc", method: "run", args: encodeValue([call.what]) });
    const answer = await this.#calls.call({ class: call.class, id: call.id }, bytes);
    const { kind } = decodeAnswer(answer);
    if (kind !== "value" && kind !== "error") throw new Problem("internal", `an answer of kind ${kind}`);
    this.#answered(call, answer);
  }
}
