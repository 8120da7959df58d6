/**
 * The webhooks of one site: what its outlet has for a queue that names an endpoint is posted there (webhook_post.ts).
 *
 * Life of a message here: it comes from the outlet → it is posted → the answer is its outcome, and of a refusal a line
 * in the app's log.
 *
 * WB1 A queue whose secret has no value here, or one that is no key, has no consumer here: its messages wait, and no
 *     attempt of theirs is used up. So it is while its endpoint has asked for a pause.
 * WB2 2xx acknowledges. 410 rejects the message: no try would change it. A pause that the endpoint asks for is no attempt.
 *     All else is one.
 * WB3 An app has no more than POSTS_WAITING_MAX posts open at a site, and their bodies count among what waits of the app
 *     (isolate/app_queues.ts): one that is shed is not tried.
 * WB4 What is told of an answer leaves without the values of the app's secrets.
 */
import { strict as assert } from "node:assert";
import type { DeliveryOutcome, MessageDelivery } from "../../functions/queues/hand.ts";
import { WEBHOOKS_OPEN_MAX } from "../../functions/queues/limits.ts";
import type { OwnRunServices } from "../gateway/own_run.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { SiteQueues } from "../isolate/mod.ts";
import type { SecretTable } from "../secrets/mod.ts";
import { newTraceId, traceContextOf } from "../telemetry/mod.ts";
import { type DeclaredQueues, type DeclaredWebhook, namesOf } from "./declared_queues.ts";
import type { MessageMeter } from "./message_meter.ts";
import {
  type Endpoint,
  post,
  type PostedMessage,
  postedMessage,
  type PostOutcome,
  TIMEOUT_MS,
} from "./webhook_post.ts";

/** What the webhooks need of their site. */
export interface WebhooksParts {
  readonly declared: Pick<DeclaredQueues, "webhookOf">;
  readonly secrets: Pick<SecretTable, "values">;
  readonly running: Pick<OwnRunServices, "appLog" | "redact" | "nowMs">;
  readonly queues: Pick<SiteQueues, "of">;
  /** Returns the rules for an app that declares these hosts. */
  readonly rulesOf: (fetchHosts: readonly string[]) => EgressRules;
  readonly meter: Pick<MessageMeter, "handled">;
  readonly after: (ms: number, run: () => void) => () => void;
  /** Called when a queue's pause is over. */
  readonly rested: (topic: string) => void;
}

/** Posts that are open for an app at a site. */
export const POSTS_WAITING_MAX = 256;
assert(POSTS_WAITING_MAX === WEBHOOKS_OPEN_MAX, "what can be deployed can run");

/** Form of a key, and its bytes: what Standard Webhooks allows. */
const KEY = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const KEY_BYTES_MIN = 24, KEY_BYTES_MAX = 64;

const RELEASED: DeliveryOutcome = { kind: "release", ms: null, error: "" };

