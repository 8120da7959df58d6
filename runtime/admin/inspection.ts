/**
 * Reading of an app's rows by an operator, at the root, which has them all. The values leave as they are stored: the
 * operator's command decodes them, so that no app's bytes are deserialised in a site's process.
 */
import { type Key, keyFromBytes, type KeyPart, packKey, unpackKey } from "../../store/model/key.ts";
import { resolve } from "../../store/model/merge.ts";
import { pointRange, prefixRange } from "../../store/model/range.ts";
import { versionstamp } from "../../store/model/row.ts";
import { ROWS_A_CALL_MAX } from "../deploy/admin_api.ts";
import { problemResponse } from "../gateway/problem.ts";
import type { SystemStore } from "../deploy/app_table.ts";

/**
 * Answers with rows of an app. The query has `key` (one row) or `prefix`, a packed key relative to the app
 * (functions/store_client.ts) in hexadecimal with at least one part, and `limit`; a list may begin `after` a key.
 */
export async function answerRows(
  system: SystemStore,
  app: string,
  query: URLSearchParams,
): Promise<Response> {
  const exact = query.get("key");
  const parts = keyParts(exact ?? query.get("prefix") ?? "");
  const limit = Number(query.get("limit") ?? ROWS_A_CALL_MAX);
  const afterText = query.get("after");
  const after = afterText === null ? undefined : keyParts(afterText);
  if (parts === null || after === null || !Number.isInteger(limit) || limit < 1) {
    return problemResponse(
      "not_found",
      "rows take a packed key or prefix in hexadecimal, and a limit from 1",
    );
  }
  const atRoot = parts[0] === "root";
  const lead = atRoot ? packKey(["r", app]) : packKey(["a", app]);
  const stored = (relative: KeyPart[]) => lead + packKey(atRoot ? relative.slice(1) : relative) as Key;
  const key = stored(parts);
  const below = exact === null ? prefixRange(key) : pointRange(key);
  const next = after === undefined ? below.start : pointRange(stored(after)).end;
  const range = { start: next > below.start ? next : below.start, end: below.end };
  const rows = await system.list(range, { limit: Math.min(limit, ROWS_A_CALL_MAX) });
  return Response.json(rows.flatMap((row) => {
    const value = resolve(row.value);
    const relative = [...atRoot ? ["root"] : [], ...unpackKey(row.key.slice(lead.length))];
    return value === null ? [] : [{
      key: keyHex(packKey(relative)),
      versionstamp: versionstamp(row),
      value: value.toBase64(),
    }];
  }));
}

const keyHex = (key: string): string =>
  Array.from(key, (unit) => unit.charCodeAt(0).toString(16).padStart(2, "0")).join("");

function keyParts(hex: string): ReturnType<typeof unpackKey> | null {
  try {
    const parts = unpackKey(keyFromBytes(Uint8Array.fromHex(hex)));
    return parts.length === 0 ? null : parts;
  } catch {
    return null; // neither hexadecimal nor a canonical key
  }
}
