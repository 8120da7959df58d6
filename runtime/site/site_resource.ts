/** OpenTelemetry's resource attributes, by which a site names itself in traces and metrics. */
import { hostname } from "node:os";
import type { SiteConfig } from "./config.ts";

/** Returns the resource of a site's telemetry. */
export function siteResource(config: Pick<SiteConfig, "id" | "tier" | "area">) {
  return {
    "service.name": "sojourn",
    "service.instance.id": config.id,
    "sojourn.site": config.id,
    "sojourn.tier": config.tier,
    ...(config.area === undefined ? {} : { "sojourn.area": config.area }),
    "host.name": hostname(),
    "process.pid": Deno.pid,
    "process.runtime.name": "deno",
    "process.runtime.version": Deno.version.deno,
    "telemetry.sdk.name": "sojourn",
    "telemetry.sdk.language": "webjs",
  };
}
