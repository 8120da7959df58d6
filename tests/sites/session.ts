/** One stateful session of a run, with all who have to do with it, and what the checker makes of them. */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import { check, type Excused, type Party, type Violation, type Written } from "./checker.ts";
import type { Device, PlainClient } from "./device.ts";
import { Ledger } from "./ledger.ts";
import type { Mailbox, Mailed } from "./mailbox.ts";
import type { OriginProgram, Server } from "./outside.ts";
import type { OwnRows } from "./own_rows.ts";
import { type Life, SurvivingLog } from "./surviving_log.ts";

/** What is wrong, and what it was told from. */
export interface Judged {
  readonly violations: readonly Violation[];
  /** One for each that had its name, the last one as far as it has come; null: one of them can't be run. */
  readonly lives: readonly Lived[] | null;
  readonly parties: readonly Party[];
}

/** What became of one that had a name. */
export interface Lived {
  readonly ledger: Ledger;
  readonly log: Life;
}

/** See the file's header. */
export class SimSession {
  readonly name: StatefulName;
  readonly log = new SurvivingLog();
  readonly devices: Device[] = [];
  readonly plain: PlainClient[] = [];
  /** Programs behind it, the one that is there now last. */
  readonly programs: OriginProgram[] = [];
  /** What who asked was told. */
  readonly answered = new Map<string, string[]>();

  constructor(name: StatefulName) {
    this.name = name;
  }

  /** Changes as long as anything is under way. */
  get standing(): string {
    const { log, devices, plain, programs } = this;
    const heard = [...devices, ...plain, ...programs].map(({ heard, sent }) =>
      `${heard.length}/${sent.length}`
    );
    return [log.before.length, log.entries.length, log.epoch, ...heard].join();
  }

  /** Everybody is where they want to be. */
  get isSettled(): boolean {
    return this.devices.every((each) => each.isOver || each.isOpen) &&
      (this.log.isEnded || this.programs.some(({ isOver }) => !isOver));
  }

  /** @param kept the last entry that any disk has: one that was never opened again has lost what came after it. */
  judge(
    rows: OwnRows,
    { server, mailbox }: { readonly server: Server; readonly mailbox: Mailbox },
    { kept, excused }: {
      readonly kept: number;
      readonly excused: Excused;
    },
  ): Judged {
    const { name, log, answered } = this;
    const parties = [
      ...this.devices.map(deviceParty),
      ...this.plain.map(plainParty),
      ...this.programs.map(programParty),
    ];
    const wrong = log.wrong.map((message) => ({ checker: "log", message: `${name.id}: ${message}` }));
    const lives: Lived[] = [];
    const isOf = ({ what }: { readonly what: string }) => what.includes(`${name.id}!`);
    const mailed = mailbox.all.filter(isOf);
    // Of one that has ended nobody keeps anything.
    const last: Life = log.isEnded ? log : { entries: log.entries.slice(0, kept), orders: log.orders };
    try {
      for (const life of [...log.before, last]) {
        const ledger = new Ledger(name.id, life.entries);
        // What no disk had but in an isolate's words never ended, and the one after it did not begin anew.
        if (life === last || isKnown(ledger, parties, answered, { ...rows.of(name.id), mailed })) {
          lives.push({ ledger, log: life });
        }
      }
    } catch (error) {
      const message = `the log of ${name.id} can't be run: ${error}`;
      return { violations: [...wrong, { checker: "log", message }], lives: null, parties };
    }
    const violations = check({
      ...{ key: `${name.class}/${name.id}`, lives: lives.map(({ ledger }) => ledger), parties },
      answered,
      ...rows.of(name.id),
      ...{ done: [...server.done.values()].filter(isOf), mailed },
    }, excused);
    return { violations: [...wrong, ...violations], lives, parties };
  }
}

/** Whether anybody outside knows anything of it. */
function isKnown(
  ledger: Ledger,
  parties: readonly Party[],
  answered: ReadonlyMap<string, readonly string[]>,
  { put, swapped, mailed }: {
    readonly put: readonly Written[];
    readonly swapped: readonly Written[];
    readonly mailed: readonly Mailed[];
  },
): boolean {
  const written = new Set([...ledger.written, ...ledger.swapped].map(({ value }) => value));
  return parties.some(({ peer, heard }) => peer !== null && heard.length > 0 && ledger.outputs.has(peer)) ||
    [...ledger.answers].some(([request, [made = ""]]) => answered.get(request)?.includes(made)) ||
    [...put, ...swapped].some(({ value }) => written.has(value)) ||
    mailed.some(({ what }) => ledger.mailed.includes(what));
}

function deviceParty(device: Device): Party {
  const { name, peer, sent, heard, acknowledged, rejected, end, isClosing, isOver, isNapped } = device;
  return {
    ...{ name, kind: "device", peer, sent, heard, acknowledged, rejected, isClosing, isLive: !isOver },
    isNapped,
    end: end && {
      isRefused: end.kind === "refused",
      code: `${end.code}`,
      isRemote: end.kind === "bye" && end.isRemote,
    },
  };
}

/** Who does not know the id that it has is told it by the first thing that it hears. */
const greeted = (heard: readonly string[]): string | null => /:open (\S+)$/.exec(heard[0] ?? "")?.[1] ?? null;
const NOTHING = { acknowledged: 0, rejected: [], end: null, isClosing: false, isNapped: false } as const;

const plainParty = ({ name, sent, heard, isConnected }: PlainClient): Party => ({
  ...NOTHING,
  ...{ name, kind: "plain", peer: greeted(heard), sent, heard, isLive: isConnected },
});

const programParty = ({ session, sent, heard, isOver }: OriginProgram): Party => ({
  ...NOTHING,
  ...{ name: `the origin of ${session}`, kind: "origin", peer: greeted(heard), sent, heard, isLive: !isOver },
});
