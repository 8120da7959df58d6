/** The control plane's view of its site's store. */
import type { Replica } from "../../store/api/api.ts";

/** The part of a replica that the control plane uses. */
export type SystemStore = Replica["system"];
