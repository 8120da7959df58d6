/**
 * Sessions that stand still, as a site that serves them knows and reports them: reports are of the version that serves
 * (parked_table.ts, PT2), and in the words of the app's sources.
 */
import type { StatefulName } from "../home/mod.ts";
import type { ParkedReport, ParkedSessions } from "./ports.ts";
import { type Reason, toldTexts } from "./reason.ts";
import type { CodeTable, DeclaredVersion } from "./versions.ts";

/** Site, as knowing which of its sessions stand still needs it. */
export interface ParkingPorts {
  readonly site: string;
  /** Sessions that stand still. */
  readonly parked: ParkedSessions;
  readonly apps: Pick<CodeTable<DeclaredVersion>, "get">;
  /** Reads the wall clock. */
  readonly nowMs: () => number;
  /** Returns a text with its places in a version's bundle told as places in its sources. */
  readonly mapped: (version: string, text: string) => Promise<string>;
  /** Returns a text without the app's secrets. */
  readonly redact: (app: string, text: string) => string;
}

/** See the file's header. */
export class Parking {
  readonly #ports: ParkingPorts;
  readonly #isLetGo: (name: StatefulName) => boolean;
  /** Reports on their way to their row. */
  readonly #telling = new Set<Promise<void>>();

  /** @param isLetGo reports whether a session that was parked goes on by now. */
  constructor(ports: ParkingPorts, isLetGo: (name: StatefulName) => boolean) {
    this.#ports = ports;
    this.#isLetGo = isLetGo;
  }

  /** Returns the reason on record for a session that stands still, wherever it does; null: it does not. */
  why(name: StatefulName): string | null {
    const report = this.#ports.parked.get(name);
    return report === null || !this.#isValid(name, report) ? null : `${report.code}: ${report.message}`;
  }

  /** Names of the sessions that stand still as this site has reported. */
  *reported(): Generator<StatefulName> {
    const { parked, site } = this.#ports;
    for (const { name, report } of parked.all()) {
      if (report.site === site && this.#isValid(name, report)) yield name;
    }
  }

  /** Reports that a session stands still. */
  park(name: StatefulName, reason: Reason): void {
    const { parked, site, nowMs, mapped, redact, apps } = this.#ports;
    const version = apps.get(name.app)?.current.version ?? "";
    const told = (text: string) => mapped(version, redact(name.app, text));
    const telling = toldTexts(reason, told).then((reason) => {
      this.#telling.delete(telling);
      if (!this.#isLetGo(name)) void parked.park(name, { ...reason, version, site, atMs: nowMs() });
    });
    this.#telling.add(telling);
  }

  /** Resolves when what was parked and dropped here so far is written, or could not be. */
  async settled(): Promise<void> {
    await Promise.all(this.#telling);
    await this.#ports.parked.settled();
  }

  /** Reports whether a report is of the version that serves. */
  #isValid({ app }: StatefulName, { version }: ParkedReport): boolean {
    return version === this.#ports.apps.get(app)?.current.version; // parked_table.ts PT2
  }
}
