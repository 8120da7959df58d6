/** Rules of an app's versions: which one a text names, which are kept, and which tables can't change. */
import { APP_VERSIONS_MAX, type AppRecord, type StoredManifest } from "./records.ts";
import { serving } from "./rollout.ts";

/** Returns the version of an app that begins with a text, or the reason why there is none such. */
export function findVersion(record: AppRecord, wanted: string): { version: string } | { message: string } {
  const matches = record.versions.map((entry) => entry.version)
    .filter((version) => wanted !== "" && version.startsWith(wanted));
  const [only] = matches;
  if (matches.length === 1 && only !== undefined) return { version: only };
  return {
    message: matches.length === 0
      ? `app ${record.name} has no version ${wanted.slice(0, 64)}`
      : `${wanted} begins ${matches.length} versions of app ${record.name}; give more digits`,
  };
}

/** Returns the version before the current one, in the order in which they were deployed. */
export function versionBefore(record: AppRecord): { version: string } | { message: string } {
  const versions = record.versions.map((entry) => entry.version);
  const version = versions[versions.indexOf(record.current ?? "") - 1];
  return version === undefined
    ? { message: `app ${record.name} has no version before its current one` }
    : { version };
}

/** Returns an app with a version more, and the versions that it gives up for it: the oldest that do not serve. */
export function withVersion(
  record: AppRecord,
  entry: AppRecord["versions"][number],
): { record: AppRecord; dropped: string[] } {
  const versions = [...record.versions.filter(({ version }) => version !== entry.version), entry];
  const kept = new Set([...serving(record), entry.version]);
  const dropped: string[] = [];
  for (const { version } of versions) {
    if (versions.length - dropped.length <= APP_VERSIONS_MAX) break;
    if (!kept.has(version)) dropped.push(version);
  }
  return {
    record: { ...record, versions: versions.filter(({ version }) => !dropped.includes(version)) },
    dropped,
  };
}

/**
 * Returns the reason why a manifest changes a table's key or where it lives; null where none does. Rows are found by
 * their table's key, so a changed one would lose them. Each table is compared with the newest earlier version that has
 * it.
 */
export function changedKey(manifest: StoredManifest, earlier: readonly StoredManifest[]): string | null {
  for (const [name, table] of Object.entries(manifest.tables)) {
    const before = earlier.findLast((older) => Object.hasOwn(older.tables, name))?.tables[name];
    if (before === undefined) continue;
    if (before.key.join("\0") !== table.key.join("\0")) {
      return `table ${name} has the key [${before.key.join(", ")}] and cannot get the key ` +
        `[${table.key.join(", ")}]: make another table, and copy the rows`;
    }
    if (before.at !== table.at) {
      return `table ${name} lives ${whereOf(before.at)} and cannot move ${
        whereOf(table.at)
      }: make another table`;
    }
  }
  return null;
}

const whereOf = (at: string | undefined): string => at === "root" ? "at the root" : "at every site";
