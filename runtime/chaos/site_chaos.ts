/**
 * Faults of one site, inside its process: they are put on its links, its clock and its disk as the dev process tells.
 *
 * Life: made from the file that the dev process wrote (before anything of the site runs, so that a cut holds from
 * the first byte) → `storage`, `isCut`, `shapeOf` while the site is put together → `bind` → told again whenever
 * something changes.
 *
 * The dev process tells the faults over the site's own HTTP: no link carries them, so no partition cuts them off.
 *
 * Faults can be told to a site that is not ready, or whose disk has failed: that is what they are for.
 */
import { z } from "zod";
import { packKey } from "../../store/model/key.ts";
import { prefixRange, type Range, WHOLE } from "../../store/model/range.ts";
import type { Storage } from "../../store/model/ports.ts";
import { problemResponse } from "../gateway/problem.ts";
import { refusedRole } from "../admin/access.ts";
import type { Role } from "../deploy/roles.ts";
import { EVICTED, explainAction } from "./actions.ts";
import { FaultStorage } from "./fault_storage.ts";
import { type ChangedLink, type SiteFaults, siteFaultsSchema } from "./ledger.ts";

/** Schema of the file that a site of a dev cluster starts with. */
export const chaosFileSchema = z.strictObject({
  /** URL at which the dev process takes chaos actions, and the token that it asks for there. */
  door: z.strictObject({ url: z.url(), token: z.string() }),
  faults: siteFaultsSchema,
});
/** File that a site of a dev cluster starts with. */
export type ChaosFile = z.infer<typeof chaosFileSchema>;

/** Parts of a site that can be broken. */
export interface BreakableSite {
  readonly links: {
    shape(site: string, shape: ChangedLink | null): void;
    cut(site: string): void;
    heal(site: string): void;
  };
  readonly replica: { evict(range?: Range): Promise<void>; status(): { coverage: { ranges: number } } };
  /** Returns the tables of an app, by name; null where there is no such app. */
  readonly tablesOf: (app: string) => readonly string[] | null;
}

const evictSchema = z.strictObject(EVICTED, "expected a JSON object");

/** Path below which a site takes all chaos calls. */
export const CHAOS_PATH = "/_sojourn/admin/chaos";
/**
 * Header that names the site which passed a call on to the dev process, so that this site's own end does not swallow
 * the answer.
 */
export const CHAOS_VIA = "sojourn-chaos-via";
/** Bytes of a body: an action is a few names and numbers. */
const BODY_BYTES_MAX = 64 * 1024;

/** The faults of one site. */
export class SiteChaos {
  readonly #site: string;
  readonly #root: boolean;
  readonly #door: ChaosFile["door"];
  readonly #links: Readonly<Record<string, ChangedLink>>;
  readonly #clock: { skewMs: number };
  #faults: SiteFaults;
  #storage: FaultStorage | null = null;
  #bound: BreakableSite | null = null;

  /** @param links properties that the site file gives them. */
  constructor(
    config: {
      readonly id: string;
      readonly parent: object | null;
      readonly links: Record<string, ChangedLink>;
    },
    file: ChaosFile,
    clock: { skewMs: number },
  ) {
    this.#site = config.id;
    this.#root = config.parent === null;
    this.#links = config.links;
    this.#door = file.door;
    this.#faults = file.faults;
    this.#clock = clock;
    clock.skewMs = file.faults.skewMs;
  }

  /** Returns the site's storage, breakable. */
  storage(inner: Storage): Storage {
    return this.#storage = new FaultStorage(inner, this.#faults.disk);
  }

  /** True where the disk works as it is: a disk that is broken on purpose is put right on purpose. */
  get isDiskOk(): boolean {
    return this.#faults.disk === "ok";
  }

  /** Reports whether the link to a site begins cut. */
  isCut(site: string): boolean {
    return this.#faults.cut.includes(site);
  }

  /** Returns the properties of the link to a site. */
  shapeOf(site: string): ChangedLink | null {
    return this.#faults.shapes[site] ?? this.#links[site] ?? null;
  }

  /** Binds the site's parts: from now on faults that are told take effect on them. */
  bind(site: BreakableSite): void {
    this.#bound = site;
  }

