/** Isolates: app code runs in processes of its own that hold no permission, and is reached by frames. */
export type { IsolateAnswer, IsolateApp, IsolateCall } from "./call.ts";
export type { HostSocket, SocketSink } from "./host_socket.ts";
export { DEFAULT_LIMITS, type IsolateLimits } from "./limits.ts";
export { IsolatePool, type PoolOptions } from "./pool.ts";
