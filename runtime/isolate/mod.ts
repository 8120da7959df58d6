/** Isolates: app code runs in processes of its own that hold no permission, and is reached by frames. */
export type { AnswerBody, IsolateAnswer, ResponseAnswer } from "./answer.ts";
export type { CallRequest, IsolateApp, IsolateCall } from "./call.ts";
export { AppQueues, type QueueName, SiteQueues } from "./app_queues.ts";
export type { HostSocket, SocketSink } from "./host_socket.ts";
export { StatefulLoadError, StatefulPool, type StatefulPoolOptions } from "./stateful_pool.ts";
export { IsolateCgroups } from "./cgroups.ts";
export { DEFAULT_ISOLATE_LIMITS, type IsolateLimits } from "./limits.ts";
export type { IsolateEnd } from "./app_process.ts";
export {
  type BundleEvaluation,
  IsolatePool,
  type PoolObserver,
  type PoolOptions,
  type PoolStatus,
} from "./pool.ts";
