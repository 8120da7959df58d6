/**
 * The addresses of origins. An origin is a server that knows nothing of Sojourn; a Session class names it as `static
 * origin`.
 *
 * O1  An address has one form: it is written back as the URL standard has it, so two spellings of a server are one.
 */

/** Address of the server behind a class of stateful sessions. */
export interface OriginAddress {
  /** Protocol of the server; `ws` and `http` over TLS too. */
  readonly kind: "ws" | "http" | "tcp";
  /** Address as the URL standard writes it. */
  readonly url: string;
  /** Host as `URL.hostname` has it. */
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
}

const SCHEMES: ReadonlyMap<string, { readonly kind: OriginAddress["kind"]; readonly port: number }> = new Map(
  [
    ["ws:", { kind: "ws", port: 80 }],
    ["wss:", { kind: "ws", port: 443 }],
    ["http:", { kind: "http", port: 80 }],
    ["https:", { kind: "http", port: 443 }],
    ["tcp:", { kind: "tcp", port: 0 }],
  ],
);

/** Text that says what is expected where {@link originAddress} returns null. */
export const ORIGIN_EXPECTED =
  "ws://host[:port][/path], http://host[:port] (or wss:, https:), or tcp://host:port, without a user or a fragment";

/** Reads an origin's address; null where the text is none. */
export function originAddress(text: string): OriginAddress | null {
  const scheme = /^[a-z]+:/.exec(text)?.[0] ?? "";
  const known = SCHEMES.get(scheme);
  // The standard has no rules for hosts of other schemes.
  const asHttp = text.replace(/^[a-z]+:/, scheme === "wss:" || scheme === "https:" ? "https:" : "http:");
  if (known === undefined || !/^[a-z]+:\/\/[^/]/.test(text) || !URL.canParse(asHttp)) return null;
  const url = new URL(asHttp);
  const port = url.port === "" ? known.port : Number(url.port);
  const isBare = url.pathname === "/" && url.search === "";
  if (url.username !== "" || url.password !== "" || url.hash !== "" || /#$/.test(text)) return null;
  if (known.kind !== "ws" && !isBare) return null;
  // A tcp: address that names port 80 is written without one by the standard's rules for http.
  const named = known.kind === "tcp" ? Number(/:(\d+)\/?$/.exec(text)?.[1] ?? 0) : port;
  if (!(named > 0 && named <= 65_535)) return null;
  const host = url.hostname;
  const at = known.kind === "tcp" ? `${host}:${named}` : url.host;
  const rest = known.kind === "ws" ? `${url.pathname}${url.search}` : "";
  return {
    kind: known.kind,
    url: `${scheme}//${at}${rest}`,
    host,
    port: named,
    isSecure: scheme === "wss:" || scheme === "https:",
  };
}
