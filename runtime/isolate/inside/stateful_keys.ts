/**
 * Keys that `crypto.subtle` makes in a stateful session: made once, and in the log, so that a replay has the same ones.
 *
 * SK1  A key is made extractable, and written into the log; the one that the app gets is imported from there, at a
 *      replay too, and is extractable only if it asked for that.
 */
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { argumentsText } from "./stateful_arguments.ts";
import type { Current } from "./stateful_current.ts";

type Define = (target: object, name: string, value: unknown) => unknown;
type Algorithm = AlgorithmIdentifier & { readonly name?: string };

/** Usages of the private key of a pair; the public one has the rest. */
const PRIVATE: ReadonlySet<KeyUsage> = new Set(["sign", "decrypt", "unwrapKey", "deriveKey", "deriveBits"]);
const utf8 = new TextEncoder();

/** Deno's own operations, before they are replaced. */
const subtle = crypto.subtle;
const exportKey = subtle.exportKey.bind(subtle) as (format: string, key: CryptoKey) => Promise<ArrayBuffer>;
const importKey = subtle.importKey.bind(subtle) as (
  format: string,
  bytes: Uint8Array,
  algorithm: unknown,
  extractable: boolean,
  usages: readonly KeyUsage[],
) => Promise<CryptoKey>;
const generate = subtle.generateKey.bind(subtle) as (
  algorithm: unknown,
  extractable: boolean,
  usages: readonly KeyUsage[],
) => Promise<CryptoKey | CryptoKeyPair>;
const derive = subtle.deriveKey.bind(subtle) as (
  algorithm: unknown,
  base: CryptoKey,
  type: unknown,
  extractable: boolean,
  usages: readonly KeyUsage[],
) => Promise<CryptoKey>;

/** Replaces the operations that make keys. */
export function installKeys(current: Current, define: Define, copyOf: (value: unknown) => unknown): void {
  define(SubtleCrypto.prototype, "generateKey", async (
    algorithm: Algorithm,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ) => {
    const given = copyOf(algorithm), wanted = [...usages];
    const args = [given, extractable, wanted];
    const bytes = await recorded(current, "crypto.subtle.generateKey", args, async () => {
      const made = await generate(given, true, wanted);
      const writer = new Writer();
      if (made instanceof CryptoKey) return writer.byte(1).bytes(await raw("raw", made)).done();
      writer.byte(2).bytes(await raw("pkcs8", made.privateKey));
      return writer.bytes(await raw("spki", made.publicKey)).done();
    });
    const reader = new Reader(bytes);
    if (reader.byte() === 1) return await importKey("raw", reader.bytes(), given, extractable, wanted);
    const [privateUsages, publicUsages] = [true, false].map((isPrivate) =>
      wanted.filter((usage) => PRIVATE.has(usage) === isPrivate)
    );
    const privateKey = await importKey("pkcs8", reader.bytes(), given, extractable, privateUsages ?? []);
    const publicKey = await importKey("spki", reader.bytes(), given, true, publicUsages ?? []);
    return { privateKey, publicKey };
  });
  define(SubtleCrypto.prototype, "deriveKey", async (
    algorithm: Algorithm,
    base: CryptoKey,
    type: Algorithm,
    extractable: boolean,
    usages: readonly KeyUsage[],
  ) => {
    const given = copyOf(algorithm), wanted = [...usages];
    const bytes = await recorded(
      current,
      "crypto.subtle.deriveKey",
      [given, base, type, extractable, wanted],
      async () => await raw("raw", await derive(given, base, type, true, wanted)),
    );
    return await importKey("raw", bytes, type, extractable, wanted);
  });
}

const raw = async (format: string, key: CryptoKey): Promise<Uint8Array> =>
  new Uint8Array(await exportKey(format, key));

/** Makes a call in this isolate whose result is in the log; resolves to the bytes of it. */
function recorded(
  current: Current,
  name: string,
  args: readonly unknown[],
  run: () => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const program: Program | undefined = current();
  if (program === undefined) {
    return Promise.reject(new TypeError(`${name} works in a handler, not while a module loads`));
  }
  return new Promise((resolve, reject) => {
    program.call({
      kind: "native",
      bytes: utf8.encode(name),
      name,
      args: () => argumentsText(args),
      done: (bytes) => resolve(bytes.slice()),
      failed: (code, message) => reject(new DOMException(message, code)),
      start: run,
    }, false);
  });
}
