/**
 * The admin interface of a site: handlers under `/_sojourn/admin` over the control plane (runtime/deploy).
 */
export { adminApp, type AdminBindings, type AdminServices } from "./admin.ts";
