/**
 * Passwords as PBKDF2 hashes that name their own parameters: `pbkdf2-sha256$ROUNDS$SALT$HASH`, salt and hash in
 * base64, so that the number of rounds can grow without anybody's password changing.
 */

const SALT_BYTES = 16;
const HASH_BITS = 256;

/** Hashes a password under a new salt. */
export async function hashPassword(password: string, rounds: number): Promise<string> {
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  return `pbkdf2-sha256$${rounds}$${salt.toBase64()}$${(await derive(password, salt, rounds)).toBase64()}`;
}

/** Whether a password is the one that was hashed. */
export async function passwordMatches(password: string, hashed: string): Promise<boolean> {
  const [kind, rounds, salt, hash] = hashed.split("$");
  if (kind !== "pbkdf2-sha256" || salt === undefined || hash === undefined) return false;
  const derived = await derive(password, Uint8Array.fromBase64(salt), Number(rounds));
  const expected = Uint8Array.fromBase64(hash);
  let different = derived.length ^ expected.length;
  // In constant time: every byte is looked at, whatever the first ones say.
  for (const [i, byte] of derived.entries()) different |= byte ^ (expected[i] ?? 0);
  return different === 0;
}

async function derive(password: string, salt: Uint8Array<ArrayBuffer>, rounds: number): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(password), "PBKDF2", false, [
    "deriveBits",
  ]);
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt, iterations: rounds };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, HASH_BITS));
}
