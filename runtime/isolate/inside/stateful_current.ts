/** Whose turn it is: how what replaces globals finds the session that asks. */
import type { Program } from "../../../functions/sessions/turn/program.ts";

/** The program whose turn it is; undefined while module code runs. */
export type Current = () => Program | undefined;
