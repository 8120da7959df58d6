/** Contents that tell their number, and whether they are whole. */

/** The content with a number: from 100 bytes to 4 KiB. */
export function numbered(number: number): string {
  const text = `${number} `.repeat(20 + (number * 37) % 900);
  return `${text}end of ${number}\n`;
}

/** The number of a content; null where it is none of them, or not whole. */
export function numberOf(content: Uint8Array): number | null {
  const text = new TextDecoder().decode(content);
  const number = Number.parseInt(text);
  return text === numbered(number) ? number : null;
}
