/**
 * What a site does with secrets beside holding them: the root's writer, which follows the apps that serve, and log
 * lines of isolates without values.
 */
import type { AppTable, LiveApp } from "../deploy/mod.ts";
import { SecretStore, type SecretTable } from "../secrets/mod.ts";

type StoreServices = Omit<Parameters<typeof SecretStore.open>[0], "declared">;

/** The writer of secrets; it moves rows whenever another version serves. */
export async function openSecretStore(services: StoreServices, apps: AppTable): Promise<SecretStore> {
  const store = await SecretStore.open({
    ...services,
    declared: (app) => {
      const live = apps.get(app);
      return live === undefined ? null : declaredBy(live);
    },
  });
  const placed = new Map<string, string>();
  const place = () => {
    for (const live of apps.list()) {
      const { name } = live;
      const versions = `${live.current.version} ${live.rollout?.next.version}`;
      if (placed.get(name) === versions) continue;
      placed.set(name, versions);
      store.place(name, declaredBy(live), { widen: false }).catch((error: unknown) => {
        placed.delete(name);
        services.note("secrets_unplaced", { app: name, error: String(error) });
      });
    }
  };
  apps.onChange(place);
  place();
  return store;
}

/** What an app declares; while a rollout runs, what either version needs where it is declared widest. */
function declaredBy({ current, rollout }: LiveApp): LiveApp["current"]["manifest"]["secrets"] {
  const declared = { ...current.manifest.secrets };
  for (const [name, secret] of Object.entries(rollout?.next.manifest.secrets ?? {})) {
    if (declared[name]?.at !== undefined || !Object.hasOwn(declared, name)) declared[name] = secret;
  }
  return declared;
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
