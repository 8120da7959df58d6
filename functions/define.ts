/**
 * The declarations of an app: `defineApp`, `table`, and the types that follow from a declaration (`EnvOf`). Nothing
 * here runs but the functions that return their argument; the bootstrap reads the result (env.ts, manifest.ts).
 */
import type { KeyPart } from "../store/model/key.ts";
import type { SessionNamespace } from "./calls/namespace.ts";
import type { Kv } from "./kv_interface.ts";
import type { Queue, QueueBatch, QueueDefinition } from "./queue.ts";
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";
import type { Table } from "./table_interface.ts";

/** Consistency of a table's reads and writes; see "Consistency" in docs/app-api.md. */
export type Consistency = "eventual" | "session" | "causal" | "primary";

/** Fields of a row that can be parts of its key. */
export type KeyField<Row> = { [P in keyof Row]-?: Row[P] extends KeyPart ? P : never }[keyof Row] & string;
/** Fields that an index can cover; a row in which one is null or absent is not in that index. */
export type IndexField<Row> =
  & { [P in keyof Row]-?: NonNullable<Row[P]> extends KeyPart ? P : never }[keyof Row]
  & string;

/** Declared table. */
export interface TableDefinition<
  S extends StandardSchema = StandardSchema,
  K extends readonly string[] = readonly string[],
  I extends Readonly<Record<string, readonly string[]>> = Readonly<Record<string, readonly string[]>>,
> {
  /** Mark of a table's definition. */
  readonly kind: "table";
  /** Schema that a row must match. */
  readonly schema: S;
  /** Fields that make the key, in order. */
  readonly key: K;
  /** Fields of each index, in order. */
  readonly indexes: I;
  /** Consistency of its reads and writes. */
  readonly consistency: Consistency;
  /** Place of the table; `"root"`: it has no replica below the root. */
  readonly at?: "root";
  /** Returns a stored row of an older version in a form that matches the schema. */
  readonly upgrade?: (old: unknown) => unknown;
}

/**
 * Declares a table for `defineApp({ tables })`.
 *
 * ```ts
 * import { table } from "sojourn";
 * import * as z from "zod";
 * const orders = table({
 *   schema: z.object({ by: z.string(), id: z.string(), at: z.number() }),
 *   key: ["by", "id"],
 *   indexes: { newest: ["by", "at"] },
 * });
 * ```
 */
export function table<
  S extends StandardSchema,
  const K extends readonly [KeyField<OutputOf<S>>, ...KeyField<OutputOf<S>>[]],
  const I extends Readonly<Record<string, readonly [IndexField<OutputOf<S>>, ...IndexField<OutputOf<S>>[]]>> =
    Readonly<Record<never, never>>,
>(options: {
  /** Schema of a row: any Standard Schema; it must accept its own output (schema.ts, C1). */
  readonly schema: S;
  /** Fields whose values make the key, in order. */
  readonly key: K;
  /** Further orders to list by: fields, in order; the key's fields follow them. */
  readonly indexes?: I;
  /** Consistency of its reads and writes; "session" where it is left out. */
  readonly consistency?: Consistency;
  /** Place of the table; `"root"`: it has no replica below the root. */
  readonly at?: "root";
  /** Makes a row of an older version of the app match the schema; it may not change key or indexed fields. */
  readonly upgrade?: (old: unknown) => InputOf<S>;
}): TableDefinition<S, K, I> {
  const { schema, key, indexes, consistency = "session", at, upgrade } = options;
  return {
    kind: "table",
    schema,
    key,
    indexes: indexes ?? {} as I,
    consistency,
    ...at === undefined ? {} : { at },
    ...upgrade === undefined ? {} : { upgrade },
  };
}

/** Tables by name. */
export type Tables = Readonly<Record<string, TableDefinition>>;
/** Queues by name. */
export type Queues = Readonly<Record<string, QueueDefinition>>;
/** Secrets by name; `at: "root"`: no copy below the root. */
export type Secrets = Readonly<Record<string, { readonly at?: "root" }>>;
/** Variables by name, with their values where the operator sets none. */
export type Vars = Readonly<Record<string, string>>;

/** Resources that an app declares beside its handlers. */
export interface Resources {
  /** Tables by name: rows with a schema and a key. */
  readonly tables?: Tables;
  /** Queues by name: messages to be worked off later. */
  readonly queues?: Queues;
  /** Secrets by name: values that only the operator knows. */
  readonly secrets?: Secrets;
  /** Variables by name: texts that the operator may set. */
  readonly vars?: Vars;
}

/** Table that a definition makes. */
export type TableOf<T> = T extends TableDefinition<infer S, infer K, infer I> ? Table<S, K, I> : never;
/** Queue that a definition makes. */
export type QueueOf<Q> = Q extends QueueDefinition<infer S> ? Queue<S> : never;
/** Declaration under a name; unknown where there is none. */
export type Declared<R, Name extends PropertyKey> = Name extends keyof R ? NonNullable<R[Name]> : unknown;

/** Env that every app has, and that `deno serve` handlers expect as their second argument. */
export interface BaseEnv {
  /** Key space of the app, bound to the running request's session. */
  readonly kv: Kv;
  /** Address of the client as its first site saw it. */
  readonly remoteAddr: { readonly transport: "tcp"; readonly hostname: string; readonly port: number };
  /** Promise that resolves when the response has been sent. */
  readonly completed: Promise<void>;
  /** Static files of the app, as its own routes may answer with them; 404 where none has the path. */
  readonly ASSETS: { fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> };
}

