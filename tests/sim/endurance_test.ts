/** Hours of virtual load in seconds; a day is `deno task sim --hours 24`. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { endurance, grown, type HourReport } from "./endurance.ts";

Deno.test("memory and disks stay flat over hours of load with collections and restarts", async () => {
  const { hours, outcomes, findings } = await endurance(4, 1);
  deepStrictEqual(findings, []);
  deepStrictEqual(hours.length, 4);
  const [first] = hours;
  ok(first !== undefined && first.rows > 0 && first.bytes > 0, "sites hold rows");
  ok((outcomes["ok"] ?? 0) > 4 * 60, "users were served");
});

Deno.test("growth of rows, records, bytes or heap is found", () => {
  const hour = (hour: number): HourReport => ({
    hour,
    requests: 0,
    rows: 1000,
    bytes: 1e5,
    records: 90,
    heapMb: 20,
  });
  const flat = Array.from({ length: 8 }, (_, i) => hour(i));
  deepStrictEqual(grown(flat), []);
  for (const name of ["rows", "bytes", "records", "heapMb"] as const) {
    const growing = flat.map((each, i) => ({ ...each, [name]: each[name] * (1 + i) }));
    deepStrictEqual(grown(growing).length, 1, name);
  }
});
