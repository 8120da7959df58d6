/** An object of a Session class without what runs it: its env and who is attached are given, its timers go nowhere. */
import { SESSION_SLOT, type SessionPeer, type SessionSlot } from "../../../functions/class/session_slot.ts";

const slots = globalThis as { [SESSION_SLOT]?: SessionSlot };

/** Makes one. */
export function made<T>(make: () => T, env: unknown, attached: () => readonly SessionPeer[] = () => []): T {
  const before = slots[SESSION_SLOT];
  const nothing = () => {};
  slots[SESSION_SLOT] = {
    making: {
      id: "one",
      env,
      attached,
      readCache: (_, load) => Promise.resolve(load()),
      setTimer: nothing,
      clearTimer: nothing,
      end: nothing,
    },
  };
  try {
    return make();
  } finally {
    if (before === undefined) delete slots[SESSION_SLOT];
    else slots[SESSION_SLOT] = before;
  }
}