/** Env of an app that declared `R` and the stateful sessions `S` (class instance types by name). */
export interface EnvOf<R = Resources, S = unknown> extends BaseEnv {
  /** Tables that the app declares. */
  readonly tables: { readonly [T in keyof Declared<R, "tables">]: TableOf<Declared<R, "tables">[T]> };
  /** Queues that the app declares. */
  readonly queues: { readonly [Q in keyof Declared<R, "queues">]: QueueOf<Declared<R, "queues">[Q]> };
  /** Values of the secrets that the app declares; reading one without a value throws an AppError `not_available`. */
  readonly secrets: { readonly [N in keyof Declared<R, "secrets">]: string };
  /** Variables: the operator's value, else the declared one. */
  readonly vars: { readonly [N in keyof Declared<R, "vars">]: string } & Readonly<Record<string, string>>;
  /** Stateful sessions by class. */
  readonly sessions: { readonly [N in keyof S]: SessionNamespace<S[N]> };
}

/** Context of a request: the third argument of `fetch`, and Hono's `executionCtx`. */
export interface AppContext {
  /** Keeps the request's work going after its response, up to a limit. */
  waitUntil(promise: Promise<unknown>): void;
  /** Does nothing here; Workers code calls it. */
  passThroughOnException(): void;
  /** Properties of the context: none here; Hono's types need them. */
  readonly props: Readonly<Record<string, unknown>>;
  /** Session of the client; its id differs per app. */
  readonly session: { readonly id: string };
  /** Id of the site where this runs. */
  readonly site: string;
  /** Version of the app: 64 hexadecimal digits. */
  readonly version: string;
}

/** Run of a cron job that is due. */
export interface ScheduledEvent {
  /** Kind of the event, as Workers events have it. */
  readonly type: "scheduled";
  /** Name of the job in `cron`. */
  readonly name: string;
  /** Cron expression of the job: its five fields. */
  readonly cron: string;
  /** Time at which the job was due, in milliseconds since 1970. */
  readonly scheduledTime: number;
  /** Has a failure of this run not tried again. */
  noRetry(): void;
}

/** Tier of the tree of sites. */
export type Tier = "root" | "core" | "edge";

/** Class of stateful sessions, whatever its constructor takes. */
export type SessionClass = abstract new (...args: never[]) => object;
/** Type of the objects that a class makes. */
export type InstanceOf<C> = C extends abstract new (...args: never[]) => infer I ? I : never;

/** Definition of an app: the members of a module's default export. */
export interface AppDefinition<
  T extends Tables = Tables,
  Q extends Queues = Queues,
  N extends Secrets = Secrets,
  V extends Vars = Vars,
  S extends Readonly<Record<string, SessionClass>> = Readonly<Record<string, SessionClass>>,
  E = EnvOf<{ tables: T; queues: Q; secrets: N; vars: V }, { [C in keyof S]: InstanceOf<S[C]> }>,
> {
  /**
   * Name of the app, `[a-z][a-z0-9-]{0,39}`; the command line's `--app` comes before it, and the folder's name is used
   * where both are missing.
   */
  readonly name?: string;
  /** Tables by name: rows with a schema and a key. */
  readonly tables?: T;
  /** Queues by name: messages to be worked off later. */
  readonly queues?: Q;
  /** Secrets by name: values that only the operator knows. */
  readonly secrets?: N;
  /** Variables by name: texts that the operator may set. */
  readonly vars?: V;
  /** Classes of stateful sessions, by name. */
  readonly sessions?: S;
  /** Tier at which requests run, by URLPattern path. */
  readonly routes?: Readonly<Record<string, { readonly at: Tier }>>;
  /** Cron expressions (five fields, UTC) by name. */
  readonly cron?: Readonly<Record<string, string>>;
  /** Hosts that `fetch` may reach, if the operator permits them too: `host`, `*.host`, each with `:port` or not. */
  readonly fetchHosts?: readonly string[];
  /** Folder of static files, relative to the module. */
  readonly assets?: string;
  /** Answers a request. */
  readonly fetch?: (request: Request, env: E, ctx: AppContext) => Response | Promise<Response>;
  /** Runs when a cron job is due. */
  readonly scheduled?: (event: ScheduledEvent, env: E, ctx: AppContext) => unknown;
  /** Takes messages of the queues. */
  readonly queue?: (batch: QueueBatch, env: E, ctx: AppContext) => unknown;
}

/**
 * Types an app and returns it unchanged.
 *
 * ```ts
 * import { defineApp } from "sojourn";
 * export default defineApp({
 *   vars: { GREETING: "hello" },
 *   fetch: (_request, env) => new Response(env.vars.GREETING),
 * });
 * ```
 */
export function defineApp<
  const T extends Tables = Readonly<Record<never, never>>,
  const Q extends Queues = Readonly<Record<never, never>>,
  const N extends Secrets = Readonly<Record<never, never>>,
  const V extends Vars = Readonly<Record<never, never>>,
  const S extends Readonly<Record<string, SessionClass>> = Readonly<Record<never, never>>,
>(app: AppDefinition<T, Q, N, V, S>): AppDefinition<T, Q, N, V, S> {
  return app;
}
