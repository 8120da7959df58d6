/** Values of apps as JSON, for people and programs that are no app. */
import { isKvU64 } from "../../functions/values/kv_u64.ts";

/** Returns a value as JSON, with types that JSON lacks told by name. */
export function jsonValue(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_name, field: unknown) => {
      if (isKvU64(field)) return { $u64: `${field.value}` };
      if (typeof field === "bigint") return { $bigint: `${field}` };
      if (field instanceof Uint8Array) return { $bytes: field.toBase64() };
      if (field instanceof Map) return { $map: [...field] };
      if (field instanceof Set) return { $set: [...field] };
      return field;
    }) ?? "null",
  );
}
