import { strict as assert } from "node:assert";
import fc from "fast-check";
import { type Candidate, checkOwners, chooseOwners, OwnersError } from "../../../store/presence/choose.ts";

const at = (id: string, rttMs: number | null, area: string | null = null, isAlive = true): Candidate => ({
  id,
  area,
  rttMs,
  isAlive,
});
const self = { id: "me", area: null };

Deno.test("owners are the nearest beyond the limit, then the farthest within it, then the unmeasured (C3)", () => {
  const sites = [at("a", 3), at("b", 12), at("c", 30), at("d", 8), at("e", null), at("f", 10)];
  const rows: [number, string[]][] = [
    [0, ["me"]],
    [1, ["me", "f"]],
    [2, ["me", "f", "b"]],
    [3, ["me", "f", "b", "c"]],
    [4, ["me", "f", "b", "c", "d"]],
    [6, ["me", "f", "b", "c", "d", "a", "e"]],
  ];
  for (const [f, owners] of rows) {
    assert.deepEqual(chooseOwners(self, { f, nearMs: 10 }, sites), { owners, missing: 0 });
  }
  assert.deepEqual(chooseOwners(self, { f: 1, nearMs: 0 }, sites).owners, ["me", "a"]);
  assert.deepEqual(chooseOwners(self, { f: 2, nearMs: 100 }, sites).owners, ["me", "c", "b"]);
});

Deno.test("owners share no failure area where there is a choice (C2)", () => {
  const here = { id: "me", area: "x" };
  const sites = [at("a", 10, "x"), at("b", 20, "y"), at("c", 21, "y"), at("d", 5, "z"), at("e", 50)];
  assert.deepEqual(chooseOwners(here, { f: 1, nearMs: 10 }, sites).owners, ["me", "b"]);
  assert.deepEqual(chooseOwners(here, { f: 3, nearMs: 10 }, sites).owners, ["me", "b", "e", "d"]);
  assert.deepEqual(chooseOwners(here, { f: 5, nearMs: 10 }, sites).owners, ["me", "b", "e", "d", "a", "c"]);
});

Deno.test("one whose loss costs more is taken where another would share an area, or there is none (C5)", () => {
  const costly = { ...at("a", 12, "y"), isLast: true };
  const first = (...sites: Candidate[]) =>
    chooseOwners({ id: "me", area: "x" }, { f: 1, nearMs: 10 }, sites).owners[1];
  assert.equal(first({ ...costly, isLast: false }, at("b", 50, "z")), "a");
  for (const other of [at("b", 50, "z"), at("b", 3, "z"), at("b", null, "z")]) {
    assert.equal(first(costly, other), "b");
    assert.equal(first(other, costly), "b");
  }
  assert.equal(first(costly, at("b", 50, "x")), "a", "the other shares this site's area");
  assert.equal(first(costly, at("b", 50, "z", false)), "a", "the other does not live");
  assert.equal(first(costly), "a");
});

Deno.test("a site that does not live is no owner, and missing ones are counted (C1)", () => {
  const sites = [at("a", 10, null, false), at("b", 20)];
  assert.deepEqual(chooseOwners(self, { f: 2, nearMs: 10 }, sites), { owners: ["me", "b"], missing: 1 });
});

Deno.test("more owners than there are sites, and sites that there are not, are refused by name and number (C4)", () => {
  const known = ["me", "a", "b"];
  const refused = (f: number, sites: string[] | null): string => {
    try {
      checkOwners("me", { f, sites }, known);
    } catch (error) {
      assert.ok(error instanceof OwnersError);
      return `${error.code}: ${error.message}`;
    }
    return "";
  };
  assert.equal(refused(2, null), "");
  assert.equal(refused(1, ["a"]), "");
  assert.equal(refused(1, ["me", "a"]), "");
  assert.equal(
    refused(3, null),
    "owners_too_many: cannot keep tuples of me at f = 3 other sites: the tree has n = 3 sites, so f may be up to 2",
  );
  assert.equal(
    refused(2, ["a", "a", "me"]),
    "owners_too_many: cannot keep tuples of me at f = 2 other sites: the list of owners, with this site, has n = 2 " +
      "sites, so f may be up to 1",
  );
  assert.equal(
    refused(1, ["a", "x", "y"]),
    "owners_unknown: cannot take x, y as owners: no such site; the sites of the tree are me, a, b",
  );
});

const candidates = fc.uniqueArray(
  fc.record({
    id: fc.stringMatching(/^[a-l]{2}$/),
    area: fc.constantFrom("x", "y", "z", null),
    rttMs: fc.option(fc.nat(40), { nil: null }),
    isAlive: fc.boolean(),
  }),
  { selector: ({ id }) => id, maxLength: 9 },
);

Deno.test("a choice is of living sites, each once, in as many areas as there are to choose from", () => {
  fc.assert(fc.property(candidates, fc.nat(8), fc.constantFrom("x", null), (sites, f, area) => {
    const { owners, missing } = chooseOwners({ id: "me", area }, { f, nearMs: 10 }, sites);
    const living = sites.filter(({ isAlive }) => isAlive);
    assert.equal(owners[0], "me");
    assert.equal(new Set(owners).size, owners.length);
    assert.equal(owners.length, 1 + Math.min(f, living.length));
    assert.equal(missing, f + 1 - owners.length);
    const areaOf = (id: string) => {
      const own = id === "me" ? area : sites.find((site) => site.id === id)?.area ?? null;
      return own === null ? `site ${id}` : own;
    };
    for (const id of owners.slice(1)) assert.ok(living.some((site) => site.id === id), id);
    const possible = new Set(["me", ...living.map(({ id }) => id)].map(areaOf)).size;
    assert.equal(new Set(owners.map(areaOf)).size, Math.min(owners.length, possible));
    const shuffled = chooseOwners({ id: "me", area }, { f, nearMs: 10 }, [...sites].reverse());
    assert.deepEqual(shuffled.owners, owners);
  }));
});
