/** Events, abort signals, timers, message channels. */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Probes, rejection, thrown } from "./probe.ts";

const tick = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const events: Probes = {
  "EventTarget": () => {
    const seen: unknown[] = [];
    const target = new EventTarget();
    const listener = (event: Event) => void seen.push(event.type, (event as CustomEvent).detail);
    target.addEventListener("a", listener, { once: true });
    target.dispatchEvent(new CustomEvent("a", { detail: 1 }));
    target.dispatchEvent(new CustomEvent("a", { detail: 2 }));
    const event = new Event("b", { cancelable: true });
    target.addEventListener("b", { handleEvent: (e) => e.preventDefault() });
    return [seen, target.dispatchEvent(event), event.defaultPrevented];
  },
  "EventTarget with a signal": () => {
    let count = 0;
    const controller = new AbortController();
    const target = new EventTarget();
    target.addEventListener("a", () => count++, { signal: controller.signal });
    target.dispatchEvent(new Event("a"));
    controller.abort();
    target.dispatchEvent(new Event("a"));
    return count;
  },
  "event classes": () => [
    new MessageEvent("m", { data: 1, origin: "o" }).data,
    new CloseEvent("c", { code: 1000, reason: "r", wasClean: true }).code,
    new ErrorEvent("e", { message: "m", error: 1 }).message,
    new ProgressEvent("p", { loaded: 1, total: 2, lengthComputable: true }).loaded,
    new PromiseRejectionEvent("r", { promise: Promise.resolve(), reason: 3 }).reason,
  ],
  "AbortController": () => {
    const controller = new AbortController();
    const seen: unknown[] = [];
    controller.signal.onabort = () => seen.push("on");
    controller.signal.addEventListener("abort", () => seen.push("listener"));
    controller.abort();
    return [seen, String(controller.signal.reason), thrown(() => controller.signal.throwIfAborted())];
  },
  "AbortSignal.abort": () => [String(AbortSignal.abort().reason), AbortSignal.abort(7).reason],
  "AbortSignal.timeout": async () => {
    const signal = AbortSignal.timeout(1);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return [String(signal.reason), signal.reason instanceof DOMException];
  },
  "AbortSignal.any": () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const any = AbortSignal.any([a.signal, b.signal]);
    b.abort("b");
    return [
      any.aborted,
      any.reason,
      AbortSignal.any([]).aborted,
      AbortSignal.any([AbortSignal.abort(1)]).reason,
    ];
  },
  "setTimeout order": async () => {
    const order: string[] = [];
    setTimeout(() => order.push("timeout"), 0);
    Promise.resolve().then(() => order.push("promise"));
    queueMicrotask(() => order.push("microtask"));
    order.push("now");
    await tick(5);
    return order;
  },
  "setTimeout arguments": () =>
    new Promise((resolve) => setTimeout((...args: unknown[]) => resolve(args), 0, 1, "b")),
  "setTimeout type": () => {
    const id = setTimeout(() => {}, 0);
    clearTimeout(id);
    return typeof id;
  },
  "clearTimeout": async () => {
    let ran = false;
    clearTimeout(setTimeout(() => ran = true, 0));
    clearTimeout(undefined);
    await tick(2);
    return ran;
  },
  "setInterval": async () => {
    let count = 0;
    await new Promise<void>((resolve) => {
      const id = setInterval(() => {
        if (++count === 3) resolve(clearInterval(id));
      }, 1);
    });
    return count;
  },
  "setImmediate": () => typeof (globalThis as { setImmediate?: unknown }).setImmediate,
  "queueMicrotask of no function": () => thrown(() => queueMicrotask(1 as never)),
  "MessageChannel": async () => {
    const { port1, port2 } = new MessageChannel();
    const got = new Promise((resolve) => port2.onmessage = (event) => resolve(event.data));
    port1.postMessage({ a: new Map([[1, 2]]) });
    const data = await got;
    port1.close();
    port2.close();
    return data;
  },
  "reportError": async () => {
    let seen = "";
    const listener = (event: ErrorEvent) => {
      seen = String(event.error);
      event.preventDefault();
    };
    globalThis.addEventListener("error", listener);
    reportError(new Error("reported"));
    await tick();
    globalThis.removeEventListener("error", listener);
    return seen;
  },
  "AsyncLocalStorage": async () => {
    const storage = new AsyncLocalStorage<string>();
    const read = async () => {
      await tick();
      return storage.getStore();
    };
    const bound = storage.run("bound", () => AsyncLocalStorage.bind(() => storage.getStore()));
    const snapshot = storage.run("snapshot", () => AsyncLocalStorage.snapshot());
    return [
      await Promise.all([storage.run("a", read), storage.run("b", read)]),
      storage.getStore(),
      bound(),
      snapshot(() => storage.getStore()),
      storage.run("x", () => storage.exit(() => storage.getStore())),
      await storage.run("in a stream", () =>
        Array.fromAsync(
          new ReadableStream({
            pull(controller) {
              controller.enqueue(storage.getStore());
              controller.close();
            },
          }),
        )),
    ];
  },
  "Promise helpers": async () => [
    (await Promise.allSettled([1, Promise.reject(2)])).map((result) => result.status),
    await Promise.any([Promise.reject(1), 2]),
    await rejection(() => Promise.any([Promise.reject(1)])),
    await Promise.try(() => 3),
    typeof Promise.withResolvers,
  ],
};
