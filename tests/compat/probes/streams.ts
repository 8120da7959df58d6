/** Streams, text encoding, compression. */
import { type Probes, rejection, thrown } from "./probe.ts";

const text = (stream: ReadableStream): Promise<string> => new Response(stream).text();
const bytesOf = (value: string): ReadableStream<Uint8Array<ArrayBuffer>> => new Blob([value]).stream();
const numbers = (count: number): ReadableStream<number> =>
  ReadableStream.from(Array.from({ length: count }, (_, i) => i));

export const streams: Probes = {
  "ReadableStream.from": async () => await Array.fromAsync(numbers(3)),
  "ReadableStream pull and cancel": async () => {
    const events: unknown[] = [];
    const stream = new ReadableStream<number>({
      start: () => void events.push("start"),
      pull: (controller) => controller.enqueue(events.push("pull")),
      cancel: (reason) => void events.push(reason),
    });
    for await (const value of stream) if (value > 3) break;
    return events;
  },
  "ReadableStream tee": async () => {
    const [a, b] = numbers(2).tee();
    return [await Array.fromAsync(a), await Array.fromAsync(b)];
  },
  "ReadableStream locked": () => {
    const stream = numbers(1);
    stream.getReader();
    return [stream.locked, thrown(() => stream.getReader())];
  },
  "ReadableStream error": () =>
    rejection(() => text(new ReadableStream({ start: (controller) => controller.error(new Error("bad")) }))),
  "ReadableStream bytes, by request": async () => {
    const stream = new ReadableStream({
      type: "bytes",
      pull(controller) {
        const view = controller.byobRequest?.view as Uint8Array | undefined;
        if (view === undefined) return controller.close();
        view[0] = 7;
        controller.byobRequest?.respond(1);
      },
    });
    const reader = stream.getReader({ mode: "byob" });
    return (await reader.read(new Uint8Array(4))).value;
  },
  "ReadableStream backpressure": async () => {
    let pulls = 0;
    const stream = new ReadableStream({ pull: (controller) => controller.enqueue(++pulls) }, {
      highWaterMark: 3,
    });
    await new Promise((resolve) => setTimeout(resolve, 0));
    await stream.cancel();
    return pulls;
  },
  "TransformStream": async () => {
    const doubled = numbers(3).pipeThrough(
      new TransformStream<number, number>({ transform: (n, controller) => controller.enqueue(n * 2) }),
    );
    return await Array.fromAsync(doubled);
  },
  "TransformStream of nothing": async () => {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    writer.write("a").then(() => writer.close());
    return await Array.fromAsync(readable as ReadableStream<string>);
  },
  "WritableStream": async () => {
    const got: unknown[] = [];
    const sink = new WritableStream({
      write: (chunk) => void got.push(chunk),
      close: () => void got.push("closed"),
    });
    await numbers(2).pipeTo(sink);
    return got;
  },
  "WritableStream aborted": async () => {
    const writer = new WritableStream().getWriter();
    await writer.abort(new Error("stop"));
    return await rejection(() => writer.write(1));
  },
  "pipeTo with a signal": () =>
    rejection(() => numbers(2).pipeTo(new WritableStream(), { signal: AbortSignal.abort("no") })),
  "queuing strategies": () => [
    new CountQueuingStrategy({ highWaterMark: 2 }).size(null),
    new ByteLengthQueuingStrategy({ highWaterMark: 2 }).size(new Uint8Array(3)),
  ],
  "TextEncoder and TextDecoder": () => [
    new TextEncoder().encode("é€😀\ud800"),
    new TextEncoder().encodeInto("é€", new Uint8Array(4)),
    new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0xc3])),
    new TextDecoder("latin1").encoding,
    new TextDecoder("utf-16le").decode(new Uint8Array([65, 0])),
    new TextDecoder("shift_jis").decode(new Uint8Array([0x82, 0xa0])),
  ],
  "TextDecoder fatal": () =>
    thrown(() => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([0xff]))),
  "TextDecoder unknown": () => thrown(() => new TextDecoder("nope")),
  "TextDecoderStream": async () => {
    const halves = ReadableStream.from([new Uint8Array([0xc3]), new Uint8Array([0xa9])]);
    return await Array.fromAsync(halves.pipeThrough(new TextDecoderStream()));
  },
  "TextEncoderStream": async () =>
    await Array.fromAsync(ReadableStream.from(["é"]).pipeThrough(new TextEncoderStream())),
  "CompressionStream gzip": async () => {
    const packed = bytesOf("x".repeat(1000)).pipeThrough(new CompressionStream("gzip"));
    return await text(packed.pipeThrough(new DecompressionStream("gzip"))).then((t) => t.length);
  },
  "CompressionStream deflate-raw": async () =>
    await text(
      bytesOf("abc").pipeThrough(new CompressionStream("deflate-raw")).pipeThrough(
        new DecompressionStream("deflate-raw"),
      ),
    ),
  "CompressionStream unknown": () => thrown(() => new CompressionStream("lzma" as CompressionFormat)),
  "DecompressionStream of garbage": () =>
    rejection(() => text(bytesOf("garbage").pipeThrough(new DecompressionStream("gzip")))),
  "atob and btoa": () => [btoa("hello"), atob("aGVsbG8="), thrown(() => atob("*")), thrown(() => btoa("€"))],
};
