/**
 * The control plane: the rows that say which apps run (records.ts), the live view that a gateway looks requests
 * up in (app_table.ts), the writer at the root (deployments.ts) and the client that commands use (client.ts).
 */
export { AppTable, type LiveApp, type LiveVersion, type SystemStore } from "./app_table.ts";
export type { Change, Refusal } from "./app_rows.ts";
export { Deployments, type DeploymentServices, type Evaluation } from "./deployments.ts";
export { deployModule, type ModuleUpload } from "./upload.ts";
export {
  AdminTokens,
  type AgentScope,
  allows,
  type Holder,
  type Role,
  ROLES,
  type TokenRoles,
} from "./roles.ts";
export type { AppRecord, StoredManifest, Tier, VersionRecord } from "./records.ts";
export {
  ADMIN_PATH,
  AdminClient,
  AdminError,
  type AdminTarget,
  type Deployed,
  type Upload,
} from "./client.ts";
