/** Who may be taken off the tree: what the root answers, with sites that are made up. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import { membershipRoutes } from "../../../runtime/admin/membership.ts";
import type { AdminBindings, AdminServices } from "../../../runtime/admin/services.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import type { HeldBy, Replica, SoleCopies } from "../../../store/api/api.ts";

interface Made {
  /** Whether it said that it stops. */
  readonly isDrained?: boolean;
  readonly held?: HeldBy;
  readonly sole?: readonly SoleCopies[];
  /** By site that answers: the owners in effect there. */
  readonly owners?: Readonly<Record<string, readonly string[]>>;
}

/** A root, and who is removed there. */
function rootOf({ isDrained = true, held = { left: [], owned: [] }, owners = {}, sole = [] }: Made) {
  const removed: string[] = [];
  const members = {
    remove: (id: string) => {
      removed.push(id);
      return Promise.resolve({ kind: "removed", stable: 0 });
    },
    awayUntilMs: () => isDrained ? 1 : undefined,
    heldBy: () => held,
    soleAt: () => sole,
  } as unknown as Replica["members"];
  const rows = ["root", "o"].map((id) => ({
    value: encodeSystem({ id, parent: id === "root" ? null : "root", depth: id === "root" ? 0 : 1 }),
  }));
  const services = {
    site: "root",
    system: { list: () => Promise.resolve(rows) },
    observed: { status: () => statusOf([]) },
    forward: (site: string) => {
      const its = owners[site];
      if (its === undefined) return Promise.reject(new Error("it does not answer"));
      return Promise.resolve(Response.json({ status: statusOf(its) }));
    },
    note: () => {},
  } as unknown as AdminServices;
  const app = new Hono<{ Bindings: AdminBindings }>();
  membershipRoutes(app, services, members);
  const remove = async (query = "") => {
    const answer = await app.request(`/sites/o${query}`, { method: "DELETE" });
    return { status: answer.status, ...await answer.json() as { code?: string; detail?: string } };
  };
  return { remove, removed };
}

const statusOf = (owners: readonly string[]) => ({
  ...{ pending: 0, pendingBytes: 0, children: [], wards: { owners } },
});

Deno.test("a drained site is removed when nobody counts on its disk, and by force (M2, M3)", async () => {
  const lost = { left: ["s"], owned: [] }, living = { left: [], owned: ["e1", "e2"] };
  const sole = [{ what: "logs of stateful sessions", count: 2 }, {
    what: "messages of the queue q of a",
    count: 3,
  }];
  const rows: readonly (readonly [string, Made, RegExp | null])[] = [
    ["nobody does", {}, null],
    [
      "it may have what a lost site had told",
      { held: lost },
      /what s had told may be on its disk alone: start o/,
    ],
    ["a site names it", { held: living, owners: { e1: ["o"], e2: ["p"] } }, /needed\. e1 count it among/],
    ["none does any more", { held: living, owners: { e1: ["p"], e2: [] } }, null],
    ["one can't be asked", { held: living, owners: { e1: ["p"] } }, /e2 may count it .* do not answer/],
    [
      "what it has is nowhere else",
      { sole },
      /needed\. logs of stateful sessions \(2\), messages of the queue q of a \(3\) were on its disk alone: start o/,
    ],
    ["it was not drained: it is lost", { held: lost, isDrained: false }, null],
  ];
  for (const [says, made, refused] of rows) {
    const { remove, removed } = rootOf(made);
    const answer = await remove();
    assert.deepEqual(
      [answer.status, answer.code, removed],
      refused === null ? [200, undefined, ["o"]] : [409, "site_held", []],
      says,
    );
    if (refused === null) continue;
    assert.match(answer.detail ?? "", refused, says);
    assert.match(answer.detail ?? "", /with --force/, says);
    assert.equal((await remove("?force=1")).status, 200, says);
    assert.deepEqual(removed, ["o"]);
  }
});
