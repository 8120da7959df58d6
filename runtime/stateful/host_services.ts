/** Services of a site that hosting stateful sessions needs, and what of them the host is given. */
import type { Replica } from "../../store/api/api.ts";
import { liveCode, type LiveCodeServices } from "./live_code.ts";
import type { HostPorts } from "../../functions/sessions/serve/session_host.ts";

/** Site, as hosting needs it: with deployed versions, and the isolates that run them. */
export interface HostServices extends LiveCodeServices, Omit<HostPorts, "apps" | "random" | "replica"> {
  readonly replica: Pick<Replica, "attach" | "status">;
}

/** Returns the site as the host of its sessions sees it. */
export const hostPorts = (services: HostServices): HostPorts => ({
  ...services,
  apps: liveCode(services),
  random: (length) => crypto.getRandomValues(new Uint8Array(length)),
});
