/**
 * Spans of operators' calls (`/_sojourn/admin/…`) and of their way over the links.
 *
 * OT1  A call that changes something is recorded always, one that only reads as rarely as a request.
 * OT2  A span has only the subject of a call's path: what follows names rows and secrets.
 */
import { type Span, SPAN_KIND, traceContextOf, type Tracer, withContext } from "../telemetry/mod.ts";
import type { ForwardedRequest } from "./forward.ts";
import { type ProblemCode, problemOf, problemStatus } from "../../functions/vocabulary/problem.ts";
import { endRequest, knownMethod } from "./request_spans.ts";

const ADMIN = "/_sojourn/admin/";

/** Records operators' calls at one site. */
export class OperatorTelemetry {
  readonly #site: string;
  readonly #tracer: Tracer;

  constructor(site: string, tracer: Tracer) {
    this.#site = site;
    this.#tracer = tracer;
  }

  /** Answers a client's call within a span. */
  async called(
    request: Request,
    path: string,
    answer: (request: Request) => Response | Promise<Response>,
  ): Promise<Response> {
    if (!this.#tracer.isOn || !path.startsWith(ADMIN)) return await answer(request);
    const looks = request.method === "GET" || request.method === "HEAD";
    const span = this.#tracer.arrived(request.headers, looks ? undefined : 1);
    if (span === undefined) return await answer(request);
    const traced = new Request(request, { headers: withContext([...request.headers], span) });
    return await this.#recorded(span, request, () => answer(traced));
  }

  /** Answers another site's call within a span. */
  async served(
    head: ForwardedRequest,
    answer: (head: ForwardedRequest) => Promise<Response>,
  ): Promise<Response> {
    const span = this.#tracer.forwarded(head.headers)?.set("sojourn.forwarded", true);
    if (span === undefined) return await answer(head);
    return await this.#recorded(
      span,
      head,
      () => answer({ ...head, headers: withContext(head.headers, span) }),
    );
  }

  /** Sends a call to the next site within a span. */
  async passed<T>(
    head: ForwardedRequest,
    to: string,
    send: (head: ForwardedRequest) => Promise<T>,
  ): Promise<T> {
    const context = this.#tracer.isOn ? traceContextOf(head.headers) : null;
    const span = this.#tracer.continued(context, `forward ${to}`, SPAN_KIND.client)?.set(
      "server.address",
      to,
    );
    if (span === undefined) return await send(head);
    return await span.around(send({ ...head, headers: withContext(head.headers, span) }), codeOf);
  }

  async #recorded(
    span: Span,
    { method, url }: { readonly method: string; readonly url: string },
    answer: () => Response | Promise<Response>,
  ): Promise<Response> {
    const subject = /\/_sojourn\/admin\/([a-z-]{1,40})/.exec(url)?.[1] ?? "";
    const route = `${ADMIN}${subject}`; // OT2
    span.name = `${knownMethod(method)} ${route}`;
    span.set("http.request.method", knownMethod(method)).set("http.route", route).set(
      "sojourn.site",
      this.#site,
    );
    try {
      const response = await answer();
      endRequest(span, response.status, null);
      return response;
    } catch (error) {
      endRequest(span, problemStatus(codeOf(error)), codeOf(error));
      throw error;
    }
  }
}

const codeOf = (error: unknown): ProblemCode => problemOf(error)?.code ?? "internal";
