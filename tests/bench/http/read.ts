/**
 * What one covered read adds: one connection asks for a function without and with a read, in turn, so that both
 * meet the same cluster at the same moment. Answers the difference of the two medians, in microseconds.
 */
import { freshAnswer, freshInput } from "../fresh.ts";
import { quantile } from "../record.ts";
import { Connection } from "./load.ts";

/** What to ask, for how long. */
export interface ReadInput {
  readonly hostname: string;
  readonly port: number;
  readonly without: string;
  readonly with: string;
  readonly warmMs: number;
  readonly runMs: number;
}

const input = freshInput() as ReadInput;
const connection = new Connection(await Deno.connect(input));
const tookMs: Record<"without" | "with", number[]> = { without: [], with: [] };
let token = "";
const countFrom = performance.now() + input.warmMs, end = countFrom + input.runMs;
while (performance.now() < end) {
  for (const kind of ["without", "with"] as const) {
    const session = token === "" ? "" : `sojourn-session: ${token}\r\n`;
    const start = performance.now();
    const { status, head } = await connection.ask(
      `GET ${input[kind]} HTTP/1.1\r\nhost: localhost\r\n${session}\r\n`,
    );
    if (start >= countFrom) tookMs[kind].push(performance.now() - start);
    if (status !== 200) throw new Error(`${input[kind]} was answered with ${status}`);
    token = /\r\nsojourn-session: ([^\r]+)/i.exec(head)?.[1] ?? token;
  }
}
connection.close();
freshAnswer((quantile(tookMs.with, 0.5) - quantile(tookMs.without, 0.5)) * 1000);
