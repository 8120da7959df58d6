/** A server for fetch probes: echoes requests as JSON, redirects, streams, compresses, breaks off. */
import { brotliCompressSync, gzipSync } from "node:zlib";

/** A running echo server. */
export interface EchoServer extends AsyncDisposable {
  readonly port: number;
  /** Its address, without a slash at its end. */
  readonly url: string;
}

/** Starts one on a free port of 127.0.0.1. */
export function startEcho(): EchoServer {
  const server = Deno.serve({
    port: 0,
    hostname: "127.0.0.1",
    onListen() {},
    onError: () => new Response("failed", { status: 500 }),
  }, answer);
  const { port } = server.addr;
  return { port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const [, kind = "", argument = ""] = url.pathname.split("/");
  switch (kind) {
    case "status":
      return new Response(argument === "204" ? null : "failed", { status: Number(argument) });
    case "redirect":
      return new Response(null, {
        status: Number(argument),
        headers: { location: url.searchParams.get("to") ?? "/" },
      });
    case "loop":
      return new Response(null, { status: Number(argument || 302), headers: { location: url.pathname } });
    case "cookies":
      return new Response("x", {
        headers: [["set-cookie", "a=1; Path=/"], ["set-cookie", "b=2"], ["x-many", "1"], ["x-many", "2"]],
      });
    case "chunks":
      return new Response(ReadableStream.from(["a", "b", "c"]).pipeThrough(new TextEncoderStream()));
    case "big":
      return new Response(new Uint8Array(2_000_000));
    case "length":
      return new Response(String((await request.bytes()).length));
    case "gzip":
      return new Response(new Uint8Array(gzipSync("zipped")), {
        headers: { "content-encoding": "gzip", "content-type": "text/plain" },
      });
    case "brotli":
      return new Response(new Uint8Array(brotliCompressSync("brotli")), {
        headers: { "content-encoding": "br" },
      });
    case "slow":
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      return new Response();
    case "endless":
      return new Response(endless());
    case "breaks":
      return new Response(breaks(), { headers: { "content-length": "1000" } });
  }
  const headers = Object.fromEntries(request.headers);
  return Response.json({
    method: request.method,
    path: url.pathname + url.search,
    headers,
    body: await request.text(),
  });
}

function endless(): ReadableStream<Uint8Array> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return new ReadableStream({
    start: (controller) => {
      controller.enqueue(new Uint8Array(10));
      timer = setInterval(() => controller.enqueue(new Uint8Array(10)), 20);
    },
    cancel: () => clearInterval(timer),
  });
}

function breaks(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: (controller) => {
      controller.enqueue(new Uint8Array(10));
      controller.error(new Error("broken off"));
    },
  });
}
