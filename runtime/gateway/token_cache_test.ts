import { strict as assert } from "node:assert";
import { TokenCache } from "./token_cache.ts";

const text = (n: number) => `token-${String(n * 7919 % 999_983).padStart(6, "0")}`;

Deno.test("a token cache finds what was put last when texts are many", () => {
  const cache = new TokenCache<{ text: string; n: number }>();
  let found = 0;
  for (let n = 0; n < 50_000; n++) {
    cache.put({ text: text(n), n });
    assert.equal(cache.get(text(n))?.n, n);
    const before = cache.get(text(n - 1_000));
    if (before !== undefined) {
      assert.equal(before.n, n - 1_000);
      found++;
    }
  }
  assert(found > 45_000, `${found} of 49,000 were found a thousand later`);
});

Deno.test("a token cache has two places for texts that end alike, and the oldest gives way (TC1)", () => {
  const cache = new TokenCache<{ text: string }>();
  const texts = ["a", "b", "c"].map((lead) => `${lead}-bcdefgh`);
  for (const text of texts) cache.put({ text });
  assert.deepEqual(texts.map((text) => cache.get(text)?.text), [undefined, texts[1], texts[2]]);
});

Deno.test("a token cache gives nothing for a text that differs in one character (TC2)", () => {
  const cache = new TokenCache<{ text: string }>();
  cache.put({ text: "aaaa-bcdefgh" });
  assert.equal(cache.get("baaa-bcdefgh"), undefined);
  assert.equal(cache.get("aaaa-bcdefgi"), undefined);
  assert.equal(cache.get(""), undefined);
  assert.equal(cache.get("aaaa-bcdefgh")?.text, "aaaa-bcdefgh");
});

Deno.test("a token cache keeps one entry for a text that is put again", () => {
  const cache = new TokenCache<{ text: string; n: number }>();
  cache.put({ text: "same", n: 1 });
  cache.put({ text: "same", n: 2 });
  assert.equal(cache.get("same")?.n, 2);
});
