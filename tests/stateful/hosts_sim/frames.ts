/** What hosts and homes say to each other in these runs, and the way it goes. */
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";

export type ToHome =
  | {
    readonly kind: "hello";
    readonly host: string;
    readonly received: number;
    readonly promised: number;
    readonly tag: Uint8Array | null;
  }
  | { readonly kind: "log"; readonly epoch: number; readonly records: readonly Uint8Array[] | null }
  | { readonly kind: "message"; readonly sequence: number }
  | { readonly kind: "ack"; readonly received: number; readonly taken: number };

export type ToHost =
  | { readonly kind: "fence"; readonly epoch: number }
  /** `handled` of its messages were handed on, of which `received` are in the log. */
  | { readonly kind: "welcome"; readonly epoch: number; readonly handled: number; readonly received: number }
  | {
    readonly kind: "output";
    readonly epoch: number;
    readonly records: readonly Uint8Array[];
    readonly output: { readonly sequence: number; readonly text: string } | null;
    /** Messages of this host that are in the log. */
    readonly received: number;
  }
  | { readonly kind: "elsewhere"; readonly site: string }
  /** Its log is none of this session's. */
  | { readonly kind: "refused" };

export interface End<Out, In> {
  send(frame: Out): void;
  close(): void;
  onFrame: (frame: In) => void;
  onBroken: () => void;
}

export type HostEnd = End<ToHome, ToHost>;
export type HomeEnd = End<ToHost, ToHome>;

/** Two ends of a channel: in order, each frame after a while; nothing more comes once it is broken, but what is late. */
export function channel(
  world: World,
  draws: Draws,
  late: number,
): { readonly host: HostEnd; readonly home: HomeEnd } {
  let isBroken = false, isCut = false;
  const way = { up: 0, down: 0 };
  const end = <Out, In>(direction: "up" | "down", other: () => End<In, Out>): End<Out, In> => ({
    onFrame: () => {},
    onBroken: () => {},
    send(frame) {
      if (isBroken) return;
      way[direction] = Math.max(way[direction], world.nowMs + draws.between(1, 12));
      const isLate = direction === "down" && draws.chance(late);
      world.at(way[direction], () => {
        // What had left already may come though its sender is gone: a first part of it.
        if (isBroken && !isLate) isCut = true;
        if (!isBroken || !isCut) other().onFrame(frame);
      });
    },
    close() {
      if (isBroken) return;
      isBroken = true;
      world.after(draws.between(0, 30), () => {
        host.onBroken();
        home.onBroken();
      });
    },
  });
  const host: HostEnd = end<ToHome, ToHost>("up", () => home);
  const home: HomeEnd = end<ToHost, ToHome>("down", () => host);
  return { host, home };
}
