/** Variants of what a site believes of its wall clock (store/model/wall.ts, store/tree/timekeeper.ts). */
import { hooked, type Variant, withFaults } from "./hooks.ts";

export const believesLeaps: Variant = {
  name: "a wall clock that is believed whatever it says",
  from: 3,
  rule: "wall B1: the wall clock is believed where a steady clock says that it should be",
  make: () =>
    hooked(() => ({
      clock: (clock) => ({
        nowMs: () => clock.nowMs(),
        steadyMs: () => clock.nowMs(),
        after: (ms, callback) => clock.after(ms, callback),
        turn: () => clock.turn(),
      }),
    })),
  change: withFaults({ leap: 3, warp: 0 }),
  checkers: ["clock"],
};

export const tellsNoTime: Variant = {
  name: "a child that does not say what its wall clock says",
  rule: "timekeeper K1: a root whose machines were all suspended hears from its children that they were, too",
  make: () => hooked(() => ({ sends: (_, message) => message.kind === "wall" ? [] : [message] })),
  change: withFaults({ leap: 0, warp: 0, suspend: 3 }),
  checkers: ["clock"],
};

export const confirmsWrongly: Variant = {
  name: "sites that do not say what their wall clocks say where they are behind what is believed",
  from: 3,
  rule:
    "timekeeper K3: two whose clocks were ahead, and are right again, do not confirm each other's belief for good",
  make: () => hooked(() => ({ sends: (_, message) => message.kind === "wall" ? [] : [message] })),
  change: withFaults({ leap: 0, warp: 3, wipe: 3 }),
  checkers: ["liveness", "clock"],
};
