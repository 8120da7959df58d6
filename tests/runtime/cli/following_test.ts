/** What a command that follows a change says, above all when it is interrupted. */
import assert from "node:assert/strict";
import { ChangeProgress, type SentChange } from "../../../runtime/cli/following.ts";
import { type AdminClient, AnswerBrokenOff, type ProgressEvent } from "../../../runtime/deploy/client.ts";
import { AdminError } from "../../../runtime/deploy/admin_api.ts";

const VERSION = "a".repeat(64);
const evaluated: ProgressEvent = { event: "evaluated", app: "shop", version: VERSION };
const live: ProgressEvent = { event: "live", app: "shop", version: VERSION, changed: true };

/** A command whose change is interrupted after some events, with what the cluster says afterwards. */
async function interruptedAfter(
  events: readonly ProgressEvent[],
  versions: () => Promise<unknown[]>,
  sent?: SentChange,
) {
  const stop = new AbortController();
  const err: string[] = [];
  const shell = { out: () => {}, err: (line: string) => void err.push(line), env: () => undefined };
  const following = new ChangeProgress({ ...shell, interrupted: () => stop.signal });
  const client = { versions } as unknown as AdminClient;
  const run = following.run(client, ({ tell, signal }) => {
    for (const event of events) tell?.(event);
    stop.abort();
    return Promise.reject(signal?.reason);
  }, sent);
  const error = await run.then(() => null, (error: unknown) => error);
  assert(error instanceof AdminError && error.code === "interrupted", String(error));
  return error.message;
}

Deno.test("Ctrl-C says what has become of the change", async () => {
  const none = () => Promise.resolve([]);
  const there = () => Promise.resolve([{ version: VERSION }]);
  const gone = () => Promise.reject(new AdminError("app_unknown", ""));
  const away = () => Promise.reject(new AdminError("site_unreachable", ""));
  assert.equal(await interruptedAfter([], none), "nothing was changed");
  assert.equal(await interruptedAfter([evaluated], none), "nothing was changed");
  assert.equal(await interruptedAfter([evaluated], gone), "nothing was changed");
  assert.match(await interruptedAfter([evaluated], there), /is there all the same; sojourn rollback shop/);
  assert.match(await interruptedAfter([evaluated], away), /is not known/);
  assert.match(await interruptedAfter([evaluated, live], none), /^it is live all the same: shop a{64}/);
});

Deno.test("Ctrl-C of a change that nothing takes back does not say that nothing was changed", async () => {
  const none = () => Promise.resolve([]);
  const sent = { look: "apps", made: "shop is deleted all the same" };
  assert.equal(
    await interruptedAfter([], none, sent),
    "whether it was done is not known: sojourn apps tells",
  );
  assert.equal(await interruptedAfter([live], none, sent), sent.made);
  assert.match(
    await interruptedAfter([live], none, { look: "apps" }),
    /^it is live all the same: shop a{64}/,
  );
});

Deno.test("an answer that breaks off says what has become of the change (F1)", async () => {
  const shell = { out: () => {}, err: () => {}, env: () => undefined };
  const client = { versions: () => Promise.resolve([]) } as unknown as AdminClient;
  const after = (events: readonly ProgressEvent[]) =>
    new ChangeProgress(shell).run(client, ({ tell }) => {
      for (const event of events) tell?.(event);
      return Promise.reject(new AnswerBrokenOff("the answer has broken off"));
    }).then(() => assert.fail(), (error: AdminError) => `${error.code}: ${error.message}`);
  assert.match(
    await after([evaluated, live]),
    /^site_unreachable: the answer has broken off; it is live all the same: shop a{64}/,
  );
  assert.match(
    await after([evaluated]),
    /broken off; whether it was done is not known: sojourn versions APP tells$/,
  );
});

Deno.test("what fails without Ctrl-C fails as it did, and a short change says nothing on the way", async () => {
  const err: string[] = [];
  const shell = { out: () => {}, err: (line: string) => void err.push(line), env: () => undefined };
  const refused = new AdminError("deploy_invalid", "no");
  await assert.rejects(new ChangeProgress(shell).run(null, () => Promise.reject(refused)), refused);
  const done = await new ChangeProgress(shell).run(null, ({ tell }) => {
    tell?.(evaluated);
    return Promise.resolve(7);
  });
  assert.deepEqual([done, err], [7, []]);
});
