/**
 * Addresses of a site, from its configuration: at which it listens, at which it is reached, and the transport of its
 * links.
 */
import { TCP, type TlsOptions, tlsTransport, type Transport } from "../link/mod.ts";
import { assertUsable } from "./certificates.ts";
import type { SiteConfig } from "./config.ts";
import type { TlsFiles } from "./data_folder.ts";

/** Returns the scheme by which clients reach `listen.http`. */
export const scheme = ({ tls }: SiteConfig): string => tls?.cert !== undefined && tls.http ? "https" : "http";

/**
 * Returns the address at which other sites reach this one, always with its protocol: theirs may be configured
 * otherwise.
 */
export function linkAddress({ advertise, listen, tls }: SiteConfig): string {
  const address = advertise.link ?? listen.link;
  if (address.includes("://")) return address;
  return `${tls?.cert === undefined ? "tcp" : "tls"}://${address}`;
}

/**
 * Returns the transport of links. @throws ConfigError where certificate and key do not belong together: told at the
 * start, not by the first who dials.
 */
export function transportOf(tls: TlsFiles | null): Transport & { renew?(files: TlsFiles): Promise<void> } {
  if (tls === null) return TCP;
  assertUsable(tls);
  const transport = tlsTransport(optionsOf(tls));
  return { ...transport, renew: (files) => transport.renew(optionsOf(files)) };
}

const optionsOf = ({ own, caCerts }: TlsFiles): TlsOptions => ({ ...own ?? {}, caCerts });

/** Returns the host and the port to listen on; port 0 takes a free one. */
export function splitListen(address: string): { hostname: string; port: number } {
  const at = address.lastIndexOf(":");
  return { hostname: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
}
