/** A session that uses packages. */
import { defineApp, type EnvOf, Session } from "sojourn";
import { USES } from "./uses.ts";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;

export class Probe extends Session<Env> {
  readonly made: unknown[] = [];

  async use(name: string): Promise<unknown> {
    const made = JSON.parse(JSON.stringify(await USES[name]?.() ?? null)) as unknown;
    this.made.push(made);
    return made;
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
