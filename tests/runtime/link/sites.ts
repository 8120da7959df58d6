/** Sites that are nothing but their links, for tests: what a hub told its owner is recorded. */
import {
  type IncomingRequest,
  type LinkAnswer,
  LinkHub,
  type LinkHubOptions,
  type LinkLimits,
  type LinkLogEntry,
  type LinkShape,
  type Transport,
} from "../../../runtime/link/mod.ts";

export const SECRET: Uint8Array = new TextEncoder().encode("a secret of the test cluster only");

/** Polls until the condition holds. @throws after `ms`, naming what did not happen. */
export async function until(what: string, condition: () => boolean, ms = 60_000): Promise<void> {
  const endMs = performance.now() + ms;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`Not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** Bytes of a text. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

export interface SiteOptions {
  readonly site: string;
  readonly incarnation?: string;
  readonly secrets?: LinkHubOptions["secrets"];
  readonly parent?: LinkSite | { readonly site: string; readonly address: string } | null;
  readonly port?: number;
  readonly admit?: LinkHubOptions["admit"];
  readonly limits?: Partial<LinkLimits>;
  readonly emulate?: (site: string) => LinkShape | null;
  readonly isCut?: (site: string) => boolean;
  readonly random?: () => number;
  /** Called for each store message; default records it. */
  readonly message?: (site: string, bytes: Uint8Array) => void | Promise<void>;
  readonly hold?: LinkHubOptions["hold"];
  /** Default echoes head and body. */
  readonly request?: (site: string, request: IncomingRequest) => Promise<LinkAnswer>;
}

/** A hub and what it told its owner, in order: "+site role", "-site planned|lost", "site:text". */
export class LinkSite {
  readonly site: string;
  readonly hub: LinkHub;
  readonly events: string[] = [];
  readonly messages: { readonly from: string; readonly bytes: Uint8Array }[] = [];
  readonly log: LinkLogEntry[] = [];
  /** Peers that could not be dialled. */
  readonly unreachable: string[] = [];
  /** Sites where nobody listens. */
  readonly refused: string[] = [];
  readonly #book: Map<string, string>;

  constructor(transport: Transport, book: Map<string, string>, options: SiteOptions) {
    this.site = options.site;
    this.#book = book;
    const parent = options.parent ?? null;
    this.hub = LinkHub.start({
      site: options.site,
      incarnation: options.incarnation ?? `${options.site}-1`,
      secrets: options.secrets ?? [SECRET],
      listen: { hostname: "127.0.0.1", port: options.port ?? 0 },
      parent: parent && { site: parent.site, address: parent.address },
      addressOf: (site) => book.get(site) ?? null,
      admit: options.admit ?? (() => null),
      transport,
      log: (entry) => this.log.push(entry),
      handlers: {
        connected: (site, role) => this.events.push(`+${site} ${role}`),
        disconnected: (site, planned) => this.events.push(`-${site} ${planned ? "planned" : "lost"}`),
        unreachable: (site) => this.unreachable.push(site),
        refused: (site) => this.refused.push(site),
        message: (site, message) => {
          if (message.length < 100) this.events.push(`${site}:${textOf(message)}`);
          if (options.message) return options.message(site, message);
          this.messages.push({ from: site, bytes: message });
        },
        request: options.request ??
          ((_site, request) => Promise.resolve({ head: request.head, body: request.body })),
      },
      ...(options.hold ? { hold: options.hold } : {}),
      ...(options.limits ? { limits: options.limits } : {}),
      ...(options.emulate ? { emulate: options.emulate } : {}),
      ...(options.isCut ? { isCut: options.isCut } : {}),
      ...(options.random ? { random: options.random } : {}),
    });
    book.set(options.site, this.hub.address);
  }

  get address(): string {
    return this.#book.get(this.site) ?? "";
  }

  link(site: string) {
    const link = this.hub.status().links.find((link) => link.site === site);
    if (!link) throw new Error(`${this.site} has no link to ${site}`);
    return link;
  }

  isConnected(site: string): boolean {
    return this.hub.status().links.some((link) => link.site === site && link.connected);
  }

  async connected(site: string): Promise<void> {
    await until(`${this.site} is connected to ${site}`, () => this.isConnected(site));
  }
}

/** Runs a test with sites over one transport, and closes them after it. */
export async function withSites(
  transport: Transport & { settled?(): Promise<void> },
  test: (start: (options: SiteOptions) => LinkSite, book: Map<string, string>) => Promise<void>,
): Promise<void> {
  const sites: LinkSite[] = [];
  const book = new Map<string, string>();
  try {
    await test((options) => {
      const site = new LinkSite(transport, book, options);
      sites.push(site);
      return site;
    }, book);
  } finally {
    await Promise.all(sites.map((site) => site.hub.close()));
    await transport.settled?.();
  }
}
