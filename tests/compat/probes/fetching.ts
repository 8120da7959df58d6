/** `fetch`: inside an isolate through the site's egress. Every address is of ../echo_server.ts. */
import { type Probes, rejection } from "./probe.ts";

/** What the echo server says of a request. */
interface Echo {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Headers whose values belong to the client's own HTTP stack. */
const OWN = new Set([
  "host",
  "user-agent",
  "accept-encoding",
  "connection",
  "accept-language",
  "content-length",
  "transfer-encoding",
]);

async function echoOf(response: Response): Promise<unknown> {
  const { method, path, headers, body } = await response.json() as Echo;
  return [method, path, Object.entries(headers).filter(([name]) => !OWN.has(name)).sort(), body];
}

const facts = (response: Response, echo: string): unknown[] => [
  response.status,
  response.statusText,
  response.ok,
  response.type,
  response.redirected,
  response.url.replace(echo, "ECHO"),
  response.body !== null,
];

export const fetching: Probes = {
  "fetch GET": async ({ echo }) => await echoOf(await fetch(`${echo}/a?b=1`, { headers: { "x-a": "1" } })),
  "fetch facts": async ({ echo }) => {
    const response = await fetch(`${echo}/`);
    await response.text();
    return facts(response, echo);
  },
  "fetch of a URL and of a Request": async ({ echo }) => [
    await echoOf(await fetch(new URL(`${echo}/url`))),
    await echoOf(
      await fetch(new Request(`${echo}/request`, { method: "PUT", body: "b" }), { headers: { "x-b": "2" } }),
    ),
  ],
  "fetch with each kind of body": async ({ echo }) => {
    const sources: BodyInit[] = [
      "text",
      new Uint8Array([66]),
      new Blob(["blob"], { type: "a/b" }),
      new URLSearchParams({ a: "1" }),
    ];
    return await Promise.all(
      sources.map(async (body) => await echoOf(await fetch(`${echo}/`, { method: "POST", body }))),
    );
  },
  "fetch with a form": async ({ echo }) => {
    const body = new FormData();
    body.set("a", "1");
    const { body: sent } = await (await fetch(`${echo}/`, { method: "POST", body })).json() as Echo;
    return sent.replace(/-{4,}[\w-]+/g, "BOUNDARY");
  },
  "fetch with a stream": async ({ echo }) => {
    const body = ReadableStream.from(["one ", "two"]).pipeThrough(new TextEncoderStream());
    return await echoOf(await fetch(`${echo}/`, { method: "POST", body, duplex: "half" } as RequestInit));
  },
  "fetch with a stream that fails": async ({ echo }) => {
    const body = new ReadableStream({ start: (controller) => controller.error(new Error("source failed")) });
    const got = await rejection(() => fetch(`${echo}/`, { method: "POST", body }));
    return got.replace(/ .*/, "");
  },
  "fetch response headers": async ({ echo }) => {
    const { headers, body } = await fetch(`${echo}/cookies`);
    await body?.cancel();
    return [headers.getSetCookie(), headers.get("x-many"), headers.has("content-length")];
  },
  "fetch response headers are immutable": async ({ echo }) => {
    const response = await fetch(`${echo}/`);
    await response.body?.cancel();
    return await rejection(() => response.headers.set("a", "b"));
  },
  "fetch HEAD and 204": async ({ echo }) => {
    const [head, empty] = [await fetch(`${echo}/`, { method: "HEAD" }), await fetch(`${echo}/status/204`)];
    return [head.status, await head.text(), empty.status, empty.body, await empty.text()];
  },
  "fetch of failing statuses": async ({ echo }) => {
    const response = await fetch(`${echo}/status/500`);
    return [response.ok, response.status, response.statusText, await response.text()];
  },
  "fetch streams a response": async ({ echo }) => {
    const response = await fetch(`${echo}/chunks`);
    let text = "";
    for await (
      const chunk of (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(
        new TextDecoderStream(),
      )
    ) text += chunk;
    return text;
  },
  "fetch large bodies": async ({ echo }) => {
    const response = await fetch(`${echo}/length`, { method: "POST", body: new Uint8Array(3_000_000) });
    return [await response.text(), (await (await fetch(`${echo}/big`)).bytes()).length];
  },
  "fetch decodes gzip": async ({ echo }) => {
    const response = await fetch(`${echo}/gzip`);
    return [await response.text(), response.headers.get("content-length")];
  },
  "fetch decodes brotli": async ({ echo }) => await (await fetch(`${echo}/brotli`)).text(),
  "fetch follows redirects": async ({ echo }) => {
    const response = await fetch(`${echo}/redirect/302?to=/there`);
    return [...facts(response, echo), await echoOf(response)];
  },
  "fetch follows a redirect after POST": async ({ echo }) =>
    await Promise.all([301, 302, 303, 307, 308].map(async (status) => {
      const response = await fetch(`${echo}/redirect/${status}?to=/there`, {
        method: "POST",
        body: "b",
        headers: { "x-a": "1", "content-type": "text/x" },
      });
      return await echoOf(response);
    })),
  "fetch of a redirect to itself": async ({ echo }) =>
    (await rejection(() => fetch(`${echo}/loop`))).replace(/:.*/, ""),
  "fetch redirect manual": async ({ echo }) => {
    const response = await fetch(`${echo}/redirect/302?to=/there`, { redirect: "manual" });
    await response.body?.cancel();
    return [...facts(response, echo), response.headers.get("location")];
  },
  "fetch redirect error": async ({ echo }) =>
    (await rejection(() => fetch(`${echo}/redirect/302?to=/there`, { redirect: "error" }))).replace(
      /:.*/,
      "",
    ),
  "fetch keeps the fragment": async ({ echo }) => {
    const response = await fetch(`${echo}/#part`);
    await response.body?.cancel();
    return response.url.replace(echo, "ECHO");
  },
  "fetch aborted before": ({ echo }) => rejection(() => fetch(`${echo}/`, { signal: AbortSignal.abort() })),
  "fetch aborted by a reason": ({ echo }) =>
    rejection(() => fetch(`${echo}/`, { signal: AbortSignal.abort(new Error("mine")) })),
  "fetch aborted on its way": ({ echo }) =>
    rejection(() => fetch(`${echo}/slow`, { signal: AbortSignal.timeout(50) })),
  "fetch aborted in its body": async ({ echo }) => {
    const controller = new AbortController();
    const response = await fetch(`${echo}/endless`, { signal: controller.signal });
    controller.abort();
    return await rejection(() => response.text());
  },
  "fetch body can be cancelled": async ({ echo }) => {
    const response = await fetch(`${echo}/endless`);
    await response.body?.cancel();
    return response.bodyUsed;
  },
  "fetch response clone": async ({ echo }) => {
    const response = await fetch(`${echo}/`);
    const copy = response.clone();
    return [facts(copy, echo), (await response.text()) === (await copy.text())];
  },
  "fetch of a response that breaks off": async ({ echo }) => {
    const response = await fetch(`${echo}/breaks`);
    return (await rejection(() => response.text())).replace(/:.*/, "");
  },
  "fetch of nobody": async () => (await rejection(() => fetch("http://127.0.0.1:1/"))).replace(/:.*/, ""),
  "fetch bad url": () => rejection(() => fetch("no url")),
  "fetch bad scheme": async () => (await rejection(() => fetch("ftp://h/"))).replace(/:.*/, ""),
  "fetch of a used request": async ({ echo }) => {
    const request = new Request(`${echo}/`, { method: "POST", body: "x" });
    await request.text();
    return (await rejection(() => fetch(request))).replace(/:.*/, "");
  },
  "fetch data:": async () => await (await fetch("data:text/plain,hello")).text(),
  "fetch blob:": async () => {
    const url = URL.createObjectURL(new Blob(["blobbed"], { type: "a/b" }));
    const response = await fetch(url);
    URL.revokeObjectURL(url);
    return [response.status, response.headers.get("content-type"), await response.text()];
  },
  "fetch user agent and defaults": async ({ echo }) => {
    const { headers } = await (await fetch(`${echo}/`)).json() as Echo;
    return [
      headers["user-agent"]?.replace(/\/.*/, ""),
      headers["accept"],
      headers["accept-language"],
      headers["accept-encoding"],
    ];
  },
  "fetch keeps the app's own user agent": async ({ echo }) => {
    const { headers } = await (await fetch(`${echo}/`, { headers: { "user-agent": "mine/1" } }))
      .json() as Echo;
    return headers["user-agent"];
  },
  "fetch of many at once": async ({ echo }) => {
    const all = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => (await fetch(`${echo}/${i}`)).status),
    );
    return all.every((status) => status === 200);
  },
  "fetch with basic credentials in its URL": ({ echo }) =>
    rejection(() => fetch(echo.replace("//", "//u:p@") + "/").then(echoOf)),
  "fetch name": () => fetch.name,
};
