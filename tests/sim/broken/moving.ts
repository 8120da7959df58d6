/** Variants of sites that get another parent (store/adoption.ts). */
import { type Key, packKey } from "../../../store/key.ts";
import type { Message, WireRow } from "../../../store/message.ts";
import { holds, prefixRange, type Range } from "../../../store/range.ts";
import { decodeJson, encodeJson, type Ended } from "../../../store/topology.ts";
import type { SiteId } from "../../../store/ports.ts";
import type { Plan } from "../topology.ts";
import { hooked, restless, type Variant, withFaults } from "./hooks.ts";

const ENDED_RANGE: Range = prefixRange(packKey(["s", "ended"]));
const KEPT_RANGE: Range = prefixRange(packKey(["s", "kept"]));

const moving = (plan: Plan): Plan =>
  restless(withFaults({ move: 5, adopt: 0, wipe: 0, wipeInner: 0, remove: 0 })(plan));
const orphaned = (plan: Plan): Plan =>
  restless(withFaults({ move: 0, adopt: 1, wipe: 0, wipeInner: 0, remove: 0 })(plan));

/** Changes the rows of whatever carries any. */
function withRows(message: Message, change: (row: WireRow) => readonly WireRow[]): Message {
  if (message.kind !== "push" && message.kind !== "feed" && message.kind !== "fetched") return message;
  return { ...message, rows: message.rows.flatMap((row) => [...change(row)]) };
}

/** Changes system rows of one kind; `change` gets the value as it was. */
const rewritten =
  (range: Range, change: (value: unknown) => unknown) => (row: WireRow): readonly WireRow[] => {
    const value = holds(range, row.key as Key) ? decodeJson(row.value) : undefined;
    return [value === undefined ? row : { ...row, value: encodeJson(change(value)) }];
  };

export const believesOldPath: Variant = {
  name: "positions of the old path believed",
  rule:
    "I8: what a token says counts under the incarnation that gave it, though its site goes on with all its rows",
  make: () => {
    const issuers = new Map<number, SiteId>(), latest = new Map<SiteId, number>();
    return hooked((site) => ({
      receives: (_, message) => {
        if (message.kind === "welcome") {
          latest.set(site, message.replica);
          issuers.set(message.replica, site);
        }
        return [message];
      },
      presents: (token) => ({
        ...token,
        replica: latest.get(issuers.get(token.replica) ?? "") ?? token.replica,
      }),
    }));
  },
  change: moving,
};

export const hearsNoEnd: Variant = {
  name: "a move whose end does not reach the others",
  rule:
    "adoption N1: the old incarnation's end is recorded before the new one is taken, and goes before its rows",
  make: () =>
    hooked(() => {
      let isInner = false;
      return {
        receives: (_, message) => {
          isInner ||= message.kind === "hello";
          const isTold = isInner || message.kind !== "feed" && message.kind !== "fetched";
          return [isTold ? message : withRows(message, (row) => holds(ENDED_RANGE, row.key) ? [] : [row])];
        },
      };
    }),
  change: moving,
};

export const settlesAtOnce: Variant = {
  name: "a move that is settled as it begins",
  rule: "adoption F3: stable clocks say nothing of what is still on its way to the new parent",
  make: () =>
    hooked(() => ({
      sends: (_, message) => [
        withRows(
          message,
          rewritten(ENDED_RANGE, (value) => {
            const ended = value as Ended;
            return ended.next === undefined
              ? ended
              : { ...ended, stable: Number.MAX_SAFE_INTEGER, settled: true };
          }),
        ),
      ],
    })),
  change: moving,
};

export const adoptsAlone: Variant = {
  name: "an orphan taken in without what its siblings have",
  rule: "adoption F2: all rows that are not known at the root are asked of the lost parent's other children",
  make: () =>
    hooked(() => ({
      sends: (_, message) =>
        message.kind === "hello" && message.moved !== undefined
          ? [{ ...message, moved: { ...message.moved, from: "" } }]
          : [message],
    })),
  change: orphaned,
};

export const forgetsFloor: Variant = {
  name: "a new parent that is behind the old one",
  rule: "adoption F1: the child is answered when the root's journal has arrived as far as it had there",
  make: () =>
    hooked(() => ({
      sends: (_, message) => [
        message.kind === "hello" && message.moved !== undefined
          ? { ...message, moved: { ...message.moved, floor: 0 } }
          : withRows(message, rewritten(KEPT_RANGE, () => ({ floor: 0 }))),
      ],
    })),
  change: moving,
};
