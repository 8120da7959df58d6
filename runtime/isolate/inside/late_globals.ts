/**
 * Globals that programs add while sessions run. A package may keep there what it runs, for as long as it runs it
 * (Effect: its current fiber), and has taken it away when it is done; a global that stays would be shared by all
 * sessions.
 *
 * LG1  `globalThis` itself takes none: an added one lies behind it, where it is found by its name, until the turn is
 *      over.
 */

/** Holds the globals that are added in a turn. */
export class LateGlobals {
  readonly #held = new Map<PropertyKey, unknown>();

  /** Puts itself behind `globalThis`, which takes no properties from then on. */
  install(): void {
    const held = this.#held;
    const behind = Object.create(Object.getPrototypeOf(globalThis)) as object;
    Object.setPrototypeOf(
      globalThis,
      new Proxy(behind, {
        has: (target, name) => held.has(name) || Reflect.has(target, name),
        get: (target, name, receiver) =>
          held.has(name) ? held.get(name) : Reflect.get(target, name, receiver),
        set: (target, name, value, receiver) => {
          if (Reflect.has(target, name)) return Reflect.set(target, name, value, receiver);
          held.set(name, value);
          return true;
        },
        deleteProperty: (_, name) => (held.delete(name), true),
        defineProperty: () => false,
        setPrototypeOf: () => false,
        preventExtensions: () => false,
      }),
    );
    Object.preventExtensions(globalThis);
  }

  /** Removes all at the end of a turn; returns the name of one that was left there. */
  left(): string | undefined {
    if (this.#held.size === 0) return undefined;
    const [name] = [...this.#held].find(([, value]) => value !== undefined) ?? [];
    this.#held.clear();
    return name === undefined ? undefined : String(name);
  }
}
