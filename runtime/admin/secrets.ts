/**
 * Admin paths of secrets: list, set, delete. Changes and lists are made by the root; a value is sealed by the site
 * where it arrives, so that it crosses the links, and lies in the root's rows, sealed only.
 *
 * S1  No answer has a value, and no path: a value comes in a body.
 * S2  A site reports that it has a secret only when every later request gets the value.
 */
import { z } from "zod";
import { problemResponse } from "../gateway/problem.ts";
import { SECRET_BYTES_MAX, type SecretRing, valueProblem } from "../secrets/mod.ts";
import { readLimited } from "./body.ts";
import { everySite, readyThere, waitMsOfRequest } from "./placement.ts";
import { withProgress } from "./progress.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";

/** Services of the site that these paths use. */
type SecretServices =
  & Pick<AdminServices, "forwardToRoot" | "forward" | "site" | "system" | "nowMs" | "note">
  & NonNullable<AdminServices["secrets"]>;

/** Pattern of a versionstamp. */
const STAMP = /^[0-9a-f]{20}$/;

/** Content type of a value that another site has sealed. */
const SEALED = "application/vnd.sojourn.sealed";
/** Bytes of a sealed value: format, key id, IV and tag are around it. */
const SEALED_BYTES_MAX = SECRET_BYTES_MAX + 64;

const sourceSchema = z.enum(["command", "dotenv"]).default("command");

/** Adds the paths. */
export function secretRoutes(app: AdminHono, services: SecretServices): void {
  const { store } = services;
  const forward = (c: AdminContext) => services.forwardToRoot(c.req.raw, c.env.role ?? "read");

  app.get("/apps/:app/secrets", async (c) => {
    if (store === null) return await forward(c);
    const name = c.req.param("app");
    const found = await store.list(name);
    return found === null
      ? problemResponse("app_unknown", `no app is called ${JSON.stringify(name)}`)
      : c.json(found);
  });

  app.put("/apps/:app/secrets/:name", async (c) => {
    const place = { app: c.req.param("app"), name: c.req.param("name") };
    const source = sourceSchema.safeParse(c.req.query("from"));
    if (!source.success) {
      return problemResponse("secret_invalid", 'from is "command" or "dotenv"');
    }
    const sealed = await sealedBody(services.ring, place, c.req.raw);
    if (sealed instanceof Response) return sealed;
    if (store === null) {
      const headers = { "content-type": SEALED };
      return await services.forwardToRoot(
        new Request(c.req.raw.url, { method: "PUT", headers, body: sealed }),
        c.env.role ?? "read",
      );
    }
    const result = await store.set(place.app, place.name, sealed, source.data);
    if (!result.ok) return problemResponse(result.code, result.message);
    const { changed, tier, stamp, declared, redacted } = result;
    return c.json({ ...place, changed, tier, stamp, declared, redacted });
  });

  // S2
  app.get("/apps/:app/secrets/:name/ready", async (c) => {
    const { app: name, name: secret } = c.req.param();
    const stamp = c.req.query("stamp") ?? "";
    if (!STAMP.test(stamp)) return problemResponse("query_invalid", "stamp takes a versionstamp");
    return await hasIt(services, { app: name, name: secret, stamp }, waitMsOfRequest(c))
      ? c.json({ site: services.site })
      : problemResponse("not_ready", `${secret} of ${name} has not arrived here`);
  });

  app.post("/apps/:app/secrets/:name/placed", async (c) => {
    if (store === null) return await forward(c);
    const { app: name, name: secret } = c.req.param();
    const stamp = c.req.query("stamp") ?? "";
    if (!STAMP.test(stamp)) return problemResponse("query_invalid", "stamp takes a versionstamp");
    const timeoutMs = waitMsOfRequest(c), what = { app: name, name: secret, stamp };
    const query = new URLSearchParams({ stamp, waitMs: `${timeoutMs}` });
    const path = `/apps/${name}/secrets/${encodeURIComponent(secret)}/ready?${query}`;
    return await withProgress(services, c, async (tell) =>
      Response.json(
        await everySite(services, (id) =>
          id === services.site
            ? hasIt(services, what, timeoutMs)
            : readyThere(services, id, { path, timeoutMs }), tell),
      ));
  });

  app.delete("/apps/:app/secrets/:name", async (c) => {
    if (store === null) return await forward(c);
    const result = await store.delete(c.req.param("app"), c.req.param("name"));
    return result.ok ? c.json({}) : problemResponse(result.code, result.message);
  });
}

/** Reports whether this site has a secret as of a versionstamp (S2). */
const hasIt = (
  { table }: SecretServices,
  { app, name, stamp }: { readonly app: string; readonly name: string; readonly stamp: string },
  timeoutMs: number,
): Promise<boolean> => table.shows(app, name, stamp, timeoutMs);

/** Returns the body's value, sealed; or the refusal of one that can't be a value. */
async function sealedBody(
  ring: SecretRing,
  place: { app: string; name: string },
  request: Request,
): Promise<Uint8Array<ArrayBuffer> | Response> {
  const bytes = await readLimited(request.body, SEALED_BYTES_MAX);
  if (bytes === null) {
    return problemResponse("limit_value", `a secret's value has at most ${SECRET_BYTES_MAX} bytes`);
  }
  if (request.headers.get("content-type") === SEALED) return bytes;
  let value: string;
  try {
    value = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return problemResponse("secret_invalid", "a secret's value is text in UTF-8");
  }
  const bad = valueProblem(value);
  return bad === null ? ring.seal(place, value) : problemResponse("secret_invalid", bad);
}