/** Webhooks of one site. */
export class Webhooks {
  readonly #parts: WebhooksParts;
  /** Endpoints that have asked for a pause, by topic. */
  readonly #resting = new Map<
    string,
    { readonly url: string; readonly untilMs: number; readonly stop: () => void }
  >();
  /** Number of open posts, by app. */
  readonly #open = new Map<string, number>();
  readonly #closed = new AbortController();

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  /** Returns why nothing can be posted for a queue, which has a webhook; null: it can (WB1). */
  lacks(topic: string): string | null {
    const webhook = this.#parts.declared.webhookOf(topic);
    return webhook === undefined ? null : lackOf(webhook, this.#keyOf(topic, webhook));
  }

  /** Reports whether a queue's messages can be posted now (WB1). */
  serves(topic: string): boolean {
    const webhook = this.#parts.declared.webhookOf(topic);
    if (webhook === undefined || this.#closed.signal.aborted) return false;
    if (lackOf(webhook, this.#keyOf(topic, webhook)) !== null) return false;
    return this.#resting.get(topic)?.url !== webhook.url;
  }

  /** Posts messages. @returns what becomes of each. */
  async handle(topic: string, messages: readonly MessageDelivery[]): Promise<readonly DeliveryOutcome[]> {
    return await Promise.all(messages.map((message) => this.#handle(topic, message)));
  }

  /** Gives up what is open, and posts nothing more. */
  close(): void {
    this.#closed.abort();
    for (const { stop } of this.#resting.values()) stop();
    this.#resting.clear();
  }

  async #handle(topic: string, { ticket, envelope }: MessageDelivery): Promise<DeliveryOutcome> {
    const { declared } = this.#parts, { app } = namesOf(topic);
    const webhook = declared.webhookOf(topic), open = this.#open.get(app) ?? 0;
    const key = webhook === undefined ? undefined : this.#keyOf(topic, webhook);
    if (webhook === undefined || key === undefined || lackOf(webhook, key) !== null) return RELEASED;
    if (open >= POSTS_WAITING_MAX) return RELEASED; // WB3
    let message: PostedMessage;
    try {
      message = postedMessage(ticket.id, envelope);
    } catch {
      return { kind: "reject", ms: null, error: "its body can't be read" };
    }
    this.#open.set(app, open + 1);
    try {
      return this.#outcomeOf(topic, webhook, message, await this.#post(topic, webhook, { key, message }));
    } finally {
      const left = (this.#open.get(app) ?? 1) - 1;
      if (left === 0) this.#open.delete(app);
      else this.#open.set(app, left);
    }
  }

  async #post(
    topic: string,
    webhook: DeclaredWebhook,
    { key, message }: { readonly key: string; readonly message: PostedMessage },
  ): Promise<PostOutcome> {
    const { queues, meter, running, rulesOf } = this.#parts, { app } = namesOf(topic);
    const { Webhook } = await import("standardwebhooks"); // few sites have a webhook
    const signer = new Webhook(key), shed = new AbortController(), sinceMs = performance.now();
    const hold = queues.of(app).hold("webhook body", () => shed.abort());
    try {
      hold.add(message.payload.length); // WB3
      const outcome = await post(message, {
        endpoint: endpointOf(webhook),
        sign: (id, at, payload) => signer.sign(id, at, payload),
        rules: rulesOf([hostOf(webhook.url)]),
        nowMs: running.nowMs,
        signal: AbortSignal.any([this.#closed.signal, shed.signal]),
      });
      if (outcome.kind !== "aborted") meter.handled(topic, sinceMs, failureOf(outcome));
      return outcome;
    } finally {
      hold.end();
    }
  }

  #outcomeOf(
    topic: string,
    webhook: DeclaredWebhook,
    message: PostedMessage,
    outcome: PostOutcome,
  ): DeliveryOutcome {
    if (outcome.kind === "done") return { kind: "ack", ms: null, error: "" };
    if (outcome.kind === "aborted") return RELEASED;
    const error = this.#parts.running.redact(webhook.version.app, outcome.error); // WB4
    this.#log(topic, webhook, message, error);
    if (outcome.kind === "later") {
      this.#rest(topic, webhook.url, outcome.ms);
      return RELEASED;
    }
    return { kind: outcome.kind === "gone" ? "reject" : "retry", ms: null, error };
  }

  /** Posts nothing to an endpoint for so long; the longest pause holds (WB1). */
  #rest(topic: string, url: string, ms: number): void {
    const { after, rested } = this.#parts, untilMs = performance.now() + ms;
    const before = this.#resting.get(topic);
    if (this.#closed.signal.aborted || (before?.url === url && before.untilMs >= untilMs)) return;
    before?.stop();
    const stop = after(ms, () => {
      this.#resting.delete(topic);
      rested(topic);
    });
    this.#resting.set(topic, { url, untilMs, stop });
    rested(topic);
  }

  #log(topic: string, { version }: DeclaredWebhook, { id, headers }: PostedMessage, error: string): void {
    const text = `webhook of ${namesOf(topic).queue}: message ${id}: ${error}`;
    const traceId = traceContextOf(new Headers(headers))?.traceId ?? newTraceId();
    this.#parts.running.appLog({ app: version.app, version: version.version, level: "warn", text, traceId });
  }

  #keyOf(topic: string, { secret, version }: DeclaredWebhook): string | undefined {
    const declared = version.manifest.secrets,
      at = Object.hasOwn(declared, secret) ? declared[secret] : undefined;
    return at === undefined
      ? undefined
      : this.#parts.secrets.values(namesOf(topic).app, { [secret]: at })[secret];
  }
}

/** Returns what a webhook lacks to be posted to; null: nothing (WB1). */
function lackOf({ secret }: DeclaredWebhook, key: string | undefined): string | null {
  if (key === undefined) return `no secret ${secret}`;
  return isKey(key) ? null : `secret ${secret} is no key of a webhook`;
}

/** Reports whether a text is a key as Standard Webhooks has them. */
export function isKey(text: string): boolean {
  const base64 = KEY.exec(text)?.[1];
  if (base64 === undefined || base64.length % 4 !== 0) return false;
  const bytes = base64.length / 4 * 3 - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
  return bytes >= KEY_BYTES_MIN && bytes <= KEY_BYTES_MAX;
}

const endpointOf = ({ url, timeoutMs = TIMEOUT_MS, headers = {} }: DeclaredWebhook): Endpoint => ({
  ...{ url, timeoutMs, headers },
});

/** Returns the one pair of host and port that a webhook's address lets it go to. */
function hostOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

function failureOf(outcome: Exclude<PostOutcome, { readonly kind: "aborted" }>): string | null {
  if (outcome.kind === "done") return null;
  return outcome.kind === "failed" ? outcome.code : outcome.kind;
}
