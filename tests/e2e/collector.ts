/** A collector for tests: takes OTLP/HTTP JSON on loopback, and keeps what it was sent. */
import { z } from "zod";

const value = z.strictObject({
  stringValue: z.string().optional(),
  boolValue: z.boolean().optional(),
  intValue: z.string().regex(/^-?\d+$/).optional(),
  doubleValue: z.number().optional(),
});
const attributes = z.array(z.strictObject({ key: z.string(), value }));
const id = (digits: number) => z.string().regex(new RegExp(`^[0-9a-f]{${digits}}$`));
const nanos = z.string().regex(/^\d{19}$/);
const span = z.strictObject({
  traceId: id(32),
  spanId: id(16),
  parentSpanId: id(16).optional(),
  traceState: z.string().optional(),
  name: z.string().min(1),
  kind: z.number().int().min(1).max(5),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes,
  status: z.strictObject({ code: z.literal(2) }).optional(),
});
const resource = z.strictObject({ attributes });
const scope = z.strictObject({ name: z.literal("sojourn") });
const traces = z.strictObject({
  resourceSpans: z.array(z.strictObject({
    resource,
    scopeSpans: z.array(z.strictObject({ scope, spans: z.array(span) })),
  })),
});
const metrics = z.object({
  resourceMetrics: z.array(z.object({
    resource,
    scopeMetrics: z.array(
      z.object({ metrics: z.array(z.object({ name: z.string(), unit: z.string() }).loose()) }),
    ),
  })),
});

/** A span as a test looks at it. */
export interface SeenSpan {
  readonly site: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: string;
  readonly name: string;
  readonly kind: number;
  readonly ms: number;
  readonly failed: boolean;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
}

const plain = (list: z.infer<typeof attributes>) =>
  Object.fromEntries(list.map(({ key, value }) => [
    key,
    value.stringValue ?? value.boolValue ?? value.doubleValue ?? Number(value.intValue),
  ]));

/** Listens until it is closed. */
export class Collector {
  readonly spans: SeenSpan[] = [];
  /** Names of metrics, by site. */
  readonly metrics = new Map<string, Set<string>>();
  /** Everything that was sent, as it was. */
  text = "";
  /** Values of the header that carries the key. */
  readonly keys = new Set<string | null>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  /** What was no OTLP. */
  readonly refused: string[] = [];

  constructor() {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (r) => this.#take(r));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Spans of one trace. */
  trace(traceId: string): SeenSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  async close(): Promise<void> {
    await this.#server.shutdown();
  }

  async #take(request: Request): Promise<Response> {
    const text = await request.text();
    this.text += text;
    this.keys.add(request.headers.get("x-key"));
    try {
      if (new URL(request.url).pathname === "/v1/traces") this.#spans(traces.parse(JSON.parse(text)));
      else this.#metrics(metrics.parse(JSON.parse(text)));
    } catch (error) {
      this.refused.push(String(error));
      return new Response(null, { status: 400 });
    }
    return Response.json({});
  }

  #spans({ resourceSpans }: z.infer<typeof traces>): void {
    for (const { resource, scopeSpans } of resourceSpans) {
      const site = String(plain(resource.attributes)["sojourn.site"]);
      for (const one of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          site,
          traceId: one.traceId,
          spanId: one.spanId,
          parent: one.parentSpanId ?? "",
          name: one.name,
          kind: one.kind,
          ms: Number(BigInt(one.endTimeUnixNano) - BigInt(one.startTimeUnixNano)) / 1e6,
          failed: one.status !== undefined,
          attributes: plain(one.attributes),
        });
      }
    }
  }

  #metrics({ resourceMetrics }: z.infer<typeof metrics>): void {
    for (const { resource, scopeMetrics } of resourceMetrics) {
      const site = String(plain(resource.attributes)["sojourn.site"]);
      const names = this.metrics.get(site) ?? new Set();
      this.metrics.set(site, names);
      for (const { name } of scopeMetrics.flatMap(({ metrics }) => metrics)) names.add(name);
    }
  }
}
