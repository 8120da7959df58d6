/** One stateful session of a run, with all who have to do with it, and what the checker makes of them. */
import type { StatefulName } from "../../functions/homes/mod.ts";
import { check, type Excused, type Party, type Violation } from "./checker.ts";
import type { Device, PlainClient } from "./device.ts";
import { Ledger } from "./ledger.ts";
import type { OriginProgram, Server } from "./outside.ts";
import type { OwnRows } from "./own_rows.ts";
import { SurvivingLog } from "./surviving_log.ts";

/** What is wrong, and what it was told from. */
export interface Judged {
  readonly violations: readonly Violation[];
  readonly ledger: Ledger | null;
  readonly parties: readonly Party[];
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
    return [log.entries.length, log.epoch, ...heard].join();
  }

  /** Everybody is where they want to be. */
  get isSettled(): boolean {
    return this.devices.every((each) => each.isOver || each.isOpen) &&
      this.programs.some(({ isOver }) => !isOver);
  }

  /** @param kept the last entry that any disk has: one that was never opened again has lost what came after it. */
  judge(
    rows: OwnRows,
    server: Server,
    { kept, isNapped, excused }: {
      readonly kept: number;
      readonly isNapped: boolean;
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
    let ledger: Ledger;
    try {
      ledger = new Ledger(name.id, log.entries.slice(0, kept));
    } catch (error) {
      const message = `the log of ${name.id} can't be run: ${error}`;
      return { violations: [...wrong, { checker: "log", message }], ledger: null, parties };
    }
    const isOf = (what: string) => what.includes(`${name.id}!`);
    const violations = check({
      ...{ key: `${name.class}/${name.id}`, ledger, parties, answered, isNapped },
      ...rows.of(name.id),
      done: [...server.done.values()].filter(({ what }) => isOf(what)),
    }, excused);
    return { violations: [...wrong, ...violations], ledger, parties };
  }
}

function deviceParty(device: Device): Party {
  const { name, peer, sent, heard, acknowledged, rejected, end, isClosing, isOver } = device;
  return {
    ...{ name, kind: "device", peer, sent, heard, acknowledged, rejected, isClosing, isLive: !isOver },
    end: end && {
      isRefused: end.kind === "refused",
      code: `${end.code}`,
      isRemote: end.kind === "bye" && end.isRemote,
    },
  };
}

/** Who does not know the id that it has is told it by the first thing that it hears. */
const greeted = (heard: readonly string[]): string | null => /:open (\S+)$/.exec(heard[0] ?? "")?.[1] ?? null;
const NOTHING = { acknowledged: 0, rejected: [], end: null, isClosing: false } as const;

const plainParty = ({ name, sent, heard, isConnected }: PlainClient): Party => ({
  ...NOTHING,
  ...{ name, kind: "plain", peer: greeted(heard), sent, heard, isLive: isConnected },
});

const programParty = ({ session, sent, heard, isOver }: OriginProgram): Party => ({
  ...NOTHING,
  ...{ name: `the origin of ${session}`, kind: "origin", peer: greeted(heard), sent, heard, isLive: !isOver },
});
