/** What lies beyond a session in a run: a store, and a server outside that does what it is asked once a key. */
import { decodeCall } from "../../../../functions/calls/call.ts";
import {
  type Call,
  decodeGet,
  decodeList,
  decodeOutside,
  decodeStoreCommit,
  type Effect,
  encodeCommitResult,
  encodeOutsideAnswer,
  encodePage,
  encodeRows,
} from "../../../../functions/sessions/turn/mod.ts";
import type { StoredRow } from "../../../../functions/vocabulary/store_client.ts";
import { versionstamp } from "../../../../store/model/row.ts";
import type { Draws } from "../../../sim/random.ts";

/** What the server outside was asked to do. */
export interface Posted {
  readonly key: string;
  readonly url: string;
}

/** An effect as it was applied: its number, and what it wrote under which version. */
export interface Applied {
  readonly effect: number;
  readonly content: string;
  readonly values: readonly string[];
}

interface Row {
  readonly value: Uint8Array | null;
  readonly versionstamp: string;
}

const utf8 = new TextEncoder();
const text = new TextDecoder();

export class Outside {
  readonly posted: Posted[] = [];
  readonly applied: Applied[] = [];
  readonly #draws: Draws;
  readonly #store = new Map<string, Row>();
  readonly #checked = new Map<number, Uint8Array>();
  readonly #served = new Map<string, string>();

  constructor(draws: Draws) {
    this.#draws = draws;
  }

  apply(effect: Effect): void {
    const values: string[] = [];
    const stamp = versionstamp(effect);
    for (const mutation of effect.mutations) {
      const value = mutation.kind === "delete" ? null : mutation.value;
      values.push(value === null ? "" : text.decode(value));
      const old = this.#store.get(mutation.key);
      if (old === undefined || old.versionstamp <= stamp) {
        this.#store.set(mutation.key, { value, versionstamp: stamp });
      }
    }
    const content = JSON.stringify([stamp, effect.mutations.map(({ key }) => key), values]);
    this.applied.push({ effect: effect.effect, content, values });
  }

  answer(call: Call, clock: number, replica: number): Uint8Array {
    switch (call.kind) {
      case "get":
        return encodeRows(decodeGet(call.bytes).keys.map((key) => this.#row(key)));
      case "list": {
        const { start, end } = decodeList(call.bytes);
        const keys = [...this.#store.keys()].filter((key) => key >= start && key < end).sort();
        return encodePage({
          more: false,
          rows: keys.map((key) => this.#row(key)).filter((row) => row !== null),
        });
      }
      case "commit":
        return this.#checkedCommit(call, { clock, replica });
      case "fetch":
        return this.#serve(call);
      case "session":
        throw new Error("robots call nobody");
    }
  }

  #row(key: string): StoredRow | null {
    const row = this.#store.get(key);
    if (row === undefined || row.value === null) return null;
    return { key, value: row.value, versionstamp: row.versionstamp } as never;
  }

  /** Done once under its number, like a site does. */
  #checkedCommit(call: Call, version: { readonly clock: number; readonly replica: number }): Uint8Array {
    const before = this.#checked.get(call.effect ?? -1);
    if (before !== undefined) return before;
    const { checks, mutations } = decodeStoreCommit(call.bytes);
    const holds = checks.every(({ key, versionstamp }) =>
      (this.#row(key)?.["versionstamp"] ?? null) === versionstamp
    );
    const stamp = versionstamp(version);
    if (holds) {
      for (const mutation of mutations) {
        if (mutation.kind === "set") {
          this.#store.set(mutation.key, { value: mutation.value, versionstamp: stamp });
        }
      }
    }
    const result = encodeCommitResult(holds ? { ok: true, versionstamp: stamp } : { ok: false });
    this.#checked.set(call.effect ?? -1, result);
    return result;
  }

  #serve(call: Call): Uint8Array {
    const request = decodeCall(decodeOutside(call.bytes).call);
    if (request.kind !== "fetch") throw new Error("an outside request is a request");
    const key = `session/${call.effect}`;
    let said = request.method === "POST" ? this.#served.get(key) : undefined;
    if (request.method === "POST") this.posted.push({ key, url: request.url });
    said ??= `${this.#draws.word() % 1000}`;
    if (request.method === "POST") this.#served.set(key, said);
    return encodeOutsideAnswer({ url: request.url, answer: utf8.encode(said) });
  }
}
