/**
 * Secrets of apps: sealed rows (secret_rows.ts, sealing.ts), the view that a site gives its isolates
 * (secret_table.ts), the writer at the root (secret_store.ts), and taking values out of texts (redaction.ts).
 */
export { SecretRing } from "./sealing.ts";
export { type DeclaredSecrets, SecretTable } from "./secret_table.ts";
export { SecretStore, type SecretSummary, valueProblem } from "./secret_store.ts";
export { SECRET_BYTES_MAX, SECRET_NAME, secretRanges, type SecretSource } from "./secret_rows.ts";
