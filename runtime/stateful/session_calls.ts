/** Who makes the calls of one stateful session at its home (made_calls.ts): in its name, and with what it has seen. */
import { createHash } from "node:crypto";
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import type { CallToSession } from "../../functions/sessions/turn/mod.ts";
import type { KeptReply } from "../gateway/stateful_calls.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { HostServices } from "./host_services.ts";
import type { CallMaker, HttpOrigin } from "./made_calls.ts";
import type { OwnStore } from "./own_store.ts";

/** Whose they are. */
export interface Caller {
  readonly name: StatefulName;
  readonly seed: Uint8Array;
  readonly store: OwnStore;
  readonly egress: EgressRules;
  readonly origin: HttpOrigin | null;
}

/** See the file's header. */
export class SessionCalls implements CallMaker {
  readonly store: OwnStore;
  readonly egress: EgressRules;
  readonly origin: HttpOrigin | null;
  readonly #name: StatefulName;
  readonly #seed: Uint8Array;
  readonly #services: Pick<HostServices, "call">;

  constructor(services: Pick<HostServices, "call">, { name, seed, store, egress, origin }: Caller) {
    this.#services = services;
    this.#name = name;
    this.#seed = seed;
    this.store = store;
    this.egress = egress;
    this.origin = origin;
  }

  /** Two UUIDs are longer; what it is made of is drawn once for a session, and numbered by it. */
  keyOf(effect: number): string {
    return createHash("sha256").update(this.#seed).update(`${effect}`).digest("hex");
  }

  async callSession(call: CallToSession, request: string, signal: AbortSignal): Promise<KeptReply> {
    const seen = await this.store.token();
    const reply = await this.#services.call(this.#name, call, request, seen, signal);
    if (reply.token !== null) await this.store.see(reply.token);
    return reply;
  }
}
