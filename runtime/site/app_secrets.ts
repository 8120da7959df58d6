/**
 * Secrets at work in a site: the root's writer, which follows the apps that serve, and log lines of isolates without
 * values.
 *
 * A1  A secret may leave the root while a version that serves, to all or to a part of the sessions, declares it so.
 * A2  The secrets of an app go with the app; those that were set before it was deployed stay.
 */
import { appKey, decodeApp } from "../deploy/records.ts";
import type { AppTable, LiveApp } from "../deploy/mod.ts";
import { type DeclaredSecrets, SecretStore, type SecretTable } from "../secrets/mod.ts";

type StoreServices = Omit<Parameters<typeof SecretStore.open>[0], "declared">;

/**
 * Returns the secrets that the versions that serve declare: one that any of them lets out of the root is let out (A1).
 */
function declaredBy({ current, rollout }: LiveApp): DeclaredSecrets {
  const out: Record<string, { at?: string | undefined }> = { ...current.manifest.secrets };
  for (const [name, next] of Object.entries(rollout?.next.manifest.secrets ?? {})) {
    const known = out[name];
    if (known === undefined || next.at !== "root") out[name] = next;
  }
  return out;
}

/** Opens the writer of secrets; it moves rows whenever other versions serve. */
export async function openSecretStore(services: StoreServices, apps: AppTable): Promise<SecretStore> {
  const store = await SecretStore.open({
    ...services,
    declared: (app) => {
      const live = apps.get(app);
      return live === undefined ? null : declaredBy(live);
    },
  });
  /** Versions that each app's secrets were last placed for. */
  const placed = new Map<string, string>();
  const follow = async () => {
    for (const live of apps.list()) {
      const versions = `${live.current.version} ${live.rollout?.next.version}`;
      if (placed.get(live.name) === versions) continue;
      placed.set(live.name, versions);
      await store.place(live.name, declaredBy(live), { widen: false });
    }
    for (const app of await store.apps()) {
      if (apps.get(app) === undefined && await isGone(services, app, placed.has(app))) {
        placed.delete(app);
        await store.deleteApp(app);
      }
    }
  };
  let turn = Promise.resolve();
  const changed = () => {
    turn = turn.then(follow).catch((error: unknown) => {
      placed.clear(); // all are looked at again with the next change
      services.note("secrets_unplaced", { error: String(error) });
    });
  };
  apps.onChange(changed);
  changed();
  return store;
}

/** Reports whether an app was deleted, so that its secrets go too (A2). */
async function isGone({ system }: StoreServices, app: string, served: boolean): Promise<boolean> {
  const [row] = await system.get([appKey(app)]);
  if (!row?.value) return served;
  return decodeApp(row.value).deleted === true;
}

/** Returns a log line's fields without the values of the secrets of the app that it names. */
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
