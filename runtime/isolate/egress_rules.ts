/**
 * The rules for where an app's requests may go: what it declares (`fetchHosts`) and what the operator permits
 * (`egress.allow`, `egress.private`). Both must say yes; a refusal tells which of them did not.
 *
 * Patterns: `host`, `host:port`, `*.host` (any name below it, not itself), `*.host:port`, `[v6]`, `[v6]:port`; for
 * the operator also `*`. Without a port any port counts.
 *
 * G1  Hosts are compared as the URL standard writes them, so that no other spelling of a name or an address passes.
 * G2  `egress.private` names exact pairs of host and port, permits them, and is the only way to an address that is
 *     not public.
 */
import { lookup } from "node:dns/promises";

/** Finds the addresses of a name. */
export type Lookup = (host: string) => Promise<readonly string[]>;

/** The lists that rules are made of. */
export interface EgressOptions {
  /** Patterns of hosts that the app declared. */
  readonly fetchHosts: readonly string[];
  /** Patterns of hosts that the operator permits; `*` for every public host. */
  readonly allow?: readonly string[];
  /** Pairs `host:port` that the operator permits although the address is private. */
  readonly privateHosts?: readonly string[];
  readonly lookup?: Lookup;
}

interface HostPattern {
  /** Host as `URL.hostname` has it; empty for any. */
  readonly host: string;
  /** True where names below `host` are meant, instead of itself. */
  readonly below: boolean;
  /** Port; null for any. */
  readonly port: number | null;
}

const WILDCARD = "*.";
const PORT_MAX = 65_535;
const SHAPE = /^(\*\.)?(\[[0-9a-f:.]+\]|[^\s:/@?#[\]*]+)(?::(\d{1,5}))?$/i;

/** Reads a pattern; null where the text is none. */
export function hostPattern(text: string): HostPattern | null {
  if (text === "*") return { host: "", below: false, port: null };
  const [whole, wildcard, host = "", port] = SHAPE.exec(text) ?? [];
  const canonical = whole === undefined || !URL.canParse(`http://${host}`)
    ? ""
    : new URL(`http://${host}`).hostname;
  if (canonical === "" || (port !== undefined && Number(port) > PORT_MAX)) return null;
  return { host: canonical, below: wildcard === WILDCARD, port: port === undefined ? null : Number(port) };
}

const patternsOf = (texts: readonly string[]): HostPattern[] =>
  texts.flatMap((text) => hostPattern(text) ?? []);

const matches = (patterns: readonly HostPattern[], host: string, port: number): boolean =>
  patterns.some((pattern) =>
    (pattern.port === null || pattern.port === port) &&
    (pattern.host === "" || (pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host))
  );

/** The answer of the rules for a host and port. */
export type EgressVerdict =
  | { readonly ok: true; readonly mayBePrivate: boolean }
  | { readonly ok: false; readonly why: string };

/** The rules for one version of an app at one site. */
export class EgressRules {
  readonly lookup: Lookup;
  readonly #declaredTexts: readonly string[];
  readonly #declared: readonly HostPattern[];
  readonly #allowed: readonly HostPattern[];
  readonly #private: readonly HostPattern[];

  constructor(options: EgressOptions) {
    this.lookup = options.lookup ?? systemLookup;
    this.#declaredTexts = options.fetchHosts;
    this.#declared = patternsOf(options.fetchHosts);
    this.#allowed = patternsOf(options.allow ?? ["*"]);
    this.#private = patternsOf(options.privateHosts ?? []).filter((pattern) => pattern.port !== null);
  }

  /** Reports whether app and operator let a request go to a host, as `URL.hostname` has it, and a port. */
  verdict(host: string, port: number): EgressVerdict {
    if (!matches(this.#declared, host, port)) {
      const declared = this.#declaredTexts.length === 0 ? "none" : this.#declaredTexts.join(", ");
      return {
        ok: false,
        why: `the app does not declare ${host}:${port} in fetchHosts (declared: ${declared})`,
      };
    }
    const mayBePrivate = matches(this.#private, host, port);
    if (mayBePrivate || matches(this.#allowed, host, port)) return { ok: true, mayBePrivate };
    return {
      ok: false,
      why:
        `the app declares ${host}:${port}, but the operator of this site does not permit it (egress.allow)`,
    };
  }
}

const systemLookup: Lookup = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);
