/**
 * The `MessageChannel` of stateful sessions: libraries use one to put something off (React's scheduler). A message is a
 * copy, and comes in a turn of its own, as a closure timer of no time does.
 *
 * MC1  A channel leads from a session to itself: a message that a session posts comes in its turn, whoever made the
 *      channel.
 * MC2  A channel that modules have made stays as they left it: no session listens there, or ends it.
 */
import type { Program } from "../../../functions/sessions/turn/program.ts";
import type { Current } from "./stateful_current.ts";

type Define = (target: object, name: string, value: unknown) => unknown;
type Listener = ((event: MessageEvent) => unknown) | null;

/** Replaces the global classes. */
export function installChannels(current: Current, define: Define): void {
  const handling = (what: string): Program => {
    const program = current();
    if (program === undefined) throw new TypeError(`${what} works in a handler, not while a module loads`);
    return program;
  };

  /** Ports that modules have made (MC2). */
  const ofModules = new WeakSet<object>();
  const mayChange = (port: object, what: string): void => {
    if (!ofModules.has(port) || current() === undefined) return;
    throw new TypeError(
      `MessagePort: a module has made this channel, which all sessions share: ${what} is for the module`,
    );
  };

  class Port extends EventTarget {
    override addEventListener(...args: Parameters<EventTarget["addEventListener"]>): void {
      mayChange(this, "addEventListener");
      super.addEventListener(...args);
    }

    override removeEventListener(...args: Parameters<EventTarget["removeEventListener"]>): void {
      mayChange(this, "removeEventListener");
      super.removeEventListener(...args);
    }
  }

  let entangle = (_a: MessagePort, _b: MessagePort): void => {};

  class MessagePort extends Port {
    #other: MessagePort | null = null;
    #isStarted = false;
    #waiting: unknown[] = [];
    #onmessage: Listener = null;
    #onmessageerror: Listener = null;

    static {
      entangle = (a, b) => {
        a.#other = b;
        b.#other = a;
      };
    }

    postMessage(message: unknown, options: Transferable[] | StructuredSerializeOptions = []): void {
      const transfer = Array.isArray(options) ? options : options.transfer ?? [];
      const copy = structuredClone(message, { transfer });
      const to = this.#other;
      if (to === null) return;
      if (to.#isStarted) to.#bring(copy);
      else {
        mayChange(to, "a message that waits");
        to.#waiting.push(copy);
      }
    }

    start(): void {
      if (this.#isStarted) return;
      mayChange(this, "start");
      this.#isStarted = true;
      for (const each of this.#waiting.splice(0)) this.#bring(each);
    }

    close(): void {
      mayChange(this, "close");
      if (this.#other !== null) this.#other.#other = null;
      this.#other = null;
    }

    ref(): this {
      return this;
    }

    unref(): this {
      return this;
    }

    hasRef(): boolean {
      return false;
    }

    get onmessage(): Listener {
      return this.#onmessage;
    }

    set onmessage(listener: Listener) {
      mayChange(this, "onmessage");
      this.#onmessage = typeof listener === "function" ? listener : null;
      this.start();
    }

    get onmessageerror(): Listener {
      return this.#onmessageerror;
    }

    set onmessageerror(listener: Listener) {
      mayChange(this, "onmessageerror");
      this.#onmessageerror = typeof listener === "function" ? listener : null;
    }

    #bring(data: unknown): void {
      handling("postMessage").setLocal(0, () => {
        const event = new MessageEvent("message", { data });
        this.#onmessage?.(event);
        this.dispatchEvent(event);
      });
    }
  }

  class MessageChannel {
    readonly #port1 = new MessagePort();
    readonly #port2 = new MessagePort();

    constructor() {
      const ports = [this.#port1, this.#port2] as const;
      entangle(...ports);
      if (current() === undefined) { for (const each of ports) ofModules.add(each); }
    }

    get port1(): MessagePort {
      return this.#port1;
    }

    get port2(): MessagePort {
      return this.#port2;
    }
  }
  for (const [name, made] of Object.entries({ MessagePort, MessageChannel })) {
    // Minified they have other ones.
    Object.defineProperty(made, "name", { value: name, configurable: true });
    define(globalThis, name, made);
  }
}
