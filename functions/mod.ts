/**
 * The module `sojourn`, which an app imports. Declare tables, variables and handlers with {@link defineApp}; inside a
 * request, `env` (the handler's second argument, or the import) is bound to the client's session.
 *
 * Everything here is free of `node:` and `npm:` imports, because it becomes part of each app's bundle; the work is done
 * by the trusted side, of which the isolate's bootstrap takes env.ts, manifest.ts and context.ts.
 */
export type { KeyPart } from "../store/model/key.ts";
export type { SessionNamespace, SessionStub } from "./calls/namespace.ts";
export { env } from "./context.ts";
export { contextOf } from "./context_of.ts";
export {
  type AppContext,
  type AppDefinition,
  type BaseEnv,
  type Consistency,
  type Declared,
  defineApp,
  type EnvOf,
  type IndexField,
  type InstanceOf,
  type KeyField,
  type QueueOf,
  type Queues,
  type Resources,
  type ScheduledEvent,
  type Secrets,
  type SessionClass,
  table,
  type TableDefinition,
  type TableOf,
  type Tables,
  type Tier,
  type Vars,
} from "./define.ts";
export { type AppErrorCode, codeOf } from "./vocabulary/errors.ts";
export type {
  Kv,
  KvAtomic,
  KvCheck,
  KvCommitError,
  KvCommitResult,
  KvEnqueueOptions,
  KvEntry,
  KvEntryMaybe,
  KvKey,
  KvListIterator,
  KvListOptions,
  KvListSelector,
  KvMutation,
  KvNumber,
} from "./kv_interface.ts";
export { KvU64 } from "./values/kv_u64.ts";
export {
  type MessageToSend,
  type Queue,
  queue,
  type QueueBatch,
  type QueueDefinition,
  type QueueMessage,
  type QueueOptions,
  type SendOptions,
  type WebhookOptions,
} from "./queue.ts";
export type { InputOf, OutputOf, SchemaIssue, SchemaResult, StandardSchema } from "./schema.ts";
export {
  type CheckpointPolicy,
  type From,
  Session,
  type SessionCache,
  type WhenThrown,
} from "./class/session.ts";
export type { ReadLevel } from "./vocabulary/store_client.ts";
export {
  bytes,
  type CellType,
  grid,
  type GridRow,
  type Held,
  list,
  map,
  nested,
  type Put,
  type Tracked,
  type TrackedBytes,
  type TrackedGrid,
  type TrackedKey,
  type TrackedList,
  type TrackedMap,
  type TrackedNested,
  type TrackedValue,
  value,
} from "./tracked/mod.ts";
export type {
  Beginning,
  FieldValues,
  Table,
  TableAtomic,
  TableEntry,
  TableInterval,
  TableList,
  TableListBase,
  TableListOptions,
  TablePage,
  WriteCheck,
} from "./table_interface.ts";
