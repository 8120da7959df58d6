import assert from "node:assert/strict";
import { cpuOfChildren } from "./cpu.ts";

Deno.test({
  name: "what a child has taken of the cores is told once it has ended, with its own children's",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    const before = cpuOfChildren() ?? NaN;
    const burn = "const end = performance.now() + 300; while (performance.now() < end);";
    const nested = `new Deno.Command(Deno.execPath(), { args: ["eval", ${
      JSON.stringify(burn)
    }] }).outputSync();`;
    await new Deno.Command(Deno.execPath(), { args: ["eval", nested] }).output();
    const taken = (cpuOfChildren() ?? NaN) - before;
    assert.ok(taken > 0.05 && taken < 20, `${taken} s`);
  },
});
