/**
 * What a site does with secrets beside holding them: the root's writer, which follows the apps that serve, and log
 * lines of isolates without values.
 */
import type { AppTable } from "../deploy/mod.ts";
import { SecretStore, type SecretTable } from "../secrets/mod.ts";

type StoreServices = Omit<Parameters<typeof SecretStore.open>[0], "declared">;

/** The writer of secrets; it moves rows whenever another version serves. */
export async function openSecretStore(services: StoreServices, apps: AppTable): Promise<SecretStore> {
  const store = await SecretStore.open({
    ...services,
    declared: (app) => apps.get(app)?.current.manifest.secrets ?? null,
  });
  const placed = new Map<string, string>();
  const place = () => {
    for (const { name, current: { version, manifest } } of apps.list()) {
      if (placed.get(name) === version) continue;
      placed.set(name, version);
      store.place(name, manifest.secrets, { widen: false }).catch((error: unknown) => {
        placed.delete(name);
        services.note("secrets_unplaced", { app: name, error: String(error) });
      });
    }
  };
  apps.onChange(place);
  place();
  return store;
}

/** A log line's fields without the values of the secrets of the app that it names. */
export function withoutSecrets(
  secrets: SecretTable,
  detail: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const { app } = detail;
  if (typeof app !== "string") return { ...detail };
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [
      name,
      typeof value === "string" ? secrets.redact(app, value) : value,
    ]),
  );
}
