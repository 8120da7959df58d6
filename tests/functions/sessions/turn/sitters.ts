/**
 * Clients of a run that come, say what is in their scripts, and go: each keeps what it said until the log has it, as a
 * host does (functions/sessions/attach), and says it again to the next isolate from where that stands.
 */
import type { Commit, HandledEvent, OpenedProgram } from "../../../../functions/sessions/turn/mod.ts";
import type { Step } from "./robot.ts";

/** A client. Names that begin with u are not always let in, those with c don't always go in peace. */
export interface Sitter {
  readonly id: string;
  /** What it has to say, in its order; up to `spoken` it wants to have said it. */
  readonly scripts: readonly (readonly Step[])[];
  spoken: number;
  stage: "away" | "coming" | "here" | "refused" | "gone";
  isLeaving: boolean;
  /** Handed to the isolate that lives. */
  handed: number;
  isLeaveHanded: boolean;
}

export const isOfSitter = (
  event: HandledEvent | undefined,
): event is Extract<HandledEvent, { kind: "attach" | "message" | "detach" }> =>
  event?.kind === "message" || event?.kind === "detach" ||
  (event?.kind === "attach" && event.peer.id !== "p");

/** See the file's header. */
export class Sitters {
  readonly #port: { deliver(event: HandledEvent): void; isOpen(): boolean };
  readonly #all = new Map<string, Sitter>();
  readonly wrong: string[] = [];

  constructor(port: { deliver(event: HandledEvent): void; isOpen(): boolean }) {
    this.#port = port;
  }

  get all(): readonly Sitter[] {
    return [...this.#all.values()];
  }

  come(id: string, scripts: readonly (readonly Step[])[]): void {
    const sitter: Sitter = {
      ...{ id, scripts, spoken: 0, stage: "coming", isLeaving: false, handed: 0, isLeaveHanded: false },
    };
    this.#all.set(id, sitter);
    if (this.#port.isOpen()) this.#attach(id);
  }

  /** It says the next. */
  speak(id: string): void {
    const sitter = this.#all.get(id);
    if (sitter === undefined || sitter.isLeaving || sitter.spoken >= sitter.scripts.length) return;
    sitter.spoken++;
    this.#hand(sitter);
  }

  leave(id: string): void {
    const sitter = this.#all.get(id);
    if (sitter === undefined) return;
    sitter.isLeaving = true;
    this.#hand(sitter);
  }

  /** An isolate says what the log has. `killed` was rejected in it already. */
  opened({ peers }: OpenedProgram, killed: HandledEvent | null): void {
    for (const sitter of this.#all.values()) {
      const { id, stage } = sitter;
      sitter.isLeaveHanded = false;
      if (stage === "refused" || stage === "gone") continue;
      const known = peers.find((peer) => peer.id === id);
      if (known === undefined) {
        if (stage === "here" && sitter.isLeaving) sitter.stage = "gone";
        else if (stage === "here") this.wrong.push(`OC8: ${id} is attached no more`);
        else if (!(killed?.kind === "attach" && killed.peer.id === id)) this.#attach(id);
        continue;
      }
      sitter.stage = "here";
      // What was rejected in place of its message is that one, whether the log had it or not.
      const isKilled = killed?.kind === "message" && killed.peer === id;
      sitter.handed = isKilled ? Math.max(known.received, this.#numberOf(killed)) : known.received;
      if (killed?.kind === "detach" && killed.peer === id) sitter.isLeaveHanded = true;
      this.#hand(sitter);
    }
  }

  /** A commit is kept; these events are done with it. */
  kept({ rejected }: Commit, done: readonly HandledEvent[]): void {
    for (const event of done) {
      const of = event.kind === "reject" ? event.of : event;
      if (of?.kind === "detach") this.#become(of.peer, "gone");
      if (of?.kind !== "attach") continue;
      const isRefused = rejected !== null && rejected.attempt === 0 && rejected.subject?.kind === "attach" &&
        rejected.subject.id === of.peer.id;
      this.#become(of.peer.id, isRefused ? "refused" : "here");
    }
  }

  #become(id: string, stage: Sitter["stage"]): void {
    const sitter = this.#all.get(id);
    if (sitter === undefined || sitter.stage === "gone") return;
    if (stage === "here" && sitter.stage === "here") return;
    sitter.stage = stage;
    sitter.handed = 0;
    this.#hand(sitter);
  }

  #attach(id: string): void {
    this.#port.deliver({ kind: "attach", peer: { kind: "client", id } });
  }

  #hand(sitter: Sitter): void {
    if (!this.#port.isOpen() || sitter.stage !== "here") return;
    const { id } = sitter;
    while (sitter.handed < sitter.spoken) {
      const k = ++sitter.handed;
      const message = JSON.stringify({ k, script: sitter.scripts[k - 1] ?? [] });
      this.#port.deliver({ kind: "message", peer: id, message });
    }
    if (!sitter.isLeaving || sitter.isLeaveHanded) return;
    sitter.isLeaveHanded = true;
    this.#port.deliver({ kind: "detach", peer: id });
  }

  #numberOf({ message }: Extract<HandledEvent, { kind: "message" }>): number {
    return (JSON.parse(String(message)) as { k: number }).k;
  }
}
