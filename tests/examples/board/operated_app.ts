/** The board with its operator's routes open, and with cheap passwords: benchmarks register people by the dozen. */
import { defineApp } from "sojourn";
import app from "../../../examples/board/app.ts";

/** The token that the operator's routes ask for here: these clusters live on loopback for a few minutes. */
export const ADMIN_TOKEN = "bench-operator";

export default defineApp({
  ...app,
  name: "board",
  vars: { ...app.vars, ADMIN_TOKEN, PASSWORD_ROUNDS: "1000" },
});
