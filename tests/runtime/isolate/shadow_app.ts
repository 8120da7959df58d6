/** Stateful sessions that do what a replay shows, and one that does not. */
import { defineApp, type EnvOf, Session } from "sojourn";

const resources = { secrets: { KEY: {} } } as const;
type Env = EnvOf<typeof resources, { probe: Probe }>;

/** Shared by the sessions of an isolate, and in no log. */
let counted = 0;
let waiting: PromiseWithResolvers<void> | undefined;
const rooms = new Map<string, Probe>();
const emitter = new EventTarget();
let remembered: WeakRef<{ name: string }> | undefined;

class Probe extends Session<Env> {
  count = 0;

  add(): number {
    return ++this.count;
  }

  key(): string {
    return this.env.secrets.KEY;
  }

  /** A value of the cache, who made it, and whether it is frozen. */
  async menu(bytes = 0): Promise<unknown> {
    const menu = await this.cache.read("menu", async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return { by: this.id, drawn: crypto.randomUUID(), of: [{ name: "tea" }], rest: "x".repeat(bytes) };
    });
    return [menu.by, menu.drawn, Object.isFrozen(menu.of[0]), menu.rest.length];
  }

  badMenu(name: string): Promise<unknown> {
    return this.cache.read(name, () => {
      throw new Error("no menu");
    });
  }

  /** Does not rest for a while. */
  linger(ms: number): void {
    setTimeout(() => this.count++, ms);
  }

  /** A counter of the module. */
  countAll(_what?: string): number {
    return ++counted;
  }

  /** Writes what it counted. */
  async countThere(): Promise<void> {
    await this.env.kv.set(["count"], ++counted);
  }

  /** Begins to wait for what another session settles. */
  async meet(): Promise<string> {
    waiting = Promise.withResolvers<void>();
    setTimeout(() => {}, 60_000);
    await waiting.promise;
    return crypto.randomUUID();
  }

  async release(): Promise<number> {
    waiting?.resolve();
    await null;
    return this.count;
  }

  /** Others find its object. */
  enter(): void {
    rooms.set(this.id, this);
  }

  poke(id: string): void {
    rooms.get(id)?.setTimer("poked", 1_000);
  }

  /** What others do calls it back. */
  listen(): void {
    emitter.addEventListener("said", () => this.setTimer("heard", 1_000));
  }

  say(): void {
    emitter.dispatchEvent(new Event("said"));
  }

  /** What only this life of the object knows, and no checkpoint. */
  remember(): void {
    remembered = new WeakRef({ name: this.id });
  }

  recall(): string | undefined {
    return remembered?.deref()?.name;
  }
}

export default defineApp({ ...resources, sessions: { probe: Probe }, fetch: () => new Response() });
