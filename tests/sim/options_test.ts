import assert from "node:assert/strict";
import { parseOptions } from "./options.ts";

Deno.test("the simulator's arguments say which runs are wanted", () => {
  const of = (line: string) => parseOptions(line.split(" ").filter((word) => word !== ""));
  const cases: [string, Partial<ReturnType<typeof parseOptions>>][] = [
    ["", { first: 0, count: 200, runsVariants: false, sites: null }],
    ["--seeds 20 --seed 7", { first: 7, count: 20 }],
    ["--seed=7 -v", { first: 7, count: 1, isVerbose: true }],
    ["--seeds 3 --sites 300 --json", { count: 3, sites: 300 }],
    ["--variants", { count: 0, runsVariants: true }],
    ["--seeds 150 --variants", { count: 150, runsVariants: true }],
    ["--seed 4 --shrink --variant x", { first: 4, shrinks: true, variant: "x", runsVariants: false }],
    ["--hours 24", { hours: 24, count: 0 }],
    ["--crash-points", { crashPoints: "", count: 0 }],
    ["--crash-points fetch/12 -v", { crashPoints: "fetch/12", isVerbose: true }],
    ["--crash-points -v", { crashPoints: "", isVerbose: true }],
    ['--seed 4 --plan {"a":"b=c"}', { plan: '{"a":"b=c"}' }],
  ];
  for (const [line, wanted] of cases) {
    const options = of(line);
    for (const [name, value] of Object.entries(wanted)) {
      assert.equal(options[name as keyof typeof options], value, `${line}: ${name}`);
    }
  }
});

Deno.test("the simulator refuses arguments that it does not know, saying which there are", () => {
  for (
    const line of ["--sedes 3", "--seeds x", "--seeds -1", "--sites 1", "--sites 9999", "--seeds", "run"]
  ) {
    assert.throws(() => parseOptions(line.split(" ")), /needs|cannot take/, line);
  }
});
