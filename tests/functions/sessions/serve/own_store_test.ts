/** The store of a stateful session, where what it had seen is at a site that can't be asked. */
import assert from "node:assert/strict";
import { type AttachedSession, StoreUnavailable, type TokenState } from "../../../../store/api/api.ts";
import { OwnStore, type OwnStoreServices } from "../../../../functions/sessions/serve/own_store.ts";
import { NO_HEAD } from "../../../../functions/sessions/serve/pieces.ts";

const GONE = 7, HERE = 2;
const NAME = { class: "duel", id: "one", birth: "00" };
const tokenOf = (replica: number, clock: number) =>
  ({
    session: new Uint8Array(16),
    sequence: 1,
    replica,
    clock,
    path: [1],
    open: false,
  }) as unknown as TokenState;

/** What a log says that its session had seen. */
const saying = (token: TokenState) => ({ ...NO_HEAD, seen: { token, applied: 0, isWhole: true } });

/** A site, and one that nobody can ask. */
function siteOf(code: "source_unreachable" | "disk_failed", missed?: OwnStoreServices["missed"]) {
  const asked: number[] = [];
  let nowMs = 0;
  const asks = ({ replica }: TokenState) => {
    asked.push(replica);
    if (replica !== GONE) return Promise.resolve();
    return Promise.reject(new StoreUnavailable(code, "it does not answer"));
  };
  const attach = async (token: TokenState | null) => {
    let clock = 0;
    const see = async (token: TokenState) => {
      await asks(token);
      clock = Math.max(clock, token.clock);
    };
    if (token !== null) await see(token);
    const durable = () => Promise.resolve();
    return { token: () => tokenOf(HERE, clock), see, durable } as unknown as AttachedSession;
  };
  const services = {
    nowMs: () => nowMs,
    missed,
    replica: { attach },
  } as unknown as OwnStoreServices;
  const pass = (ms: number) => nowMs += ms;
  return { services, asked, pass };
}

Deno.test("where hosts hold the log, a session goes on without what it had seen at a lost site, and says so (O4)", async () => {
  const missed: string[] = [];
  const { services } = siteOf("source_unreachable", ({ message }) => missed.push(message));
  const store = await OwnStore.open(services, NAME, saying(tokenOf(GONE, 500)), () => Promise.resolve());
  assert.deepEqual(missed, ["it does not answer"]);
  assert.ok(store.isMissing);
  const kept = await OwnStore.open(services, NAME, saying(tokenOf(HERE, 500)), () => Promise.resolve());
  assert.ok(!kept.isMissing);
  assert.equal(missed.length, 1);
});

Deno.test("of those attached it sees what can be seen, and asks a lost site not again for each of them (O4)", async () => {
  const missed: string[] = [];
  const { services, asked, pass } = siteOf("source_unreachable", ({ message }) => missed.push(message));
  const store = await OwnStore.open(services, NAME, NO_HEAD, () => Promise.resolve());
  await store.seeAll([tokenOf(HERE, 40), tokenOf(GONE, 50), tokenOf(HERE, 60)]);
  assert.equal(missed.length, 1);
  assert.equal((await store.token()).clock, 60, "the others are seen");
  await store.seeAll([tokenOf(GONE, 50)]);
  assert.equal(asked.filter((replica) => replica === GONE).length, 1);
  pass(10_000);
  await store.seeAll([tokenOf(GONE, 50)]);
  assert.equal(asked.filter((replica) => replica === GONE).length, 2, "it may be back");
});

Deno.test("where owners hold the log, and for any other failure, nothing is gone on without", async () => {
  const { services } = siteOf("source_unreachable");
  await assert.rejects(OwnStore.open(services, NAME, saying(tokenOf(GONE, 500)), () => Promise.resolve()), {
    code: "source_unreachable",
  });
  const store = await OwnStore.open(services, NAME, NO_HEAD, () => Promise.resolve());
  await assert.rejects(store.seeAll([tokenOf(GONE, 1)]), { code: "source_unreachable" });
  await assert.rejects(store.see(tokenOf(GONE, 1)), { code: "source_unreachable" });
  const failing = siteOf("disk_failed", () => assert.fail("that is no lost site")).services;
  await assert.rejects(OwnStore.open(failing, NAME, saying(tokenOf(GONE, 500)), () => Promise.resolve()), {
    code: "disk_failed",
  });
});

Deno.test("a token leaves when all that it names is on disk, and is as of when it was asked for (O3)", async () => {
  const durable = Promise.withResolvers<void>();
  let clock = 5;
  const session = { token: () => tokenOf(HERE, clock), durable: () => durable.promise, isDurable: false };
  const replica = { attach: () => Promise.resolve(session as unknown as AttachedSession) };
  const services = { nowMs: () => 0, replica } as unknown as OwnStoreServices;
  const store = await OwnStore.open(services, NAME, NO_HEAD, () => Promise.resolve());
  const left: number[] = [];
  const leaving = store.token().then((token) => left.push(token.clock));
  assert.equal(store.seen().clock, 5, "what it names is known at once");
  clock = 9; // it goes on meanwhile
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(left, []);
  durable.resolve();
  await leaving;
  assert.deepEqual(left, [5]);
});
