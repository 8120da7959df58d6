/** Bundles, from rows that another site sent: under their hash, or not at all. */
import { fetchBundle } from "../../runtime/deploy/bundle_fetch.ts";
import {
  bundleChunks,
  bundleDigest,
  chunkKey,
  decodeVersion,
  storedManifest,
  versionOf,
  type VersionRecord,
} from "../../runtime/deploy/records.ts";
import { encodeSystem } from "../../store/model/system_value.ts";
import { MemorySystem } from "../runtime/deploy/memory_system.ts";
import { type Dice, mutateBytes, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

interface Stored {
  readonly bundle: Uint8Array;
  readonly record: VersionRecord;
  readonly chunks: readonly Uint8Array[];
}

const MANIFEST = { handlers: ["fetch"] };
const BYTES = [0, 1, 800, 4_000, 61_000, 130_000];

function stored(bytes: number): Stored {
  const bundle = Uint8Array.from({ length: bytes }, (_, i) => 32 + i * 7 % 91);
  const chunks = bundleChunks(bundle);
  const record: VersionRecord = {
    version: versionOf(MANIFEST, bundle),
    manifest: storedManifest(MANIFEST),
    bundleSha256: bundleDigest(bundle),
    bundleBytes: bundle.length,
    bundleChunks: chunks.length,
    createdMs: 1,
  };
  return { bundle, record, chunks };
}

/** Rows of a bundle: changed bytes, a row lost, doubled, or two in the wrong order. */
function changedChunks(dice: Dice, { chunks }: Stored, other: Stored): Uint8Array[] {
  const out = [...chunks];
  const at = dice.below(out.length);
  const chunk = out[at] ?? new Uint8Array();
  switch (dice.below(8)) {
    case 0:
      out.splice(at, 1);
      return out;
    case 1:
      // Behind the last one it would not be looked at.
      out.splice(at, 0, out.length > 1 ? chunk : mutateBytes(dice, chunk));
      return out;
    case 2:
      return out.length > 1 ? out.reverse() : [mutateBytes(dice, chunk)];
    case 3:
      return [...other.chunks];
    default:
      out[at] = mutateBytes(dice, chunk, other.chunks[0]);
      return out;
  }
}

async function read(record: VersionRecord, chunks: readonly Uint8Array[]): Promise<Uint8Array | null> {
  const system = new MemorySystem();
  await system.write(
    chunks.map((value, i) => ({ kind: "set" as const, key: chunkKey(record.version, i), value })),
  );
  try {
    return await fetchBundle(system, record);
  } catch (error) {
    if (error instanceof Error && error.message.includes("is not whole here")) return null;
    throw error;
  }
}

/** The chunks' rows, and the version row that names them. */
export const bundles: Target = {
  name: "bundles",
  says: "none runs: what is not under the hash is refused",
  reaches: ["refused", "record refused"],
  quick: 3_000,
  open() {
    const corpus = BYTES.map(stored);
    return {
      async attempt(dice) {
        // Small ones more often: there is more to find per second.
        const one = corpus[Math.min(dice.below(corpus.length), dice.below(corpus.length))] ?? stored(0);
        const other = dice.pick(corpus.filter((each) => each !== one));
        if (dice.below(4) === 0) return attemptRecord(dice, one, other);
        const chunks = changedChunks(dice, one, other);
        const got = await read(one.record, chunks);
        if (got === null) return "refused";
        if (!same(got, one.bundle)) throw new Finding(`other bytes were taken for ${one.record.version}`);
        return "the bundle itself";
      },
    };
  },
};

/** A changed version row: it can't be read, or its bundle can't, or it is the bundle that it names. */
async function attemptRecord(dice: Dice, one: Stored, other: Stored): Promise<string> {
  const row = mutateBytes(dice, encodeSystem(one.record), encodeSystem(other.record));
  let record: VersionRecord;
  try {
    record = decodeVersion(row);
  } catch (error) {
    const isRefusal = error instanceof SyntaxError || error instanceof TypeError ||
      error instanceof Error && error.constructor.name === "ZodError";
    if (isRefusal) return "record refused";
    throw error;
  }
  const got = await read(record, one.chunks);
  if (got === null) return "refused";
  if (bundleDigest(got) !== record.bundleSha256) throw new Finding("a bundle under another hash");
  return "the bundle that the record names";
}
