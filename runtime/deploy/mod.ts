/**
 * The control plane: the rows that say which apps run (records.ts), the live view that a gateway looks requests
 * up in (app_table.ts), and the writer at the root (deployments.ts). The client that commands use is client.ts.
 */
export { AppTable, type LiveApp, type LiveVersion, type SystemStore } from "./app_table.ts";
export type { Change, ChangeRefusal } from "./app_rows.ts";
export { Deployments, type DeploymentServices, type Evaluation } from "./deployments.ts";
export {
  AdminTokens,
  type AgentScope,
  allows,
  type QueueScope,
  type Role,
  ROLES,
  type TokenHolder,
  type TokenRoles,
} from "./roles.ts";
export type { AppRecord, StoredManifest, VersionRecord } from "./records.ts";
