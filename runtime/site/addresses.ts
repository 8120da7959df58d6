/** Where a site listens, where it is reached, and what carries its links: from its configuration. */
import { TCP, tlsTransport, type Transport } from "../link/mod.ts";
import { ConfigError, type SiteConfig } from "./config.ts";
import type { TlsFiles } from "./data_folder.ts";

/** How clients speak to `listen.http`. */
export const scheme = ({ tls }: SiteConfig): string => tls?.cert !== undefined && tls.http ? "https" : "http";

/** Where other sites reach this one, always with how they are to speak: they may be configured otherwise. */
export function linkAddress({ advertise, listen, tls }: SiteConfig): string {
  const address = advertise.link ?? listen.link;
  if (address.includes("://")) return address;
  return `${tls?.cert === undefined ? "tcp" : "tls"}://${address}`;
}

/** Certificates that do not belong together stop the start, not the first who dials. */
export function transportOf(tls: TlsFiles | null): Transport {
  if (tls === null) return TCP;
  const { own, caCerts } = tls;
  const transport = tlsTransport({ ...own ?? {}, caCerts });
  return {
    dial: transport.dial,
    listen(at) {
      try {
        return transport.listen(at);
      } catch (error) {
        // What is wrong with the address has a name of its own.
        const isAboutKeys = error instanceof Deno.errors.InvalidData ||
          (error instanceof Error && error.constructor === Error);
        if (own === null || !isAboutKeys) throw error;
        throw new ConfigError(
          `tls: found a certificate and a key that cannot be used together: ${error.message}`,
        );
      }
    },
  };
}

/** Host and port to listen on; port 0 takes a free one. */
export function splitListen(address: string): { hostname: string; port: number } {
  const at = address.lastIndexOf(":");
  return { hostname: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
}
