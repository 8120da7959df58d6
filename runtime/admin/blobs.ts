/**
 * Blobs on their way to the root, before the deploy that names them: which are missing, and their bytes.
 */
import type { Hono } from "hono";
import { z } from "zod";
import { ASSET_BYTES_MAX, ASSETS_MAX } from "../assets/asset_index.ts";
import { type Blobs, DIGEST } from "../deploy/blobs.ts";
import type { Role } from "../deploy/roles.ts";
import { problemResponse } from "../gateway/problem.ts";

/** Services of the site that these handlers use. */
export interface BlobServices {
  /** Writer of deployments; null below the root. */
  readonly deployments: { readonly blobs: Blobs } | null;
  forwardToRoot(request: Request, role: Role): Promise<Response>;
}

/** Digests of one call: a file has at most three forms; two more for the index and the source map. */
const DIGESTS_MAX = ASSETS_MAX * 3 + 2;
const digestList = z.array(z.string().regex(DIGEST)).max(DIGESTS_MAX);
/** Bytes of the list of digests: a digest in JSON takes 67. */
const LIST_BYTES_MAX = DIGESTS_MAX * 70;

/** Mounts `POST /blobs/missing` and `PUT /blobs/:digest`. */
export function blobRoutes(app: Hono<{ Bindings: { role: Role | null } }>, services: BlobServices): void {
  app.post("/blobs/missing", async (c) => {
    const { deployments } = services;
    if (deployments === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const digests = digestList.safeParse(await limitedJson(c.req.raw));
    if (!digests.success) {
      return problemResponse(
        "deploy_invalid",
        `expected a JSON array of at most ${DIGESTS_MAX} SHA-256 in hexadecimal`,
      );
    }
    return c.json(await deployments.blobs.missing(digests.data));
  });

  app.put("/blobs/:digest", async (c) => {
    const { deployments } = services;
    if (deployments === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const { digest } = c.req.param();
    if (!DIGEST.test(digest)) {
      return problemResponse("deploy_invalid", "a blob's name is the SHA-256 of its bytes, in hexadecimal");
    }
    const stored = await deployments.blobs.put(
      digest,
      c.req.raw.body ?? new ReadableStream(EMPTY),
      ASSET_BYTES_MAX,
    );
    return stored.ok ? c.body(null, 204) : problemResponse(stored.code, stored.message);
  });
}

const EMPTY: UnderlyingDefaultSource<Uint8Array> = { start: (controller) => controller.close() };

async function limitedJson(request: Request): Promise<unknown> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of request.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > LIST_BYTES_MAX) return undefined;
  }
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema
  }
}
