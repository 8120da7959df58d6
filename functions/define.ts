/**
 * What an app declares: `defineApp`, `table`, and the types that follow from a declaration (`EnvOf`). Nothing here
 * runs but the functions that return their argument; the bootstrap reads the result (env.ts, manifest.ts).
 */
import type { KeyPart } from "../store/model/key.ts";
import type { SessionNamespace } from "./calls/namespace.ts";
import type { Kv } from "./kv_interface.ts";
import type { Queue, QueueBatch, QueueDefinition } from "./queue.ts";
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";
import type { Table } from "./table_interface.ts";

/** How reads and writes of a table behave; see "Consistency" in docs/app-api.md. */
export type Consistency = "eventual" | "session" | "causal" | "primary";

/** Fields of a row that can be parts of its key. */
export type KeyField<Row> = { [P in keyof Row]-?: Row[P] extends KeyPart ? P : never }[keyof Row] & string;
/** Fields that an index can cover; a row in which one is null or absent is not in that index. */
export type IndexField<Row> =
  & { [P in keyof Row]-?: NonNullable<Row[P]> extends KeyPart ? P : never }[keyof Row]
  & string;

/** A declared table. */
export interface TableDefinition<
  S extends StandardSchema = StandardSchema,
  K extends readonly string[] = readonly string[],
  I extends Readonly<Record<string, readonly string[]>> = Readonly<Record<string, readonly string[]>>,
> {
  /** Marks what it is. */
  readonly kind: "table";
  /** What a row must match. */
  readonly schema: S;
  /** Fields that make the key, in order. */
  readonly key: K;
  /** Fields of each index, in order. */
  readonly indexes: I;
  /** How its reads and writes behave. */
  readonly consistency: Consistency;
  /** No replica below the root. */
  readonly at?: "root";
  /** Makes a stored row of an older version match the schema. */
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
  /** Any Standard Schema; it must accept its own output (schema.ts, C1). */
  readonly schema: S;
  /** Fields whose values make the key, in order. */
  readonly key: K;
  /** Further orders to list by: fields, in order; the key follows them. */
  readonly indexes?: I;
  /** "session" where it is left out. */
  readonly consistency?: Consistency;
  /** "root": no replica below the root. */
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

/** What an app declares beside its handlers. */
export interface Resources {
  /** Rows with a schema and a key. */
  readonly tables?: Tables;
  /** Messages to be worked off later. */
  readonly queues?: Queues;
  /** Values that only the operator knows. */
  readonly secrets?: Secrets;
  /** Text that the operator may set. */
  readonly vars?: Vars;
}

/** The table that a definition makes. */
export type TableOf<T> = T extends TableDefinition<infer S, infer K, infer I> ? Table<S, K, I> : never;
/** The queue that a definition makes. */
export type QueueOf<Q> = Q extends QueueDefinition<infer S> ? Queue<S> : never;
/** What was declared under a name, where something was. */
export type Declared<R, Name extends PropertyKey> = Name extends keyof R ? NonNullable<R[Name]> : unknown;

/** What every app's env has, and what `deno serve` handlers expect of their second argument. */
export interface BaseEnv {
  /** The app's own key space, bound to the running request's session. */
  readonly kv: Kv;
  /** The client's address as its first site saw it. */
  readonly remoteAddr: { readonly transport: "tcp"; readonly hostname: string; readonly port: number };
  /** Resolves when the response has been sent. */
  readonly completed: Promise<void>;
  /** The app's static files, as its own routes may answer with them; 404 where none has the path. */
  readonly ASSETS: { fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> };
}

/** The env of an app that declared `R` and the stateful sessions `S` (class instance types by name). */
export interface EnvOf<R = Resources, S = unknown> extends BaseEnv {
  /** The declared tables. */
  readonly tables: { readonly [T in keyof Declared<R, "tables">]: TableOf<Declared<R, "tables">[T]> };
  /** The declared queues. */
  readonly queues: { readonly [Q in keyof Declared<R, "queues">]: QueueOf<Declared<R, "queues">[Q]> };
  /** The declared secrets' values. */
  readonly secrets: { readonly [N in keyof Declared<R, "secrets">]: string };
  /** Variables: the operator's value, else the declared one. */
  readonly vars: { readonly [N in keyof Declared<R, "vars">]: string } & Readonly<Record<string, string>>;
  /** Stateful sessions by class. */
  readonly sessions: { readonly [N in keyof S]: SessionNamespace<S[N]> };
}

/** The third argument of `fetch`, and Hono's `executionCtx`. */
export interface AppContext {
  /** Keeps the request's work going after its response, up to a limit. */
  waitUntil(promise: Promise<unknown>): void;
  /** Does nothing here; Workers code calls it. */
  passThroughOnException(): void;
  /** Empty here; Hono's types need it. */
  readonly props: Readonly<Record<string, unknown>>;
  /** The client's identity; its id differs per app. */
  readonly session: { readonly id: string };
  /** The site where this runs. */
  readonly site: string;
  /** The app's version: 64 hexadecimal digits. */
  readonly version: string;
}

/** A cron job that is due. */
export interface ScheduledEvent {
  /** As a Workers event says what it is. */
  readonly type: "scheduled";
  /** Its name in `cron`. */
  readonly name: string;
  /** Its five fields. */
  readonly cron: string;
  /** Milliseconds since 1970 at which it was due. */
  readonly scheduledTime: number;
  /** Says that a failure of this run is not to be tried again. */
  noRetry(): void;
}

/** A tier of the tree of sites. */
export type Tier = "root" | "core" | "edge";

/** A class of stateful sessions, whatever its constructor takes. */
export type SessionClass = abstract new (...args: never[]) => object;
/** What a class makes. */
export type InstanceOf<C> = C extends abstract new (...args: never[]) => infer I ? I : never;

/** What a module's default export may say. */
export interface AppDefinition<
  T extends Tables = Tables,
  Q extends Queues = Queues,
  N extends Secrets = Secrets,
  V extends Vars = Vars,
  S extends Readonly<Record<string, SessionClass>> = Readonly<Record<string, SessionClass>>,
  E = EnvOf<{ tables: T; queues: Q; secrets: N; vars: V }, { [C in keyof S]: InstanceOf<S[C]> }>,
> {
  /** `[a-z][a-z0-9-]{0,39}`; the command line's `--app` comes first, the folder's name last. */
  readonly name?: string;
  /** Rows with a schema and a key. */
  readonly tables?: T;
  /** Messages to be worked off later. */
  readonly queues?: Q;
  /** Values that only the operator knows. */
  readonly secrets?: N;
  /** Text that the operator may set. */
  readonly vars?: V;
  /** Classes of stateful sessions. */
  readonly sessions?: S;
  /** Where requests run, by URLPattern path. */
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
