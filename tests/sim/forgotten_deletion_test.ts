/**
 * A client that finds nothing where a row was deleted, and the deletion forgotten since, has seen that deletion: at a site
 * whose feed lags behind it the row must not show again (store/session/session.ts, E2). No seed is likely to draw it: a feed has
 * to lag for longer than deletions are kept, while what its site writes arrives above.
 */
import { strict as assert } from "node:assert";
import {
  type AttachedSession,
  type OpenReplica,
  StoreUnavailable,
  type TokenState,
} from "../../store/api/api.ts";
import { openReplica } from "../../store/replica.ts";
import { versionstamp } from "../../store/model/row.ts";
import { checkHistory } from "./checks.ts";
import type { HistoryEvent, Seen, Written } from "./history.ts";
import { Scene } from "./scene.ts";

const HORIZON_MS = 400, LAG_MS = 6_000;
const STEP_MS = 20;
const KEY = 0, SET = 0, DELETED = 1;
const OTHER_KEY = 1, FIRST_OTHER = 10;
const TREE = {
  root: { parent: null, linkMs: 0 },
  here: { parent: "root", linkMs: 1 },
  behind: { parent: "root", linkMs: 1 },
} as const;

/** The same target, but for what is otherwise. */
function otherwise<T extends object>(target: T, changed: Partial<T>): T {
  return new Proxy(target, {
    get(of, name) {
      if (Object.hasOwn(changed, name)) return Reflect.get(changed, name);
      const value: unknown = Reflect.get(of, name, of);
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}

/** A store in whose tokens what is absent counts for nothing. */
const forgetful: OpenReplica = async (config, ports) => {
  const replica = await openReplica(config, ports);
  const broken = (session: AttachedSession): AttachedSession => {
    let before: TokenState | null = null;
    return otherwise(session, {
      get: async (keys, options) => {
        const token = session.token(false), rows = await session.get(keys, options);
        before = rows.every((row) => row === undefined) ? before ?? token : null;
        return rows;
      },
      token: (open) => before ?? session.token(open),
    });
  };
  return otherwise(replica, { attach: async (token) => broken(await replica.attach(token)) });
};

/** A scene whose requests are noted as clients see them. */
class Noted {
  readonly scene: Scene;
  #requests = 0;
  #issues = 0;

  constructor(open: OpenReplica) {
    this.scene = new Scene(TREE, { horizonMs: HORIZON_MS, open });
  }

  /** A request at a site; the token that it leaves with, under its number. */
  async request(
    site: keyof typeof TREE,
    work: (session: AttachedSession, request: number) => Promise<void>,
    client: number,
    presented?: { readonly issue: number; readonly token: TokenState },
  ): Promise<{ readonly issue: number; readonly token: TokenState }> {
    const { scene } = this, request = this.#requests++, issue = this.#issues++;
    const presents = presented === undefined ? [] : [presented.issue];
    this.note({ kind: "request", atMs: 0, request, session: client, site, presents });
    const ends = (outcome: string) => this.note({ kind: "end", atMs: 0, request, outcome, final: false });
    try {
      const session = await scene.attach(site, ...presented === undefined ? [] : [presented.token]);
      await work(session, request);
      await scene.done(session.durable());
      const token = session.token(false);
      this.note({ kind: "issue", atMs: 0, request, issue, open: false });
      ends("ok");
      return { issue, token };
    } catch (error) {
      if (error instanceof StoreUnavailable) ends(error.code);
      throw error;
    }
  }

  async read(session: AttachedSession, request: number): Promise<Seen> {
    const { scene, scene: { keyspace } } = this;
    const [row] = await scene.done(session.get([keyspace.key(KEY)]));
    const seen = (row && keyspace.seen(row)) ?? keyspace.absent(KEY);
    this.note({ kind: "read", atMs: 0, request, rows: [seen] });
    return seen;
  }

  async write(session: AttachedSession, request: number, made: Omit<Written, "what">): Promise<void> {
    const { scene, scene: { keyspace } } = this, key = keyspace.key(made.key);
    const isDeletion = made.write === DELETED;
    const writes = [{ ...made, what: isDeletion ? "delete" : "set" }] as const;
    this.note({ kind: "write", atMs: 0, request, writes, checks: [] });
    const result = await scene.done(session.write([
      isDeletion ? { kind: "delete", key } : { kind: "set", key, value: keyspace.value(made.write) },
    ]));
    const stamp = result.ok ? versionstamp(result.version) : null;
    this.note({ kind: "wrote", atMs: 0, request, writes, stamp });
  }

  note(event: HistoryEvent): void {
    this.scene.events.push({ ...event, atMs: this.scene.world.nowMs });
  }
}

/** What checkers say of a client that looks where the deletion is forgotten, and then where it has not arrived. */
async function look(open: OpenReplica): Promise<{ readonly checkers: string[]; readonly isShown: boolean }> {
  const noted = new Noted(open), { scene } = noted;
  await scene.start();
  const write = (write: number, key = KEY) => (session: AttachedSession, request: number) =>
    noted.write(session, request, { write, key });
  await noted.request("here", write(SET), 0);
  const isThere = async (session: AttachedSession, request: number) => {
    assert.equal((await noted.read(session, request)).write, SET);
  };
  await scene.pass(300);
  for (const site of ["here", "behind"] as const) await noted.request(site, isThere, 1); // both hold it from now on
  await scene.pass(300);
  scene.network.stall("root", "behind", scene.world.nowMs + LAG_MS);
  await noted.request("here", write(DELETED), 0);
  const { replica } = scene.process("here");
  // What is written there arrives above, and says that its site has nothing older to say.
  for (let i = 0; (replica.status().counters["collected"] ?? 0) === 0; i++) {
    assert.ok(i * STEP_MS < LAG_MS / 2, "the deletion is not forgotten while the feed lags");
    await noted.request("behind", write(FIRST_OTHER + i, OTHER_KEY), 3);
    await scene.pass(STEP_MS);
  }
  const seen = await noted.request("here", async (session, request) => {
    assert.equal((await noted.read(session, request)).write, null);
  }, 2);
  let isShown = false;
  await noted.request(
    "behind",
    async (session, request) => {
      isShown = (await noted.read(session, request)).write === SET;
    },
    2,
    seen,
  ).catch((error) => assert.equal(error.code, "source_unreachable"));
  const parents = new Map(Object.entries(TREE).map(([id, { parent }]) => [id, parent]));
  const history = { keys: scene.keyspace.size, root: "root", parents, horizonMs: HORIZON_MS };
  const found = checkHistory({ ...history, events: scene.events }, () => {});
  return { checkers: [...new Set(found.map(({ checker }) => checker))], isShown };
}

Deno.test("a deletion that was forgotten where it was seen shows nothing again where it has not arrived (E2)", async () => {
  assert.deepEqual(await look(openReplica), { checkers: [], isShown: false });
});

Deno.test("a token for which what is absent counts for nothing is seen by the checker of sessions (E2)", async () => {
  assert.deepEqual(await look(forgetful), { checkers: ["monotonic reads"], isShown: true });
});
