/** URL, URLSearchParams, URLPattern, Headers. */
import { type Probes, thrown } from "./probe.ts";

const fields = (url: URL): string[] => [
  url.href,
  url.origin,
  url.username,
  url.password,
  url.host,
  url.port,
  url.pathname,
  url.search,
  url.hash,
];

export const urls: Probes = {
  "URL parts": () => fields(new URL("https://u:p@Example.com:8443/a/../b//c?x=1&x=2#f")),
  "URL default port": () => fields(new URL("http://example.com:80/")),
  "URL relative": () => new URL("../x?y", "http://h/a/b/c").href,
  "URL unicode": () => new URL("http://exämple.com/ü?ö#ß").href,
  "URL setters": () => {
    const url = new URL("http://h/p");
    url.protocol = "https";
    url.port = "99999";
    url.hostname = "other";
    url.search = "a b";
    url.hash = "h h";
    return url.href;
  },
  "URL invalid": () => thrown(() => new URL("nothing")),
  "URL.canParse and parse":
    () => [URL.canParse("x:"), URL.canParse("x"), URL.parse("http://a/b")?.href, URL.parse("")],
  "URLSearchParams": () => {
    const params = new URLSearchParams([["b", "2"], ["a", "1 1"], ["a", "&"]]);
    params.sort();
    params.append("ü", "+");
    return [params.toString(), params.getAll("a"), params.has("a", "&"), params.size];
  },
  "URLSearchParams of records": () => String(new URLSearchParams({ q: "x y", z: "1" })),
  "URLPattern groups": () => {
    const found = new URLPattern({ pathname: "/books/:id(\\d+)/*" }).exec("http://h/books/12/a/b");
    return [
      found?.pathname.groups,
      found?.pathname.input,
      new URLPattern({ pathname: "/x" }).test("http://h/y"),
    ];
  },
  "URLPattern of a string": () =>
    new URLPattern("https://*.example.com/:a?").exec("https://x.example.com/q")?.hostname,
  "URLPattern invalid": () => thrown(() => new URLPattern({ pathname: "/:a:a" })),
  "Headers order and join": () => {
    const headers = new Headers([["B", "1"], ["a", "2"], ["b", "3"], ["Set-Cookie", "x"], [
      "set-cookie",
      "y",
    ]]);
    return [[...headers], headers.get("b"), headers.getSetCookie(), headers.has("A")];
  },
  "Headers of an object": () => [...new Headers({ X: "1", "content-TYPE": " t " })],
  "Headers invalid name": () => thrown(() => new Headers({ "a b": "1" })),
  "Headers invalid value": () => thrown(() => new Headers({ a: "b\nc" })),
  "Headers delete and set": () => {
    const headers = new Headers({ a: "1", b: "2" });
    headers.delete("A");
    headers.set("B", "3");
    return [[...headers.keys()], [...headers.values()]];
  },
  "Headers unicode value": () => thrown(() => new Headers({ a: "€" })),
};
