/**
 * The trusted bootstrap: the code that runs in an isolate process before, and around, an app.
 *
 * Stages: connect to the site's socket → revoke every permission → take away what an app must not hold (realm.ts)
 * → warm up → `ready` → `load` (import the bundle, which sees no permission at all) → requests.
 *
 * B1  No app code runs before the permissions are gone and the realm is cut.
 * B2  An error of the app never ends the process: it is a failed request or a log line.
 */
import { CONTEXT_SLOT } from "../../../functions/context.ts";
import type { QueueBatch } from "../../../functions/queue.ts";
import type { KvListeners } from "../../../functions/kv_listeners.ts";
import { KV_QUEUE } from "../../../functions/queues/kv_queue.ts";
import { buildEnv, type EnvServices } from "../../../functions/env.ts";
import { ExchangeTable } from "../exchange_table.ts";
import { type Payload, readFrames } from "../frame_reader.ts";
import { FrameWriter } from "../frame_writer.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX, ISOLATE_FRAME } from "../frames.ts";
import { wireError, writeError } from "../store_frames.ts";
import { AsyncScope } from "./async_scope.ts";
import { captureConsole } from "./console.ts";
import { IsolateExchange, type LoadedApp } from "./exchange.ts";
import { readBatchFrame, type RemoteQueues } from "./queues.ts";
import type { ScheduledFrame } from "./scheduled.ts";
import { installFetchedResponse } from "./fetched_response.ts";
import { OutgoingFetches } from "./outgoing.ts";
import { blockImports } from "./imports.ts";
import { OpenTelemetry } from "./opentelemetry.ts";
import { cutRealm, type Realm } from "./realm.ts";
import { catchUncaught, type IsolatePaths, revokeAll } from "./process_start.ts";
import { installIncomingRequest } from "./incoming_request.ts";
import { installResponse } from "./response.ts";
import type { RemoteSessions } from "./sessions.ts";
import { stackOf, withAppFrames } from "./stack.ts";

/** Options that the site sends with a bundle. */
interface LoadOptions {
  readonly vars: Record<string, string>;
  readonly secrets: Record<string, string>;
  readonly atRoot: boolean;
  readonly waitUntilMs: number;
  readonly name: string;
}

/** The part that only the bootstrap for deploys brings. */
export interface Evaluator {
  /** Checks a bundle's imports. @throws Error for a bundle that imports what it may not. */
  check(code: Uint8Array): void;
  /** Returns the manifest of an app. @throws Error for a default export that is no app. */
  manifestOf(defaultExport: unknown, listens: boolean): unknown;
}

const running = new AsyncScope<IsolateExchange>();
const exchanges = new ExchangeTable<IsolateExchange>();
let app: LoadedApp | undefined;
let assets: (request: Request) => Promise<Response>;
/** The app's secrets. A request keeps those that it began with. */
let secrets: Readonly<Record<string, string>> = {};
let mark: Deno.FsFile | undefined;
/** Number of marks before the file begins anew: 64 KiB. */
const MARKS_MAX = 16 * 1024;
let marks = 0;
const markBytes = new Uint8Array(4);
const markView = new DataView(markBytes.buffer);

/** Runs the isolate until its socket closes. */
export async function serveIsolate(paths: IsolatePaths, evaluator?: Evaluator): Promise<void> {
  // The mark first: the site removes both paths as soon as it sees the connection.
  mark = Deno.openSync(paths.mark, { write: true });
  const connection = await Deno.connect({ transport: "unix", path: paths.socket });
  await revokeAll(paths);
  const exit = Deno.exit.bind(Deno);
  const writer = new FrameWriter(connection, () => exit(1));
  const telemetry = new OpenTelemetry(
    () => running.get(),
    (request, text) => writer.begin(ISOLATE_FRAME.span, request).text(text).end(),
  );
  telemetry.install();
  const fetches = new OutgoingFetches(writer, () => running.get(), telemetry.traceparent);
  assets = fetches.assets;
  Object.defineProperty(globalThis, CONTEXT_SLOT, {
    value: Object.freeze({
      current: () => running.get()?.env,
      waitUntil: () => {
        const exchange = running.get();
        return exchange && ((promise: Promise<unknown>) => exchange.waitUntil(promise));
      },
    }),
  });
  installResponse();
  installFetchedResponse();
  installIncomingRequest();
  captureConsole((level, text) => {
    writer.begin(ISOLATE_FRAME.log, running.get()?.id ?? 0).text(level).text(withAppFrames(text)).end();
  });
  blockImports();
  const realm = cutRealm(fetches.fetch);
  await warmUp();
  // Not before: a bootstrap that fails says so on its way out.
  catchUncaught();
  writer.signal(ISOLATE_FRAME.ready, 0);
  const closed = (exchange: IsolateExchange) => exchanges.delete(exchange.id);
  try {
    await readFrames(connection, FRAME_TO_ISOLATE_BYTES_MAX, (type, id, payload) => {
      if (type === ISOLATE_FRAME.request) return start(writer, id, payload, closed);
      if (type === ISOLATE_FRAME.scheduled) {
        const call = JSON.parse(payload.text()) as ScheduledFrame;
        return startOwn(writer, id, closed, (exchange) => exchange.runScheduled(call));
      }
      if (type === ISOLATE_FRAME.queueBatch) {
        const frame = readBatchFrame(payload);
        return startOwn(writer, id, closed, (exchange) => exchange.runBatch(frame));
      }
      if (type === ISOLATE_FRAME.ping) return writer.signal(ISOLATE_FRAME.pong, id);
      if (type === ISOLATE_FRAME.secrets) {
        secrets = JSON.parse(payload.text()) as Record<string, string>;
        return;
      }
      if (type === ISOLATE_FRAME.load) return load(writer, payload, realm, evaluator);
      if (fetches.receive(type, id, payload)) return;
      const exchange = exchanges.get(id);
      // What the frame sets off in the app belongs to its request, as what the handler itself starts does.
      if (exchange !== undefined) running.run(exchange, () => exchange.receive(type, payload));
    });
  } finally {
    exit(0);
  }
}

