import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ID_PATTERN, idAt, newId, timeOf } from "../../../examples/board/ids.ts";
import { passwordMatches } from "../../../examples/board/passwords.ts";
import { attachmentOf, type Datum, passwordOf } from "./generator.ts";
import { Random } from "./random.ts";
import { smallData } from "./small_data.ts";
import { Words } from "./words.ts";

const rowsOf = (table: string): Readonly<Record<string, unknown>>[] =>
  [...smallData().data()].flatMap((datum) =>
    datum.kind === "row" && datum.table === table ? [datum.value] : []
  );

Deno.test("data are the same every time", () => {
  deepStrictEqual([...smallData().data()], [...smallData().data()]);
});

Deno.test("data have the size that was asked for", () => {
  const tables = Object.groupBy(
    [...smallData().data()],
    (datum) => datum.kind === "row" ? datum.table : "sums",
  );
  const count = (table: string) => tables[table]?.length ?? 0;
  strictEqual(count("users"), 40);
  strictEqual(count("accounts"), 40);
  strictEqual(count("stories") + count("oldStories"), 60);
  strictEqual(count("comments") + count("oldComments"), 200);
  strictEqual(count("submissions"), 25);
  ok(count("oldStories") > 5 * count("stories"), "most stories are old");
});

Deno.test("rows refer to earlier rows only, and counts agree with them", () => {
  const ids = new Set<unknown>([""]);
  const children = new Map<string, number>();
  const told = new Map<string, number>();
  const take = (datum: Datum) => {
    if (datum.kind === "sum") {
      if (datum.key[3] === "children") told.set(`${datum.key[1]}/${datum.key[2]}`, datum.by);
      return;
    }
    const { value } = datum;
    for (const field of ["writer", "story", "parent", "user"]) {
      if (field in value) ok(ids.has(value[field]), `${datum.table} ${field} ${value[field]}`);
    }
    if (datum.table.toLowerCase().endsWith("comments")) {
      const of = `${value["story"]}/${value["parent"]}`;
      children.set(of, (children.get(of) ?? 0) + 1);
    }
    ids.add(value["id"] ?? "");
  };
  for (const datum of smallData().data()) take(datum);
  deepStrictEqual(new Map([...told].sort()), new Map([...children].sort()));
});

Deno.test("generated people can log in", async () => {
  const [account] = rowsOf("accounts");
  ok(await passwordMatches(passwordOf(0), String(account?.["password"])));
  ok(!await passwordMatches(passwordOf(1), String(account?.["password"])));
});

Deno.test("ids sort by time and have one form", () => {
  const times = [0, 1, 31, 32, Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2), Date.UTC(3000, 0, 1)];
  const ids = times.map((time) => newId(time));
  deepStrictEqual(ids, ids.toSorted());
  deepStrictEqual(ids.map(timeOf), times);
  for (const [i, id] of ids.entries()) {
    ok(ID_PATTERN.test(id), id);
    ok(id > idAt(times[i] ?? 0) && id < idAt((times[i] ?? 0) + 1), id);
  }
});

Deno.test("attachments have the length that was asked for", () => {
  for (const bytes of [100, 10 * 1024, 100 * 1024]) {
    strictEqual(attachmentOf(bytes, new Random(1)).length, bytes);
  }
});

Deno.test("words are drawn by weight", () => {
  const words = Words.parse("often 99\nseldom 1\n\nno weight here\n");
  const random = new Random(1);
  let often = 0;
  for (let i = 0; i < 10_000; i++) if (words.word(random) === "often") often++;
  ok(often > 9_800 && often < 9_970, String(often));
});
