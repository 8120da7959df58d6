/** Secrets over rows in memory, for tests of whatever has the admin handlers. */
import { SecretRing, SecretStore, SecretTable } from "../../../runtime/secrets/mod.ts";
import type { DeclaredSecrets } from "../../../runtime/secrets/mod.ts";
import type { MemorySystem } from "./memory_system.ts";

/** The ring of a cluster with these secrets, newest first. */
export function ringOf(...secrets: [string, ...string[]]): SecretRing {
  const [first, ...others] = secrets;
  const bytes = (text: string) => new TextEncoder().encode(text);
  return new SecretRing(
    [bytes(first), ...others.map(bytes)],
    (length) => crypto.getRandomValues(new Uint8Array(length)),
  );
}

/** What the admin handlers of a root need. */
export async function memorySecrets(
  system: MemorySystem,
  declared: (app: string) => DeclaredSecrets | null = () => null,
  ring: SecretRing = ringOf("the secret of a test's cluster"),
) {
  const store = await SecretStore.open({ system, ring, declared, nowMs: () => 1_000, note: () => {} });
  const table = await SecretTable.open({ system, ring, isRoot: true, note: () => {} });
  return { ring, store, table };
}