/** Runs a request and a response once, so that the first real one finds their code compiled. */
async function warmUp(): Promise<void> {
  const request = new Request("http://localhost/", { method: "POST", headers: [["a", "b"]], body: "warm" });
  const response = new Response(await request.text(), { headers: { "content-type": "text/plain" } });
  for (const _ of response.headers) { /* compiled by running it */ }
  await new Response(response.body).text();
}

/**
 * Writes the id of a request that starts. It is appended, since a seek costs as much as the write; the site takes the
 * largest id that it finds.
 */
function writeMark(id: number): void {
  markView.setUint32(0, id, true);
  if (++marks === MARKS_MAX) {
    marks = 0;
    mark?.seekSync(0, 0);
  }
  mark?.writeSync(markBytes);
}

function start(
  writer: FrameWriter,
  id: number,
  payload: Payload,
  closed: (exchange: IsolateExchange) => void,
): void {
  if (app === undefined) throw new Error("a request came before its app");
  writeMark(id);
  const exchange = new IsolateExchange(app, writer, id, closed);
  exchanges.add(exchange);
  const request = exchange.open(payload);
  if (request !== null) running.run(exchange, () => void exchange.run(request));
}

/** Runs a handler that has no request. */
function startOwn(
  writer: FrameWriter,
  id: number,
  closed: (exchange: IsolateExchange) => void,
  run: (exchange: IsolateExchange) => Promise<void>,
): void {
  if (app === undefined) throw new Error("a run came before its app");
  writeMark(id);
  const exchange = new IsolateExchange(app, writer, id, closed);
  exchanges.add(exchange);
  running.run(exchange, () => void run(exchange));
}

async function load(
  writer: FrameWriter,
  payload: Payload,
  realm: Realm,
  evaluator: Evaluator | undefined,
): Promise<void> {
  const options = JSON.parse(payload.text()) as LoadOptions;
  const code = payload.rest();
  secrets = options.secrets;
  try {
    evaluator?.check(code);
    realm.setVars(options.vars);
    const url = URL.createObjectURL(
      new Blob([code], { type: "text/javascript" }),
    );
    const module = await import(url) as Record<string, unknown>;
    URL.revokeObjectURL(url);
    const exported = realm.served.appOf(module);
    const { listeners } = realm.served;
    const manifest = evaluator?.manifestOf(exported, listeners.loaded()) ?? {};
    app = loadedApp(exported, options, listeners);
    writer.begin(ISOLATE_FRAME.loaded, 0).text(JSON.stringify(manifest)).end();
  } catch (error) {
    writer.begin(ISOLATE_FRAME.loadFailed, 0);
    writeError(writer, wireError(error, "load_failed"));
    writer.text(stackOf(error)).end();
  }
}

function loadedApp(defaultExport: unknown, options: LoadOptions, listeners: KvListeners): LoadedApp {
  const { fetch: handler, scheduled, queue } = Object(defaultExport) as Record<string, unknown>;
  return {
    queue: (batch, env, ctx) => {
      const { queue: name, messages } = batch as QueueBatch;
      if (name === KV_QUEUE) return Promise.all(messages.map(({ body }) => listeners.handle(body)));
      if (typeof queue !== "function") throw new TypeError("the app has no queue handler");
      return Reflect.apply(queue, defaultExport, [batch, env, ctx]);
    },
    scheduled: (event, env, ctx) => {
      if (typeof scheduled !== "function") throw new TypeError("the app has no scheduled handler");
      return Reflect.apply(scheduled, defaultExport, [event, env, ctx]);
    },
    fetch: (request, env, ctx) => {
      if (typeof handler !== "function") throw new TypeError("the app has no fetch handler");
      return Reflect.apply(handler, defaultExport, [request, env, ctx]);
    },
    env: (exchange) =>
      buildEnv(defaultExport, new RequestServices(exchange, options)) as unknown as Record<string, unknown>,
    waitUntilMs: options.waitUntilMs,
  };
}

/**
 * The services from which a request's env is built. A class, since V8 gives each object literal with an accessor a
 * shape of its own, which holds the accessor, and so the request, until a full collection.
 */
class RequestServices implements EnvServices {
  readonly #exchange: IsolateExchange;
  readonly #options: LoadOptions;
  readonly store: EnvServices["store"];
  readonly secrets = secrets;

  constructor(exchange: IsolateExchange, options: LoadOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.store = exchange.store;
  }

  get sessions(): RemoteSessions {
    return this.#exchange.sessions;
  }

  get queues(): RemoteQueues {
    return this.#exchange.queues;
  }

  get vars(): Readonly<Record<string, string>> {
    return this.#options.vars;
  }

  get app(): string {
    return this.#options.name;
  }

  get atRoot(): boolean {
    return this.#options.atRoot;
  }

  get remoteAddr(): string {
    return this.#exchange.remoteAddr;
  }

  completed(): Promise<void> {
    return this.#exchange.completed;
  }

  assets(request: Request): Promise<Response> {
    return assets(request);
  }
}
