import assert from "node:assert/strict";
import { SiteLog } from "./log.ts";

/** What is written on standard error meanwhile. */
function written(work: () => void): string {
  const write = Deno.stderr.writeSync;
  let text = "";
  Deno.stderr.writeSync = (bytes) => {
    text += new TextDecoder().decode(bytes);
    return bytes.length;
  };
  try {
    work();
  } finally {
    Deno.stderr.writeSync = write;
  }
  return text;
}

/** Clears the screen, in both forms, and turns the direction of writing. */
const STEERING = ["\x1b[2J", "\x9b2J", "\u202egnp", "a \x9b2J", "\x7f\x7f"];
// deno-lint-ignore no-control-regex -- they are what is looked for
const RAW = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

Deno.test("what an app prints, or a client is called, can't steer the terminal of a site's log (L2)", () => {
  for (const format of ["human", "json"] as const) {
    const log = new SiteLog("edge", format);
    for (const text of STEERING) {
      const line = written(() => {
        log.app({ app: "a", version: "1", level: "info", text });
        log.line("info", "client", { name: text, detail: { text } });
      });
      assert.doesNotMatch(line, RAW, format);
      assert.equal(line.split("\n").length, 3);
      if (format === "json") {
        assert.equal(JSON.parse(line.split("\n")[0] ?? "").text, text, "it says the same");
      }
    }
  }
});
