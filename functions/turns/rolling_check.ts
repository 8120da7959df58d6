/**
 * The rolling check: 32 bits over all that a program asked for and gave out, in order. Two runs of one log that do the
 * same have the same check; one that does otherwise shows at once with 255 in 256 (the low byte is in every
 * entry) and surely at a checkpoint.
 */

/** Where a session begins (FNV-1a's basis). */
export const CHECK_BEGIN = 0x811c9dc5;

export const checkNumber = (check: number, value: number): number => {
  let mixed = Math.imul(check ^ (value | 0), 0x9e3779b1);
  mixed ^= mixed >>> 15;
  // Above 32 bits too: counters and clocks are wider.
  const high = Math.trunc(value / 2 ** 32) | 0;
  return high === 0 ? mixed >>> 0 : Math.imul(mixed ^ high, 0x85ebca77) >>> 0;
};

/** Code unit by code unit. */
export function checkText(check: number, text: string): number {
  let mixed = checkNumber(check, text.length);
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), 0x01000193);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

/** FNV-1a by byte, with the length before it: 1 ns a byte. */
export function checkBytes(check: number, bytes: Uint8Array): number {
  let mixed = checkNumber(check, bytes.length);
  for (let i = 0; i < bytes.length; i++) mixed = Math.imul(mixed ^ (bytes[i] ?? 0), 0x01000193);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
