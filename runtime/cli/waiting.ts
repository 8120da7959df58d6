/** Option `--timeout` of commands that wait for the sites. */
import { numberOption, type OptionSpec, type Parsed } from "./command.ts";

/** Bounds of the seconds to wait for the sites: a feed takes milliseconds, a site that restarts takes a few seconds. */
const TIMEOUT_S = { min: 0, max: 600, or: 30 };

/** Options of commands that wait for the sites: `--timeout`. */
export const WAIT_OPTIONS: Record<string, OptionSpec> = {
  timeout: {
    type: "string",
    value: "SECONDS",
    says: `how long to wait for the sites, ${TIMEOUT_S.or} by default`,
  },
};

/** Returns the milliseconds that `--timeout` names. @throws UsageError */
export const waitMs = (args: Parsed): number => numberOption(args, "timeout", TIMEOUT_S) * 1000;
