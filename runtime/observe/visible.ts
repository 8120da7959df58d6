/**
 * Texts of others (lines of apps, ids that their users choose, reasons of failures) made safe for an operator's
 * terminal: control characters are shown, not sent.
 */

/**
 * Characters that control a terminal: C0 but for tab and newline, DEL, C1, and those that turn the direction of
 * writing.
 */
// deno-lint-ignore no-control-regex -- control characters are what it looks for
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Returns a text without power over the terminal. */
export const visible = (text: string): string =>
  text.replaceAll("\r\n", "\n").replace(
    CONTROL,
    (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );

/** Returns JSON that says the same, without power over the terminal: its own form leaves all beyond ASCII as it is. */
export const visibleJson = (json: string): string =>
  json.replace(CONTROL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
