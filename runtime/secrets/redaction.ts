/**
 * Takes the values of secrets out of text that leaves a site: log lines, error messages, stacks.
 *
 * Redaction is a net under mistakes, and no boundary: an app that means to show a secret can spell it in ways that
 * nothing recognises. Recognised are the value itself, its lines, and both as JSON, in a URL and in base64.
 *
 * R1  Values shorter than REDACTED_CHARS_MIN are left: to take them out would take words of ordinary text out, too.
 */

/**
 * Characters of the shortest value that is taken out: eight of them are hit by chance in no text that a person reads.
 */
export const REDACTED_CHARS_MIN = 8;
/** Ending of a text that was cut (isolate/inside/console.ts). */
const CUT = "…";

/** Redacts the values of one app's secrets. */
export class Redactor {
  readonly #nameOf: ReadonlyMap<string, string>;
  readonly #pattern: RegExp | null;

  /** @param secrets name and value; a name may have several, former values among them. */
  constructor(secrets: Iterable<readonly [name: string, value: string]>) {
    const nameOf = new Map<string, string>();
    for (const [name, value] of secrets) {
      for (const form of formsOf(value)) if (!nameOf.has(form)) nameOf.set(form, name);
    }
    this.#nameOf = nameOf;
    const forms = [...nameOf.keys()].sort((a, b) => b.length - a.length);
    this.#pattern = forms.length === 0
      ? null
      : new RegExp(forms.map((form) => RegExp.escape(form)).join("|"), "g");
  }

  /** Returns the text without the values. */
  redact(text: string): string {
    if (this.#pattern === null) return text;
    const out = text.replace(this.#pattern, (form) => this.#mark(form));
    return out.endsWith(CUT) ? this.#withoutCut(out) : out;
  }

  #mark(form: string): string {
    return `[secret ${this.#nameOf.get(form)}]`;
  }

  /** Removes the beginning of a value from the end of a text that was cut in the middle of it. */
  #withoutCut(text: string): string {
    const body = text.slice(0, -CUT.length);
    for (const form of this.#nameOf.keys()) {
      for (let length = Math.min(form.length - 1, body.length); length >= REDACTED_CHARS_MIN; length--) {
        if (body.endsWith(form.slice(0, length))) return body.slice(0, -length) + this.#mark(form) + CUT;
      }
    }
    return text;
  }
}

/** Returns the texts by which a value shows. */
function formsOf(value: string): Set<string> {
  const forms = new Set<string>();
  const plain = [value, value.trim(), ...value.split(/\r?\n/).map((line) => line.trim())];
  for (const text of plain) {
    if (text.length < REDACTED_CHARS_MIN) continue; // R1
    forms.add(text);
    forms.add(JSON.stringify(text).slice(1, -1));
    forms.add(encodeURIComponent(text.toWellFormed()));
    const bytes = new TextEncoder().encode(text);
    for (const alphabet of ["base64", "base64url"] as const) {
      forms.add(bytes.toBase64({ alphabet, omitPadding: true }));
    }
  }
  return forms;
}