  /** Answers a call below {@link CHAOS_PATH}. */
  async handle(request: Request, path: string, role: Role | null): Promise<Response> {
    const refused = refusedRole(role, request.method === "GET" ? "read" : "admin");
    if (refused !== null) return refused;
    if (path === CHAOS_PATH && (request.method === "GET" || request.method === "POST")) {
      return await this.#pass(request);
    }
    if (request.method === "PUT" && path === `${CHAOS_PATH}/site`) return await this.#tell(request);
    if (request.method === "POST" && path === `${CHAOS_PATH}/site/evict`) return await this.#evict(request);
    return problemResponse("not_found", `GET and POST ${CHAOS_PATH}, not ${request.method} ${path}`);
  }

  /** Passes the call to the dev process, which knows all sites and can reach them. */
  async #pass(request: Request): Promise<Response> {
    const body = request.method === "GET" ? null : await readText(request);
    if (body === undefined) {
      return problemResponse("limit_body", `an action has at most ${BODY_BYTES_MAX} bytes`);
    }
    try {
      return await fetch(this.#door.url + CHAOS_PATH, {
        method: request.method,
        headers: { authorization: `Bearer ${this.#door.token}`, [CHAOS_VIA]: this.#site },
        body,
        signal: request.signal,
      });
    } catch (error) {
      return problemResponse(
        "not_available",
        `the dev process that holds this cluster does not answer: ${
          error instanceof Error ? error.message : error
        }`,
      );
    }
  }

  async #tell(request: Request): Promise<Response> {
    const body = parseJson(await readText(request));
    const parsed = siteFaultsSchema.safeParse(body);
    if (!parsed.success) return problemResponse("chaos_invalid", explainAction(parsed.error, body));
    this.#apply(parsed.data);
    return Response.json({ site: this.#site });
  }

  #apply(faults: SiteFaults): void {
    const before = this.#faults;
    this.#faults = faults;
    this.#clock.skewMs = faults.skewMs;
    if (this.#storage !== null) this.#storage.state = faults.disk;
    const links = this.#bound?.links;
    if (links === undefined) return; // the links' maker asks isCut and shapeOf
    for (const site of new Set([...Object.keys(before.shapes), ...Object.keys(faults.shapes)])) {
      links.shape(site, this.shapeOf(site));
    }
    for (const site of faults.cut) links.cut(site);
    for (const site of before.cut) if (!this.isCut(site)) links.heal(site);
  }

  async #evict(request: Request): Promise<Response> {
    const body = parseJson(await readText(request));
    const parsed = evictSchema.safeParse(body);
    if (!parsed.success) return problemResponse("chaos_invalid", explainAction(parsed.error, body));
    if (this.#bound === null) return problemResponse("not_ready", `site ${this.#site} is starting`);
    if (this.#root) {
      return problemResponse(
        "chaos_invalid",
        `${this.#site} is the root, which gives nothing back: it has everything`,
      );
    }
    const { app, table } = parsed.data;
    const tables = app === undefined ? [] : this.#bound.tablesOf(app);
    if (tables === null) return problemResponse("app_unknown", `no app is called ${JSON.stringify(app)}`);
    if (table !== undefined && !tables.includes(table)) {
      const there = tables.length === 0 ? "none" : tables.join(", ");
      return problemResponse(
        "chaos_invalid",
        `${app} has no table ${JSON.stringify(table)}; it has ${there}`,
      );
    }
    const { replica } = this.#bound;
    const before = replica.status().coverage.ranges;
    for (const range of rangesOf(app, table)) await replica.evict(range);
    return Response.json({ site: this.#site, before, after: replica.status().coverage.ranges });
  }
}

/** Returns the ranges of a table: its rows and its index entries (functions/vocabulary/store_client.ts). */
function rangesOf(app: string | undefined, table: string | undefined): Range[] {
  if (app === undefined) return [WHOLE];
  if (table === undefined) return [prefixRange(packKey(["a", app]))];
  return ["t", "i"].map((space) => prefixRange(packKey(["a", app, space, table])));
}

/** Returns a body as text; undefined where it is too long. */
async function readText(request: Request): Promise<string | undefined> {
  let text = "";
  if (request.body === null) return text;
  for await (const part of request.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length > BODY_BYTES_MAX) return undefined;
  }
  return text;
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
