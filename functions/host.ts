/**
 * What the trusted bootstrap of an isolate, and the site, take from this folder; never part of an app's bundle.
 */
export { ambientKv } from "./context.ts";
export type { AppContext, BaseEnv, ScheduledEvent } from "./define.ts";
export { buildEnv, type EnvServices } from "./env.ts";
export { AppError, codeOf } from "./errors.ts";
export { KvU64 } from "./kv_u64.ts";
export { type DeployIssue, type Manifest, parseManifest, readManifest } from "./manifest.ts";
export { currentEnv, installContext, runWithEnv } from "./request_context.ts";
export { decodeValue, encodeValue } from "./value.ts";
