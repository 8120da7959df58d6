/** Request, Response, FormData, Blob, File. */
import { type Probes, rejection, thrown } from "./probe.ts";

const head = (response: Response): unknown[] => [
  response.status,
  response.statusText,
  response.ok,
  response.type,
  response.url,
  response.redirected,
  [...response.headers],
];

function form(): FormData {
  const data = new FormData();
  data.append("a", "1");
  data.append("a", "2");
  data.set("f", new File(["content"], "n.txt", { type: "text/plain", lastModified: 5 }));
  data.append("b", new Blob(["blob"]), "named.bin");
  return data;
}

export const bodies: Probes = {
  "Response defaults": () => head(new Response()),
  "Response string": () => head(new Response("x", { status: 201, statusText: "Made" })),
  "Response json": async () => {
    const response = Response.json({ a: [1] }, { status: 202, headers: { x: "y" } });
    return [head(response), await response.text()];
  },
  "Response json of undefined": () => thrown(() => Response.json(undefined)),
  "Response json keeps content type": () =>
    Response.json(1, { headers: { "content-type": "application/vnd.x+json" } }).headers.get("content-type"),
  "Response redirect": () => head(Response.redirect("http://h/x", 307)),
  "Response redirect default": () => Response.redirect("http://h/x").status,
  "Response redirect bad status": () => thrown(() => Response.redirect("http://h/x", 200)),
  "Response redirect bad url": () => thrown(() => Response.redirect("nope")),
  "Response error": () => head(Response.error()),
  "Response bad status": () => thrown(() => new Response(null, { status: 199 })),
  "Response status 101": () => thrown(() => new Response(null, { status: 101 })),
  "Response body with 204": () => thrown(() => new Response("x", { status: 204 })),
  "Response bad status text": () => thrown(() => new Response(null, { statusText: "a\nb" })),
  "Response constructor identity": () => {
    const response = new Response("x");
    return [
      response instanceof Response,
      response.constructor === Response,
      Response.name,
      Response.length,
      Object.prototype.toString.call(response),
      Response.json({}) instanceof Response,
      Response.error().constructor === Response,
    ];
  },
  "Response without new": () => thrown(() => (Response as unknown as () => unknown)()),
  "Response subclass": async () => {
    class Own extends Response {
      own = 1;
    }
    const own = new Own("x", { status: 203 });
    return [own instanceof Own, own instanceof Response, own.status, own.own, await own.text()];
  },
  "Response printed": () => Deno.inspect(new Response("x", { headers: { a: "b" } })),
  "Response clone": async () => {
    const response = new Response("text", { status: 203, headers: { a: "b" } });
    const copy = response.clone();
    return [head(copy), await copy.text(), response.bodyUsed, await response.text(), response.bodyUsed];
  },
  "Response clone of a used one": async () => {
    const response = new Response("x");
    await response.text();
    return thrown(() => response.clone());
  },
  "Response read twice": async () => {
    const response = new Response("x");
    await response.text();
    return await rejection(() => response.text());
  },
  "Response bytes and arrayBuffer": async () => [
    await new Response(new Uint8Array([1, 2])).bytes(),
    await new Response("é").arrayBuffer(),
  ],
  "Response of everything": async () => {
    const sources: BodyInit[] = [
      "s",
      new Uint8Array([65]),
      new DataView(new ArrayBuffer(1)),
      new Blob(["b"], { type: "x/y" }),
      new URLSearchParams({ a: "1" }),
      new Response("inner").body as ReadableStream<Uint8Array<ArrayBuffer>>,
    ];
    return await Promise.all(sources.map(async (source) => {
      const response = new Response(source);
      return [response.headers.get("content-type"), await response.text()];
    }));
  },
  "Response bad json": () => rejection(() => new Response("{").json()),
  "Response body null": () => [new Response().body, new Response(null).body, new Response("").body === null],
  "Response headers are shared": () => {
    const response = new Response("x");
    response.headers.set("a", "b");
    return [...response.headers];
  },
  "Response immutable headers": () => thrown(() => Response.redirect("http://h/").headers.set("a", "b")),
  "Request defaults": () => {
    const request = new Request("http://h/p#f");
    const {
      method,
      url,
      redirect,
      bodyUsed,
      body,
      cache,
      credentials,
      mode,
      referrer,
      keepalive,
      integrity,
    } = request;
    return [method, url, redirect, bodyUsed, body, cache, credentials, mode, referrer, keepalive, integrity];
  },
  "Request of a request": async () => {
    const first = new Request("http://h/", { method: "POST", body: "b", headers: { a: "1" } });
    const second = new Request(first, { headers: { c: "2" } });
    return [second.method, [...second.headers], first.bodyUsed, await second.text()];
  },
  "Request method case": () =>
    ["get", "post", "patch", "Custom"].map((method) => new Request("http://h", { method }).method),
  "Request body with GET": () => thrown(() => new Request("http://h", { body: "x" })),
  "Request forbidden method": () => thrown(() => new Request("http://h", { method: "TRACE" })),
  "Request bad url": () => thrown(() => new Request("/relative")),
  "Request clone": async () => {
    const request = new Request("http://h", { method: "POST", body: "x" });
    const copy = request.clone();
    return [await request.text(), await copy.text(), request.bodyUsed];
  },
  "Request signal": () => {
    const controller = new AbortController();
    const request = new Request("http://h", { signal: controller.signal });
    const copy = new Request(request);
    controller.abort("why");
    return [
      request.signal.aborted,
      request.signal.reason,
      copy.signal.aborted,
      request.clone().signal.aborted,
    ];
  },
  "Request stream body": async () => {
    const body = new Blob(["s", "t"]).stream();
    return await new Request("http://h", { method: "POST", body, duplex: "half" } as RequestInit).text();
  },
  "Request printed": () => Deno.inspect(new Request("http://h/x", { headers: { a: "b" } })),
  "incoming request": ({ request }) => [
    request instanceof Request,
    request.method,
    request.redirect,
    request.bodyUsed,
    request.signal.aborted,
    request.signal instanceof AbortSignal,
    request.clone().method,
    Object.prototype.toString.call(request),
  ],
  "incoming request as init": ({ request }) => new Request("http://other/", request).method,
  "incoming request headers are those sent": ({ request }) => request.headers.get("x-probe"),
  "FormData entries": () =>
    [...form()].map((
      [name, value],
    ) => [name, typeof value === "string" ? value : [value.name, value.type, value.size]]),
  "FormData get, getAll, has, delete": () => {
    const data = form();
    data.delete("b");
    return [data.get("a"), data.getAll("a"), data.has("b"), data.get("none")];
  },
  "FormData round trip": async () => {
    const response = new Response(form());
    const type = response.headers.get("content-type")?.replace(/boundary=.*/, "boundary");
    const back = await response.formData();
    const file = back.get("f") as File;
    return [type, back.getAll("a"), file.name, file.type, await file.text(), (back.get("b") as File).name];
  },
  "FormData of urlencoded":
    async () => [...await new Response(new URLSearchParams({ a: "1 2", b: "é" })).formData()],
  "FormData of another type": () => rejection(() => new Response("x").formData()),
  "FormData bad multipart": () =>
    rejection(() =>
      new Response("--x", { headers: { "content-type": "multipart/form-data; boundary=x" } }).formData()
    ),
  "Blob slice and type": async () => {
    const blob = new Blob(["hello ", new Uint8Array([119]), new Blob(["orld"])], { type: "Text/PLAIN" });
    const part = blob.slice(-5, -1, "a/b");
    return [blob.size, blob.type, await part.text(), part.type, await blob.bytes()];
  },
  "Blob line endings": async () => (await new Blob(["a\r\nb"], { endings: "native" }).text()).length,
  "Blob stream": async () =>
    await new Response(new Blob(["x".repeat(100_000)]).stream()).text().then((t) => t.length),
  "File": () => {
    const file = new File(["x"], "n", { type: "t/t", lastModified: 1 });
    return [file.name, file.type, file.lastModified, file.size, file instanceof Blob];
  },
  "URL.createObjectURL": () => URL.createObjectURL(new Blob(["x"])).startsWith("blob:"),
};
