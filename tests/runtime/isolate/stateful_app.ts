/** An app whose stateful sessions touch everything that is recorded. */
import { AsyncResource, executionAsyncId } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { defineApp, type EnvOf, grid, map, Session, table } from "sojourn";
import { getCallSites } from "node:util";
import { gunzipSync, gzip } from "node:zlib";
import { z } from "zod";

const resources = {
  tables: {
    notes: table({
      schema: z.object({ id: z.string(), text: z.string() }),
      key: ["id"],
      indexes: { text: ["text"] },
    }),
  },
} as const;
type Env = EnvOf<typeof resources, { probe: Probe; other: Probe }>;

const loadedMs = Date.now();
const drawn = Math.random();
let secret = "drawn";
try {
  crypto.getRandomValues(new Uint8Array(8));
} catch (error) {
  secret = (error as Error).name;
}
/** A channel that all sessions share. */
const shared = new MessageChannel();
shared.port2.onmessage = ({ data }) => console.log(`heard ${data}`);
const product = (a: number, b: number): number => a * b;

class Probe extends Session<Env> {
  counts = map<string, number>();
  log: string[] = [];
  born = Date.now();

  count(name: string): number {
    const count = (this.counts.get(name) ?? 0) + 1;
    this.counts.set(name, count);
    return count;
  }

  ofModules(): unknown {
    return [loadedMs, drawn, secret];
  }

  /** Sends to itself, by a channel of its own and by the one that all share. */
  async echo(text: string): Promise<string> {
    const { port1, port2 } = new MessageChannel(), heard = Promise.withResolvers<string>();
    port2.onmessage = ({ data }) => heard.resolve(data);
    port1.postMessage(text);
    shared.port1.postMessage(text);
    return await heard.promise;
  }

  /** What comes of ways to change the channel that all share. */
  useShared(): string[] {
    const { port1, port2 } = shared;
    return [
      () => port2.onmessage = () => {},
      () => port2.addEventListener("message", () => {}),
      () => port1.start(),
      () => port2.close(),
      () => port2.postMessage("nobody listens there"),
    ].map((change) => {
      try {
        change();
        return "done";
      } catch (error) {
        return (error as Error).name;
      }
    });
  }

  /** Sends a body piece by piece. */
  async askStream(url: string): Promise<string> {
    const body = ReadableStream.from(["a", "bc", "d"].map((each) => new TextEncoder().encode(each)));
    const response = await fetch(url, { method: "POST", body });
    let text = "";
    for await (const piece of response.body ?? []) text += new TextDecoder().decode(piece);
    return text;
  }

  kept: JsonWebKey[] = [];

