/**
 * Arguments of an operation of `crypto`, as a text: the rolling check covers it
 * (functions/sessions/turn/rolling_check.ts).
 */
import { checkText, RollingCheck } from "../../../functions/sessions/turn/rolling_check.ts";

/**
 * Returns a text that is the same for the same arguments; bytes, which may be somebody's secret and long, stand in it
 * by their check.
 */
export function argumentsText(args: readonly unknown[]): string {
  return JSON.stringify(args, (_, value: unknown) => {
    if (value instanceof CryptoKey) {
      const { type, extractable, algorithm, usages } = value;
      return { type, extractable, algorithm, usages };
    }
    if (value instanceof ArrayBuffer) return bytesText(new Uint8Array(value));
    if (ArrayBuffer.isView(value)) {
      return bytesText(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    }
    return typeof value === "bigint" ? `${value}n` : value;
  });
}

function bytesText(bytes: Uint8Array): string {
  const check = new RollingCheck();
  check.widen();
  check.bytes(bytes);
  return `${bytes.length} bytes ${checkText(check)}`;
}
