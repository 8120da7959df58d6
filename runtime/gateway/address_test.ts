import { strict as assert } from "node:assert";
import { addressOf, pathOf } from "./address.ts";

Deno.test("addressOf names app, prefix and target in both forms (GA1)", () => {
  const rows = [
    ["http://127.0.0.1:8000/book/x?q=1", "book", "/book", "/x?q=1"],
    ["http://127.0.0.1:8000/book", "book", "/book", "/"],
    ["http://127.0.0.1:8000/book/", "book", "/book", "/"],
    ["http://127.0.0.1:8000/book?q", "book", "/book", "/?q"],
    ["http://127.0.0.1:8000/book//x", "book", "/book", "//x"],
    ["https://example.org/book/a/b", "book", "/book", "/a/b"],
    ["http://book.localhost:8000/x?q=1", "book", "", "/x?q=1"],
    ["http://book.localhost/", "book", "", "/"],
    ["http://book.localhost", "book", "", "/"],
    ["http://Book.LocalHost:8000/x", "book", "", "/x"],
    ["http://book.localhost./x", "book", "", "/x"],
    ["http://localhost:8000/book/x", "book", "/book", "/x"],
    ["http://a.book.localhost/other/x", "other", "/other", "/x"],
    ["http://[::1]:8000/book/x", "book", "/book", "/x"],
    ["http://127.0.0.1:8000/_sojourner/x", "_sojourner", "/_sojourner", "/x"],
  ] as const;
  for (const [url, app, prefix, target] of rows) {
    const address = addressOf(url);
    assert.equal(address.kind, "app", url);
    if (address.kind !== "app") continue;
    assert.deepEqual([address.app, address.prefix, address.target], [app, prefix, target], url);
    assert.equal(
      address.origin + prefix + target.replace(/^\/$/, ""),
      url.replace(/\/$/, "").replace("book?q", "book/?q"),
    );
  }
});

Deno.test("addressOf keeps the platform's paths and the front page from apps", () => {
  assert.deepEqual(addressOf("http://h/_sojourn/readyz?x=1"), { kind: "platform", path: "/_sojourn/readyz" });
  assert.deepEqual(addressOf("http://book.localhost/_sojourn/readyz"), {
    kind: "platform",
    path: "/_sojourn/readyz",
  });
  assert.deepEqual(addressOf("http://h/_sojourn"), { kind: "platform", path: "/_sojourn" });
  for (const url of ["http://h/", "http://h", "http://h/?q=1"]) {
    assert.equal(addressOf(url).kind, "front", url);
  }
});

Deno.test("addressOf has no destination when the host is none (GA2)", () => {
  for (
    const host of [
      "h:abc",
      "h:99999",
      "a b",
      "a%00b",
      "1.2.3.4.5",
      "x@y",
      "x@y/_sojourn",
      "h\\x",
      "[::1",
      "h#x",
    ]
  ) {
    assert.equal(addressOf(`http://${host}/book/x`).kind, "invalid", host);
  }
  // A slash in the header moves the path: the header tells.
  for (const named of ["h/_sojourn/readyz?", "evil.localhost/..", "h/", "h?", "h#"]) {
    assert.equal(addressOf(`http://${named}/book/x`, new Map(), named).kind, "invalid", named);
  }
  assert.equal(addressOf("http://other/book/x", new Map(), "h").kind, "invalid");
  for (const named of ["h", "", null]) {
    assert.equal(addressOf("http://h/book/x", new Map(), named).kind, "app");
  }
});

Deno.test("pathOf drops the query", () => {
  assert.equal(pathOf("/a?b?c"), "/a");
  assert.equal(pathOf("/a"), "/a");
});
