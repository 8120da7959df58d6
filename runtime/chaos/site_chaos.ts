/**
 * Faults of one site, inside its process: what the dev process says is done to its links, its clock and its disk.
 *
 * Life: made from the file that the dev process wrote (before anything of the site runs, so that a cut holds from
 * the first byte) → `storage`, `isCut`, `shapeOf` while the site is put together → `bind` → told again whenever
 * something changes.
 *
 * F1  The way here is the site's own HTTP from the dev process: no link carries it, so no partition cuts it off.
 * F2  It works on a site that is not ready, or whose disk has failed: that is what it is for.
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

/** The file that a site of a dev cluster starts with. */
export const chaosFileSchema = z.strictObject({
  /** Where the dev process takes chaos actions, and what it asks for there. */
  door: z.strictObject({ url: z.url(), token: z.string() }),
  faults: siteFaultsSchema,
});
/** The file that a site of a dev cluster starts with. */
export type ChaosFile = z.infer<typeof chaosFileSchema>;

/** What of a site can be broken. */
export interface BreakableSite {
  readonly links: {
    shape(site: string, shape: ChangedLink | null): void;
    cut(site: string): void;
    heal(site: string): void;
  };
  readonly replica: { evict(range?: Range): Promise<void>; status(): { coverage: { ranges: number } } };
  /** Tables of an app, by name; null where there is no such app. */
  readonly tablesOf: (app: string) => readonly string[] | null;
}

const evictSchema = z.strictObject(EVICTED, "expected a JSON object");

/** Where a site takes chaos calls: all of them below this. */
export const CHAOS_PATH = "/_sojourn/admin/chaos";
/** Which site passed a call on to the dev process, so that this site's own end does not swallow the answer. */
export const CHAOS_VIA = "sojourn-chaos-via";
/** An action is a few names and numbers. */
const BODY_BYTES_MAX = 64 * 1024;

/** See the file's header. */
export class SiteChaos {
  readonly #site: string;
  readonly #root: boolean;
  readonly #door: ChaosFile["door"];
  readonly #links: Readonly<Record<string, ChangedLink>>;
  readonly #clock: { skewMs: number };
  #faults: SiteFaults;
  #storage: FaultStorage | null = null;
  #bound: BreakableSite | null = null;

  /** @param links what the site file says of them. */
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

  /** The site's storage, breakable. */
  storage(inner: Storage): Storage {
    return this.#storage = new FaultStorage(inner, this.#faults.disk);
  }

  /** Whether the disk works as it is: what is broken on purpose is put right on purpose. */
  get isDiskOk(): boolean {
    return this.#faults.disk === "ok";
  }

  /** Whether the link to a site begins cut. */
  isCut(site: string): boolean {
    return this.#faults.cut.includes(site);
  }

  /** What the link to a site is like. */
  shapeOf(site: string): ChangedLink | null {
    return this.#faults.shapes[site] ?? this.#links[site] ?? null;
  }

  /** From now on the site can be told. */
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

  /** Hands the call to the dev process, which knows all sites and can reach them. */
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
    if (links === undefined) return; // whoever makes them asks isCut and shapeOf
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

/** A table is its rows and its index entries (functions/vocabulary/store_client.ts). */
function rangesOf(app: string | undefined, table: string | undefined): Range[] {
  if (app === undefined) return [WHOLE];
  if (table === undefined) return [prefixRange(packKey(["a", app]))];
  return ["t", "i"].map((space) => prefixRange(packKey(["a", app, space, table])));
}

/** A body as text; undefined where it is too long. */
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
