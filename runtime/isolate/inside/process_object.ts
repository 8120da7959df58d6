/** The `process` that an app finds: its variables, and what packages ask of it without wanting anything. */
import { refusingFunction } from "./absent.ts";

/** The object that stands for `process`; its `env` is replaced when the app's variables are known. */
export interface ProcessObject {
  env: Record<string, string>;
}

/** Makes the object. It says nothing of the machine, and has no events. */
export function processObject(): ProcessObject {
  const none = () => own;
  const own = {
    env: {} as Record<string, string>,
    argv: [],
    execArgv: [],
    platform: "linux",
    version: "",
    versions: {},
    cwd: () => "/",
    nextTick: (callback: (...args: unknown[]) => void, ...args: unknown[]): void =>
      queueMicrotask(() => callback(...args)),
    uptime: () => performance.now() / 1000,
    emitWarning: (warning: unknown) => console.warn(warning),
    on: none,
    once: none,
    off: none,
    removeListener: none,
    exit: refusingFunction("process.exit", "a function cannot end its isolate"),
  };
  return own;
}
