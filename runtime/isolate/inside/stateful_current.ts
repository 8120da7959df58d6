/** The session whose turn it is: what replaces globals finds by it the session that calls them. */
import type { Program } from "../../../functions/sessions/turn/program.ts";

/** Returns the program whose turn it is; undefined while module code runs. */
export type Current = () => Program | undefined;
