/**
 * The small app that wrote the recorded logs of this folder: it uses what a log has an entry for. It must stay as it is;
 * what it can't show is for another app beside it.
 */
import { Session } from "../../../functions/class/session.ts";
import { list, map } from "../../../functions/tracked/mod.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { stage } from "../../functions/sessions/turn/robot.ts";

const program = (): Program => {
  const current = stage.loop?.current;
  if (current === undefined) throw new Error("no turn runs");
  return current;
};

/** See the file's header. */
export class Ledger extends Session {
  accounts = map<string, number>();
  lines = list<{ readonly who: string; readonly at: number; readonly luck: number }>();
  plain: { count: number; last: Date | null } = { count: 0, last: null };

  pay(who: string, amount: number): number {
    const now = program().now();
    this.accounts.set(who, (this.accounts.get(who) ?? 0) + amount);
    this.lines.push({ who, at: now, luck: Math.floor(program().random() * 1e6) });
    this.plain = { count: this.plain.count + 1, last: new Date(now) };
    return this.accounts.get(who) ?? 0;
  }

  /** What it did is undone. */
  fail(who: string): never {
    this.accounts.set(who, -1);
    throw new Error(`${who} can't pay`);
  }

  /** Waits for a call and for a closure timer. */
  async ask(what: string): Promise<string> {
    const bytes = new TextEncoder().encode(what);
    const told = await new Promise<string>((resolve, reject) => {
      const done = (answer: Uint8Array) => resolve(new TextDecoder().decode(answer));
      const failed = (code: string) => reject(new Error(code));
      program().call({ kind: "fetch", bytes, name: `fetch ${what}`, done, failed }, false);
    });
    await new Promise<void>((resolve) => void program().setLocal(5, resolve));
    this.lines.push({ who: told, at: 0, luck: 0 });
    return told;
  }

  remind(ms: number): void {
    this.setTimer("remind", ms);
  }

  override onTimer(name: string): void {
    this.lines.push({ who: `timer ${name}`, at: program().now(), luck: 0 });
  }

  override onMessage(message: string | Uint8Array, from: { send(message: string): void }): void {
    from.send(`${typeof message === "string" ? message : message.length} is line ${this.lines.length}`);
  }

  state(): unknown {
    return {
      accounts: [...this.accounts],
      lines: this.lines.toArray(),
      plain: { count: this.plain.count, last: this.plain.last?.getTime() ?? null },
    };
  }
}
