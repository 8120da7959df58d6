/** Logs that hosts of stateful sessions give back, what they say of them, and what they are stored as. */
import {
  decodeSummary,
  encodeSummary,
  HostLog,
  openHostLog,
  SealedSeries,
} from "../../functions/sessions/sealed/mod.ts";
import { CodecError } from "../../store/model/codec.ts";
import { mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const SECRET = new Uint8Array(32).fill(7);
const OF = { name: { app: "duel", class: "match", id: "one" }, receiver: "c1" };
const PIECES = 24;
const salt = (number: number) => new Uint8Array(16).fill(number);

/** A log of some homes, record by record. */
function recordsOf(): Uint8Array[] {
  const records: Uint8Array[] = [];
  let series = SealedSeries.whole({ secret: SECRET, of: OF, epoch: 1, salt: salt(1) }, {
    ...{ seed: new Uint8Array(32), version: "v1", base: null, parts: [], pieces: [] },
  });
  records.push(series.first);
  for (let at = 1; at <= PIECES; at++) {
    if (at % 8 === 0) {
      const start = { secret: SECRET, of: OF, epoch: at, salt: salt(at) };
      series = SealedSeries.further(start, { tag: series.tag, after: at - 1, pieces: [] });
      records.push(series.first);
    }
    const bytes = new Uint8Array(at).fill(at);
    records.push(series.next([{ epoch: at, first: at, count: 1, wakeAtMs: at, bytes }]));
  }
  return records;
}

/** What a client gives back for the log that it was sent: nothing but a first part of it is taken. */
export const sealedLogs: Target = {
  name: "sealed-logs",
  says: "refused, or a first part of what was sealed",
  reaches: ["log_forged", "first part", "invalid", "restored", "not restored", "summary", "no summary"],
  quick: 5_000,
  open() {
    const records = recordsOf();
    const whole = openHostLog([SECRET], OF, records);
    if (!whole.ok) throw new Finding(whole.message);
    const log = new HostLog();
    for (const record of records.slice(0, 8)) log.take(1, record);
    const said = log.summary();
    return {
      attempt(dice) {
        const given = records.slice(0, 1 + dice.below(records.length));
        switch (dice.below(7)) {
          case 0:
            given.splice(dice.below(given.length), 1);
            break;
          case 1:
            given.splice(dice.below(given.length), 0, dice.pick(records));
            break;
          case 2: {
            const at = dice.below(given.length);
            given[at] = Uint8Array.from(mutateBytes(dice, given[at] ?? said, dice.pick(records)));
            if (dice.below(2) === 0) return restored(dice.below(2 * PIECES), given);
            return new HostLog().take(1, given[at]) === "invalid"
              ? "invalid"
              : opened(given, whole.copy.log.pieces);
          }
          case 4:
            return summary(Uint8Array.from(mutateBytes(dice, said, dice.pick(records))));
          case 3:
            return restored(dice.below(PIECES), given);
        }
        return opened(given, whole.copy.log.pieces);
      },
    };
  },
};

function opened(given: readonly Uint8Array[], pieces: readonly { readonly bytes: Uint8Array }[]): string {
  const found = openHostLog([SECRET], OF, given);
  if (!found.ok) return found.code;
  const isPart = found.copy.log.pieces.every(({ bytes }, at) =>
    same(bytes, pieces[at]?.bytes ?? new Uint8Array())
  );
  if (!isPart) throw new Finding("another log was opened than was sealed");
  return "first part";
}

/** What was kept of one, in whatever state, is what one could have held. */
function restored(promised: number, given: readonly Uint8Array[]): string {
  try {
    const log = HostLog.restore(promised, given);
    const back = log.promise(promised);
    if (back === null || back.length > given.length) throw new Finding("it has not promised what it had");
    if (back.some((record) => !given.some((each) => same(each, record)))) throw new Finding("another record");
    return "restored";
  } catch (error) {
    if (error instanceof CodecError) return "not restored";
    throw error;
  }
}

function summary(bytes: Uint8Array): string {
  try {
    if (!same(encodeSummary(decodeSummary(bytes)), bytes)) {
      throw new Finding("said again it has another form");
    }
    return "summary";
  } catch (error) {
    if (error instanceof CodecError) return "no summary";
    throw error;
  }
}
