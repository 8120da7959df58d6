/**
 * Store calls of a recorded request as spans, by the semantic conventions of databases. A request that is not
 * recorded uses its store as it is.
 *
 * SSP1  A span names only the table of a key: the rest of the key, like every value, is the app's data.
 */
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import { type Key, unpackKey } from "../../store/model/key.ts";
import { failureCode, type Span, SPAN_KIND } from "../telemetry/mod.ts";

/** Returns a store whose calls are spans below `call`; the store itself where nothing is recorded. */
export const storeTraced = (store: StoreClient, call: Span | undefined): StoreClient =>
  call === undefined ? store : new TracedStore(store, call);

class TracedStore implements StoreClient {
  readonly #store: StoreClient;
  readonly #call: Span;

  constructor(store: StoreClient, call: Span) {
    this.#store = store;
    this.#call = call;
  }

  get(...args: Parameters<StoreClient["get"]>): ReturnType<StoreClient["get"]> {
    const [keys] = args;
    const step = this.#begin("get", keys[0]);
    if (keys.length > 1) step?.set("db.operation.batch.size", keys.length);
    return this.#run(step, this.#store.get(...args), (rows) => rows.filter((row) => row !== null).length);
  }

  list(...args: Parameters<StoreClient["list"]>): ReturnType<StoreClient["list"]> {
    const step = this.#begin("list", args[0].start);
    return this.#run(step, this.#store.list(...args), (page) => page.rows.length);
  }

  commit(...args: Parameters<StoreClient["commit"]>): ReturnType<StoreClient["commit"]> {
    const [checks, mutations] = args;
    const step = this.#begin("commit", mutations[0]?.key ?? checks[0]?.key);
    if (mutations.length > 1) step?.set("db.operation.batch.size", mutations.length);
    return this.#run(step, this.#store.commit(...args), null);
  }

  /** Watches without a span: a watch lasts as long as its reader, and is no step of a request. */
  watch(...args: Parameters<StoreClient["watch"]>): ReturnType<StoreClient["watch"]> {
    return this.#store.watch(...args);
  }

  #begin(operation: string, key: Key | undefined): Span | undefined {
    const collection = key === undefined ? "" : collectionOf(key);
    const step = this.#call.child(
      collection === "" ? operation : `${operation} ${collection}`,
      SPAN_KIND.client,
    );
    step?.set("db.system.name", "sojourn").set("db.operation.name", operation);
    if (collection !== "") step?.set("db.collection.name", collection);
    return step;
  }

  #run<T>(step: Span | undefined, work: Promise<T>, rowsOf: ((result: T) => number) | null): Promise<T> {
    if (step === undefined) return work;
    const told = rowsOf === null ? work : work.then((result) => {
      step.set("db.response.returned_rows", rowsOf(result));
      return result;
    });
    return step.around(told, failureCode);
  }
}

/** Returns the table that a key belongs to, or "kv" (SSP1). */
function collectionOf(key: Key): string {
  try {
    const parts = unpackKey(leadOf(key));
    const [space, name] = parts[0] === "root" ? parts.slice(1) : parts;
    if (space === "kv") return "kv";
    return (space === "t" || space === "i") && typeof name === "string" ? name : "";
  } catch {
    return ""; // the end of a range need not be a key
  }
}

/** Returns the leading text parts of a packed key: at most "root", a space, a table's name. */
// deno-lint-ignore no-control-regex -- bytes of the encoding
const leadOf = (key: Key): Key => (/^(?:\x02[^\x00]*\x00){1,3}/.exec(key)?.[0] ?? "") as Key;
