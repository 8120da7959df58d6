/**
 * The control plane: the rows that say which apps run (records.ts), the live view that a gateway looks requests
 * up in (app_table.ts), the writer at the root (deployments.ts) and the client that commands use (client.ts).
 */
export { AppTable, type LiveApp, type LiveVersion, type SystemStore } from "./app_table.ts";
export type { Change, ChangeRefusal } from "./app_rows.ts";
export { Deployments, type DeploymentServices, type Evaluation } from "./deployments.ts";
export { deployModule, type ModuleUpload } from "./upload.ts";
export {
  AdminTokens,
  type AgentScope,
  allows,
  type Role,
  ROLES,
  type TokenHolder,
  type TokenRoles,
} from "./roles.ts";
export type { AppRecord, StoredManifest, VersionRecord } from "./records.ts";
export {
  ADMIN_PATH,
  AdminClient,
  AdminError,
  type AdminTarget,
  type BundleUpload,
  type Deployed,
} from "./client.ts";
