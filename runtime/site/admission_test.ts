import { strict as assert } from "node:assert";
import { CHILDREN_MAX } from "../../store/model/limits.ts";
import { refusalOf } from "./admission.ts";

const sites = new Map([["mine", { parent: "core" }], ["other", { parent: "cloud" }]]);
const at = (children: number) => ({
  id: "core",
  members: { isRemoved: (site: string) => site === "gone", children },
  sites,
});

Deno.test("a site is let in as what its row says, while there is room for it", () => {
  const full = CHILDREN_MAX;
  const rows: readonly (readonly [string, "child" | "peer", number, RegExp | null])[] = [
    ["new", "child", 0, null],
    ["new", "child", full - 1, null],
    ["new", "child", full, /has 10000 children, which is the most: give new another parent/],
    ["new", "peer", full, null],
    ["mine", "child", full, null],
    ["other", "child", 0, null],
    ["other", "child", full, /has 10000 children/],
    ["other", "peer", 0, null],
    ["gone", "child", 0, /was removed/],
    ["gone", "peer", 0, /was removed/],
  ];
  for (const [site, role, children, refusal] of rows) {
    const text = refusalOf(site, role, at(children));
    if (refusal === null) assert.equal(text, null, `${site} ${role} ${children}`);
    else assert.match(text ?? "", refusal);
  }
});
