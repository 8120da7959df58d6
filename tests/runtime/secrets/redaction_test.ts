import assert from "node:assert/strict";
import { Redactor } from "../../../runtime/secrets/redaction.ts";

const KEY = "sk_live+4242/secret=value";
const PEM = "-----BEGIN KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END KEY-----\n";

const ROWS: readonly (readonly [says: string, text: string, redacted: string])[] = [
  ["a text without one", "nothing here", "nothing here"],
  ["the value", `key ${KEY}!`, "key [secret KEY]!"],
  ["it twice", `${KEY}${KEY}`, "[secret KEY][secret KEY]"],
  ["in JSON", JSON.stringify({ key: 'say "open"' }), '{"key":"[secret QUOTED]"}'],
  ["in a URL", `/?key=${encodeURIComponent(KEY)}`, "/?key=[secret KEY]"],
  ["in base64", `Basic ${btoa(KEY)}`, "Basic [secret KEY]=="],
  ["several lines", PEM, "[secret PEM]"],
  ["one line of them", "at MC4CAQAwBQYDK2VwBCIEIA it broke", "at [secret PEM] it broke"],
  [
    "one that is in another",
    "prefix-of-another and prefix-of-another-secret",
    "[secret SHORT] and [secret LONG]",
  ],
  ["one that is too short to tell from words", "the cat sat", "the cat sat"],
  ["one that was cut", `${"x".repeat(20)} sk_live+4242/sec…`, `${"x".repeat(20)} [secret KEY]…`],
  ["a cut that is none of it", "and so on…", "and so on…"],
  ["what looks like a pattern", "a.c(d)[e]*$ and abcd(d)", "[secret PATTERN] and abcd(d)"],
];

Deno.test("a redactor takes the values of secrets out of a text, as they may stand there (R1)", async (t) => {
  const redactor = new Redactor([
    ["KEY", KEY],
    ["QUOTED", 'say "open"'],
    ["PEM", PEM],
    ["SHORT", "prefix-of-another"],
    ["LONG", "prefix-of-another-secret"],
    ["CAT", "cat"],
    ["PATTERN", "a.c(d)[e]*$"],
  ]);
  for (const [says, text, redacted] of ROWS) {
    await t.step(says, () => assert.equal(redactor.redact(text), redacted));
  }
});

Deno.test("a redactor of no secrets changes nothing", () => {
  assert.equal(new Redactor([]).redact("text…"), "text…");
});
