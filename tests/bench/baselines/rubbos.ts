/** RUBBoS's transition tables, kept beside the checkout; the project's own small ones where they are absent. */
import { join } from "node:path";
import { builtInTransitions, parseTransitions, type Transitions } from "../../examples/board/transitions.ts";

const FOLDER = new URL("../../../../shared/data/rubbos/", import.meta.url).pathname;
/** RUBBoS's default mix of readers who comment. */
const TABLE = "user_default_transitions";

export interface Habits {
  readonly name: string;
  readonly transitions: Transitions;
}

/** @param folder where RUBBoS's files are, if not beside the checkout. */
export async function habits(folder = FOLDER): Promise<Habits> {
  try {
    const file = await Deno.readTextFile(join(folder, "transitions.json"));
    const transitions = parseTransitions(JSON.parse(file), TABLE);
    return { name: `RUBBoS's ${TABLE}`, transitions };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return { name: "built-in transitions", transitions: builtInTransitions() };
  }
}
