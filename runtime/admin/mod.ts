/**
 * The admin interface of a site: handlers under `/_sojourn/admin` over the control plane (runtime/deploy).
 */
export { adminApp } from "./admin.ts";
export { resumeChanges } from "./deletion.ts";
export { placed } from "./placement.ts";
export type { AdminBindings, AdminServices } from "./services.ts";