  /** Keys of all kinds, made and used; what they are, and what they did. */
  async keys(): Promise<unknown> {
    const data = new TextEncoder().encode("x");
    const aes = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, [
      "encrypt",
      "decrypt",
    ]);
    const hidden = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
      "sign",
      "verify",
    ]);
    const iv = new Uint8Array(12);
    const sealing = crypto.subtle.encrypt({ name: "AES-GCM", iv }, aes, data);
    iv.fill(1); // too late: it is the one that was given
    const sealed = await sealing;
    const opened = await crypto.subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, aes, sealed);
    const base = await crypto.subtle.importKey("raw", data, "HKDF", false, ["deriveKey"]);
    const hkdf = { name: "HKDF", hash: "SHA-256", salt: data, info: data };
    const derived = await crypto.subtle.deriveKey(hkdf, base, { name: "AES-CBC", length: 128 }, true, [
      "encrypt",
    ]);
    const signed = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, pair.privateKey, data);
    const isGood = await crypto.subtle.verify(
      { name: "ECDSA", hash: "SHA-256" },
      pair.publicKey,
      signed,
      data,
    );
    for (const key of [aes, pair.privateKey, derived]) {
      this.kept.push(await crypto.subtle.exportKey("jwk", key));
    }
    const mac = new Uint8Array(await crypto.subtle.sign("HMAC", hidden, data)).toHex();
    return [
      this.kept,
      mac,
      hidden.extractable,
      new TextDecoder().decode(opened),
      isGood,
      new Uint8Array(sealed).toHex(),
    ];
  }

  keptKeys(): unknown {
    return this.kept;
  }

  /** Numbers that V8 holds in another way once this is compiled. */
  numbers(times: number): unknown {
    let values: unknown;
    for (let i = 0; i < times; i++) {
      values = new Map([["whole", product(0.5, 4)], ["none", product(0, Infinity)]]);
    }
    return values;
  }

  /** What all sources say; the same in every replay. */
  async sources(): Promise<unknown> {
    const first = [Date.now(), performance.now(), Math.random(), crypto.randomUUID()];
    const dates = [
      new Date().toISOString(),
      new (new Date(0).constructor as DateConstructor)().getTime() === Date.now(),
      (new (structuredClone(new Date(0)).constructor as DateConstructor)()).getTime() === Date.now(),
      new Intl.DateTimeFormat("en", { timeStyle: "full" }).format(),
      new File([], "f").lastModified === Date.now(),
      performance.timeOrigin,
      Temporal.Now.instant().epochMilliseconds === Date.now(),
      new Date().getTimezoneOffset(),
    ];
    await new Promise((resolve) => setTimeout(resolve, 5));
    await wait(1);
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode("x"))).toHex();
    const same = hash === createHash("sha256").update("x").digest("hex");
    const values = [first, dates, hash, same, randomBytes(4).toString("hex"), loadedMs, new Error("e").stack];
    this.log.push(JSON.stringify(values));
    return values;
  }

  /** What the platform dates, draws or counts by itself. */
  async hiddenSources(): Promise<unknown> {
    const form = new FormData();
    form.append("blob", new Blob(["b"]));
    form.set("named", new Blob(["c"]), "n.txt");
    const dates = [...form.values()].map((each) => (each as File).lastModified === Date.now());
    const response = new Response(form), type = response.headers.get("content-type");
    const request = new Request("http://a/", { method: "POST", body: form });
    const read = await response.clone().formData();
    const boundary = type?.split("=")[1] ?? "";
    const text = await response.text();
    const values = [
      performance.now() === new PerformanceMark("m").startTime,
      dates,
      (read.get("blob") as File).lastModified === Date.now(),
      text.startsWith(`--${boundary}\r\n`),
      request.headers.get("content-type") === type,
      response instanceof Response && response.constructor === Response,
      [executionAsyncId(), new AsyncResource("a").asyncId(), new AsyncResource("b").asyncId()],
      [Buffer.from("q").byteOffset, Buffer.from("r").buffer.byteLength],
    ];
    this.log.push(JSON.stringify([values, type, text, Object.keys(Object(read))]));
    return values;
  }

  /** What it sees of those that called it. */
  frames(): unknown {
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = (_, sites) => sites.map((site) => String(site.getFileName()));
    const own = new Error("e").stack;
    Error.prepareStackTrace = before;
    const sites = getCallSites().map(({ scriptName }) => scriptName);
    Reflect.set(Error, "prepareStackTrace", undefined);
    const plain = new Error("e").stack;
    Error.prepareStackTrace = before;
    return [own, sites, plain];
  }

  /** Compressed by what Node computes behind a callback. */
  async compress(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    gzip("text", (_, bytes) => resolve(bytes));
    this.log.push((await promise).toString());
    return gunzipSync(await promise).length;
  }

  async imports(): Promise<void> {
    this.count("imported");
    // Caught or not: it does not come when a replay would have it.
    await import("node:path").catch(() => {});
  }

  reads(): void {
    new FileReader();
  }

  all(): string[] {
    return [...this.log];
  }

  fail(): never {
    this.count("failed");
    throw Object.assign(new Error("no such thing"), { code: "no_such_thing" });
  }

  loop(): never {
    this.count("looped");
    for (;;);
  }

  never(): Promise<void> {
    return new Promise(() => {});
  }

  /** Writes in a turn that no event of its site began. */
  async writeLater(id: string): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await this.env.tables.notes.put({ id, text: "later" });
  }

  async write(id: string, text: string): Promise<unknown> {
    const put = await this.env.tables.notes.put({ id, text });
    const got = await this.env.tables.notes.get([id]);
    return [put.versionstamp === got?.versionstamp, got?.value];
  }

  async ask(url: string, method: string): Promise<string> {
    const response = await fetch(url, method === "GET" ? {} : { method, body: "b" });
    return `${response.status} ${await response.text()}`;
  }

  call(id: string): Promise<number> {
    return this.env.sessions.other.get(id).count("called");
  }

  absent(): string[] {
    return ["SharedArrayBuffer", "Worker", "BroadcastChannel", "caches"]
      .filter((name) => name in globalThis);
  }

  interval(): void {
    setInterval(() => {}, 1);
  }

  override fetch(request: Request): Response {
    this.setTimer("idle", 50);
    return Response.json({ method: request.method, born: this.born, counts: [...this.counts] }, {
      status: 201,
    });
  }

  override onTimer(name: string): void {
    this.count(name);
  }

  broken: unknown[] = [];

  /** A plain array that a walk over the fields knows. */
  keepPlain(): string {
    this.broken = [{ x: 1 }];
    return JSON.stringify(this.broken.map((each) => (each as { x: number }).x));
  }

  /** Leaves something in its fields that no checkpoint can hold. */
  async keep(what: string): Promise<void> {
    const fields = this as unknown as Record<PropertyKey, unknown>;
    this.count("kept");
    const late = () => {};
    switch (what) {
      case "function":
        return void (fields["kept"] = late);
      case "buffer":
        return void (fields["kept"] = Buffer.from("q"));
      case "deep":
        return void (fields["kept"] = { a: [new Map([["k", Promise.resolve()]])] });
      case "symbol":
        return void (fields[Symbol("field")] = 1);
      case "hidden":
        return void Object.defineProperty(this, "hidden", { value: 1, writable: true });
      case "getter":
        // What a walk over the fields has seen before.
        Object.defineProperty(this.broken[0], "x", { get: () => 1, enumerable: true });
        return void (fields["kept"] = this.broken);
      case "forwarded":
        Object.defineProperty(new Proxy(this.broken[0] as object, {}), "y", { value: 1 });
        return;
      case "stack":
        return Error.captureStackTrace(this.broken[0] as object);
      case "resizable":
        return void (fields["kept"] = new ArrayBuffer(1, { maxByteLength: 8 }));
      case "proxy":
        return void (fields["kept"] = new Proxy({}, {}));
      case "late":
        // Behind its answer, in the same turn.
        return void Promise.resolve().then(() => null).then(() => fields["kept"] = late);
      case "twice":
        return void (fields["kept"] = this.counts);
      case "inside": {
        const inner = map<string, number>();
        fields["kept"] = inner;
        (this.counts as unknown as { set(key: string, value: unknown): void }).set("inner", inner);
        return;
      }
      case "frozen":
        await null;
        Object.freeze(this);
    }
  }
}

const WIDTH = 768, HEIGHT = 576;

/** Frames of a camera: 120 of them are 53 MB. */
class Frames extends Session {
  frames = grid({ width: WIDTH, height: 120 * HEIGHT, type: "uint8" });

  draw(first: number, count: number): void {
    const row = new Uint8Array(WIDTH);
    for (let y = first * HEIGHT; y < (first + count) * HEIGHT; y++) {
      for (let x = 0; x < WIDTH; x++) row[x] = x * 7 + y * 13 + first;
      this.frames.setRow(y, row);
    }
  }
  sum(): number {
    let sum = 0;
    for (let y = 0; y < 120 * HEIGHT; y += 7) sum = (sum * 31 + (this.frames.get(y % WIDTH, y) ?? 0)) | 0;
    return sum;
  }
}

export default defineApp({
  ...resources,
  sessions: { probe: Probe, other: Probe, frames: Frames },
  fetch: () => new Response("no"),
});
