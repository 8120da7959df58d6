/**
 * Custom hosts: names at which an app is served as at `APP.localhost`. A host is claimed by one app: a row of its
 * own says by which, written in one write with the app's row, which lists them (and is what sites follow).
 *
 *   ["s", "host", host] → {@link HostClaim}
 *
 * HN1  A host belongs to one app at most.
 * HN2  A host is kept as browsers send it: lower case, IDNA (punycode), without port and final dot.
 */
import { z } from "zod";
import type { StoreMutation } from "../../store/api/api.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import { type AppRows, type Change, type ChangeRefusal, refuse, unchanged } from "./app_rows.ts";
import { APP_NAME, type AppRecord, SITES } from "./records.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";

const claimSchema = z.object({ host: z.string(), app: z.string().regex(APP_NAME), createdMs: z.number() });
/** Claim of a host: the app that has it. */
export type HostClaim = z.infer<typeof claimSchema>;

const hostKey = (host: string): Key => packKey(["s", "host", host]);

/** Characters of the longest host, with the dots (RFC 1035, 2.3.4). */
const HOST_CHARS_MAX = 253;
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Hosts of one app: all are in its row, which every site has. */
const HOSTS_MAX = 100;

/** Returns a host as it is kept (HN2), or the reason why a text can't be one. */
export function parseHost(text: string): { host: string } | { message: string } {
  const wrong = (why: string) => ({
    message: `${JSON.stringify(text.slice(0, 300))} can't be a host of an app: ${why}`,
  });
  const [, name = "", port] = /^([^/?#@:\s[\]*%\\]+?)(?::(\d{1,5}))?$/.exec(text.trim()) ?? [];
  if (name === "" || (port !== undefined && Number(port) > 65_535)) {
    return wrong("a name such as shop.example is accepted");
  }
  const url = URL.canParse(`http://${name}/`) ? new URL(`http://${name}/`) : null;
  const host = bareHost(url?.hostname ?? "");
  if (host.length > HOST_CHARS_MAX || !HOST.test(host)) {
    return wrong("a name such as shop.example is accepted");
  }
  if (/^[\d.]+$/.test(host)) return wrong("an address is no name; apps are at /APP/ there");
  if (host === "localhost" || host.endsWith(".localhost")) {
    return wrong("APP.localhost is each app's already");
  }
  return { host };
}

/** Returns a request's host for looking it up: lower case, without port and final dot. */
export function bareHost(host: string): string {
  const port = host.lastIndexOf(":");
  const name = (port < 0 || host.endsWith("]") ? host : host.slice(0, port)).toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** The claims of hosts, at the root. */
export class Hosts {
  readonly #rows: AppRows;
  readonly #nowMs: () => number;

  constructor(rows: AppRows, nowMs: () => number) {
    this.#rows = rows;
    this.#nowMs = nowMs;
  }

  /** Gives a host to an app (HN1). */
  add(app: string, text: string): Promise<Change | ChangeRefusal> {
    return this.#rows.changing(app, async (found, record) => {
      const parsed = parseHost(text);
      if (!("host" in parsed)) return refuse("deploy_invalid", parsed.message);
      const { host } = parsed;
      const hosts = record.hosts ?? [];
      if (hosts.includes(host)) return unchanged(found, record.current ?? "");
      const { system } = this.#rows;
      const [claim] = await system.get([hostKey(host)]);
      if (claim?.value) {
        return refuse(
          "host_taken",
          `${host} is taken by app ${claimSchema.parse(decodeSystem(claim.value)).app}`,
        );
      }
      const site = await this.#siteAt(host);
      if (site !== null) {
        return refuse(
          "host_taken",
          `${host} is where site ${site} is reached; its other apps would be hidden`,
        );
      }
      if (hosts.length >= HOSTS_MAX) {
        return refuse("deploy_invalid", `an app has at most ${HOSTS_MAX} hosts, and ${app} has them`);
      }
      const value = encodeSystem({ host, app, createdMs: this.#nowMs() } satisfies HostClaim);
      return await this.#rows.write(
        found,
        { ...record, hosts: [...hosts, host].sort() },
        record.current ?? "",
        [{ kind: "set", key: hostKey(host), value }],
        [{ key: hostKey(host), version: claim ?? null }],
      );
    });
  }

  /** Takes a host away from an app. */
  remove(app: string, text: string): Promise<Change | ChangeRefusal> {
    return this.#rows.changing(app, async (found, record) => {
      const parsed = parseHost(text);
      const hosts = record.hosts ?? [];
      if (!("host" in parsed) || !hosts.includes(parsed.host)) {
        const known = hosts.join(", ") || "none";
        return refuse(
          "host_unknown",
          `app ${app} has no host ${JSON.stringify(text.slice(0, 300))}; it has: ${known}`,
        );
      }
      const next = { ...record, hosts: hosts.filter((host) => host !== parsed.host) };
      return await this.#rows.write(found, next, record.current ?? "", releaseHosts([parsed.host]));
    });
  }

  async #siteAt(host: string): Promise<string | null> {
    for (const row of await this.#rows.system.list(SITES)) {
      const site = siteSchema.safeParse(row.value === null ? null : decodeSystem(row.value)).data;
      if (site !== undefined && URL.canParse(site.url) && bareHost(new URL(site.url).hostname) === host) {
        return site.id;
      }
    }
    return null;
  }
}

const siteSchema = z.object({ id: z.string(), url: z.string() });

/** Returns the mutations that free an app's hosts, for the write that removes them from its row. */
export const releaseHosts = (hosts: AppRecord["hosts"]): StoreMutation[] =>
  (hosts ?? []).map((host) => ({ kind: "delete", key: hostKey(host) }));
