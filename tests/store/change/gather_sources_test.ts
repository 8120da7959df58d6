/** Whom a new parent asks for what its child's old one had (store/change/gather_sources.ts). */
import assert from "node:assert/strict";
import {
  firstSources,
  type GatherSource,
  isGivenUp,
  sourcesAbove,
} from "../../../store/change/gather_sources.ts";
import type { ChildHello, MovedSite } from "../../../store/wire/message.ts";
import { ends, learns, loneCore, removes } from "../lone_core.ts";

const ROOT = 1, NEW = 5, A = 2, B = 3, OLD = 4;

/** A new parent of one whose old one stood at root/a/b/old. */
function adopting() {
  const core = loneCore(["root", "new"], NEW);
  learns(core, NEW, ["root", "new"], { parent: ROOT });
  learns(core, A, ["root", "a"], { parent: ROOT });
  learns(core, B, ["root", "a", "b"], { parent: A });
  learns(core, OLD, ["root", "a", "b", "old"], { parent: B });
  return core;
}

function hello(moved: Partial<MovedSite> | null = {}): ChildHello {
  return {
    ...{ kind: "hello", attempt: 1, replica: 9, parentReplica: OLD, cursor: 0, clock: 0 },
    ...{ tier: "edge", url: "", linkAddress: "", coverage: [] },
    ...moved !== null && { moved: { floor: 0, from: "old", siblings: [], lost: [], ...moved } },
  } as ChildHello;
}

Deno.test("the old parent is asked first, or, where it is given up, its child and that one's siblings (S3)", () => {
  const siblings = ["f", "g", "h"];
  const core = adopting();
  removes(core, "g");
  assert.deepEqual(firstSources(core, "e", hello(null)), []);
  assert.deepEqual(firstSources(core, "e", hello({ siblings })), [{ site: "old", replica: OLD }]);
  const others = [{ site: "e", replica: 0 }, { site: "f", replica: 0 }];
  assert.deepEqual(firstSources(core, "e", hello({ siblings, lost: ["old", "h"] })), others);
});

Deno.test("where the old parent resyncs, and so waits for the child, all that it waits for are asked with it (S4)", () => {
  const core = adopting();
  learns(core, 10, ["root", "a", "b", "old", "e"], { parent: OLD });
  learns(core, 11, ["root", "a", "b", "old", "f"], { parent: OLD });
  const asked = (said: ChildHello) => firstSources(core, "e", said).map(({ site }) => site).sort();
  const any = firstSources(core, "e", hello({ siblings: ["e"] }));
  assert.deepEqual(any.filter(({ replica }) => replica !== 0), [], "whatever is there");
  assert.deepEqual(asked(hello({ siblings: ["e"] })), ["e", "f", "old"]);
  assert.deepEqual(asked(hello({ siblings: ["e", "g"], lost: ["f"] })), ["e", "g", "old"]);
  assert.deepEqual(asked(hello({ siblings: ["e", "g"], lost: ["old"] })), ["e", "g"], "S3");
});

Deno.test("a site above that resyncs, too, and waits for the old parent, is asked for what is there, as are those below it (S4)", () => {
  const core = adopting();
  learns(core, 10, ["root", "a", "b", "c"], { parent: B });
  learns(core, 11, ["root", "a", "b", "d"], { parent: B });
  const found = sourcesAbove(core, [{ site: "b", replica: 0 }], hello({ siblings: ["e"], lost: ["d"] }));
  assert.deepEqual(found, ["b", "old", "c"].map((site) => ({ site, replica: 0 })));
});

Deno.test("an old parent is given up where an operator says so, it is off the tree, or its disk is lost", () => {
  const rows:
    readonly (readonly [string, (core: ReturnType<typeof adopting>) => void, ChildHello, boolean])[] = [
      ["it lives", () => {}, hello(), false],
      ["its child did not move", () => {}, hello(null), false],
      [
        "its child comes from where nobody was",
        (core) => ends(core, OLD, { stable: 5 }),
        hello({ from: "" }),
        false,
      ],
      ["an operator says so", () => {}, hello({ lost: ["old"] }), true],
      ["an operator says so of another", () => {}, hello({ lost: ["b"] }), false],
      ["it is off the tree", (core) => removes(core, "old"), hello(), true],
      ["its disk is lost", (core) => ends(core, OLD, { stable: 5 }), hello(), true],
      ["it went on under another number", (core) => ends(core, OLD, { stable: 5, next: 8 }), hello(), false],
    ];
  for (const [says, happens, said, isExpected] of rows) {
    const core = adopting();
    happens(core);
    assert.equal(isGivenUp(core, said), isExpected, says);
  }
});

Deno.test("above those that have answered whoever stands is asked, and nobody above the common ancestor (S2, S3)", () => {
  const old: GatherSource = { site: "old", replica: OLD }, b: GatherSource = { site: "b", replica: B };
  const rows: readonly (readonly [
    string,
    GatherSource,
    GatherSource | null,
    ((core: ReturnType<typeof adopting>) => void)?,
    ChildHello?,
  ])[] = [
    ["it stands", b, b],
    ["above the root there is nobody", { site: "", replica: 0 }, null],
    ["the root has all", { site: "root", replica: ROOT }, null],
    ["who asks has it itself", { site: "new", replica: NEW }, null],
    ["it moved with its disk", b, b, (core) => ends(core, B, { stable: 5, next: 8 })],
    ["it lost its disk, and is back", b, { site: "b", replica: 8 }, (core) => {
      ends(core, B, { stable: 5 });
      learns(core, 7, ["root", "a", "b"], { parent: A });
      ends(core, 7, { stable: 6 });
      learns(core, 8, ["root", "a", "b"], { parent: A });
    }],
    [
      "it lost its disk, and is not back",
      b,
      { site: "a", replica: A },
      (core) => ends(core, B, { stable: 5 }),
    ],
    ["it is off the tree", b, { site: "a", replica: A }, (core) => removes(core, "b")],
    ["an operator gave it up", b, { site: "a", replica: A }, () => {}, hello({ lost: ["b"] })],
    [
      "two above each other were given up",
      old,
      { site: "a", replica: A },
      () => {},
      hello({ lost: ["b", "old"] }),
    ],
    ["all up to the root were", b, null, () => {}, hello({ lost: ["a", "b"] })],
    ["the old parent is given up, and is back with a blank disk", b, { site: "a", replica: A }, (core) => {
      removes(core, "old");
      ends(core, B, { stable: 5 });
      learns(core, 8, ["root", "a", "b"], { parent: A });
    }],
    ["the old parent is given up, under whichever number", { site: "old", replica: 8 }, b, (core) => {
      learns(core, 8, ["root", "a", "b", "old"], { parent: B });
    }, hello({ lost: ["old"] })],
    ["nothing is known of it", { site: "x", replica: 99 }, null, (core) => removes(core, "x")],
    ["rows lead round", { site: "x", replica: 21 }, null, (core) => {
      learns(core, 20, ["root", "y", "z", "x"], { parent: 0 });
      learns(core, 21, ["root", "z", "x"], { parent: 20 });
      removes(core, "x");
      removes(core, "z");
    }],
  ];
  for (const [says, named, expected, happens, said = hello()] of rows) {
    const core = adopting();
    happens?.(core);
    assert.deepEqual(sourcesAbove(core, [named], said), expected === null ? [] : [expected], says);
  }
  assert.deepEqual(sourcesAbove(adopting(), [b, old, b], hello()), [b, old], "each once");
});
