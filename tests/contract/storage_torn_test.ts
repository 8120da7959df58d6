/**
 * S2 on disks that lose and tear what was not synced: a process commits numbered steps; every file call that it
 * makes is recorded; then its folder is made anew as a power cut after any of these calls could have left it
 * (torn_disk.ts), and opened. What is there must be some step, whole, and no older than the last one that the
 * process had said was committed.
 *
 * What a disk does to data that it had said was synced is beyond this, as it is beyond every store that syncs.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { StoreUnavailable } from "../../store/api/api.ts";
import { Draws } from "../sim/random.ts";
import { wholeStep } from "./storage_kill_step.ts";
import { openEngine } from "./storage_subjects.ts";
import { type Call, callsOf, cutAt, FOLDER, recorded, type Tear, TEARS } from "./torn_disk.ts";

const CHILD = fileURLToPath(new URL("./storage_kill_child.ts", import.meta.url));
/** Two of them large: enough for a checkpoint of SQLite's log, and for some steps after it. */
const STEPS = 16;
const CUTS = Number(Deno.env.get("SOJOURN_TORN_CUTS") ?? 120);

/** The last step that the process had told when it made a call. */
function toldAt(calls: readonly Call[], index: number): number {
  const said = calls.slice(0, index + 1).findLast((call) => call.kind === "said");
  return said?.kind === "said" ? Number(said.text) : 0;
}

/** Where to cut: anywhere, and in the thick of it, around syncs and what was told. */
function* cuts(
  calls: readonly Call[],
  draws: Draws,
  times: number,
): Generator<{ index: number; tear: Tear }> {
  const first = calls.findIndex((call) => call.kind === "said");
  const edges = calls.flatMap((call, i) =>
    i > first && (call.kind === "sync" || call.kind === "said") ? [i] : []
  );
  for (let i = 0; i < times; i++) {
    const near = draws.pick(edges) + draws.integer(-3, 1);
    const index = draws.chance(0.5) ? near : draws.integer(first, calls.length - 1);
    yield { index: Math.min(Math.max(first, index), calls.length - 1), tear: draws.pick(TEARS) };
  }
}

/** Opens what cuts leave; what is wrong with it, and which steps were found. */
async function opened(engine: string, folder: string, calls: readonly Call[], times: number) {
  const draws = new Draws(`torn ${engine}`);
  const wrong: string[] = [];
  const found = new Set<number>();
  for (const { index, tear } of cuts(calls, draws, times)) {
    const place = `${folder}/cut`;
    await Deno.mkdir(place);
    for (const [file, bytes] of cutAt(calls, index, tear, draws)) {
      await Deno.writeFile(`${place}/${file}`, bytes);
    }
    const told = toldAt(calls, index);
    try {
      const storage = await openEngine(engine, place);
      // What was not synced may be gone, and that is no reason not to open what is there.
      if ("wentBack" in storage && storage.wentBack) wrong.push(`${tear} after call ${index}: it went back`);
      const step = await wholeStep(storage).finally(() => storage.close());
      if (step < told || step > told + 1) wrong.push(`${tear} after call ${index}: ${step}, told ${told}`);
      found.add(step);
    } catch (error) {
      wrong.push(`${tear} after call ${index}: ${error}`);
    }
    await Deno.remove(place, { recursive: true });
  }
  return { wrong, found };
}

for (const engine of ["sqlite", "denokv"]) {
  Deno.test(`storage: ${engine}: a power cut that tears what was not synced leaves a whole step, no older than the last told (S2)`, async (t) => {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-torn-" });
    const rows = `${folder}/rows`;
    try {
      const command = [
        Deno.execPath(),
        "run",
        "-A",
        "--no-check",
        "--unstable-kv",
        CHILD,
        engine,
        rows,
        `${STEPS}`,
      ];
      const calls = await recorded(command, rows, `${folder}/trace`);
      if (calls === null) return void await t.step({ name: "no strace here", ignore: true, fn: () => {} });
      assert.equal(toldAt(calls, calls.length), STEPS);
      const { wrong, found } = await opened(engine, folder, calls, CUTS);
      assert.deepEqual(wrong, []);
      assert.ok(found.size > STEPS / 2, `cuts hit ${found.size} steps`);
      // The same calls, had no sync been among them, or had none worked: the test must notice.
      const careless = await opened(engine, folder, calls.filter(({ kind }) => kind !== "sync"), CUTS / 4);
      assert.ok(careless.wrong.length > 0, "a storage that never syncs passes");
      await refusesDamage(engine, rows);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

/** A main file without its beginning or its end is not taken for a blank or a smaller one. */
async function refusesDamage(engine: string, folder: string): Promise<void> {
  const file = `${folder}/${engine === "sqlite" ? "rows.db" : "root.kv"}`;
  const whole = await Deno.readFile(file);
  const garbled = whole.slice();
  garbled.fill(0xa5, 0, 100);
  for (const damaged of [garbled, whole.slice(0, whole.length / 2)]) {
    await Deno.writeFile(file, damaged);
    const error = await Promise.resolve().then(() => openEngine(engine, folder)).then(
      (storage) => wholeStep(storage).finally(() => storage.close()),
    ).then((step) => `opened, with step ${step}`, (reason: unknown) => reason);
    assert.ok(error instanceof StoreUnavailable && error.code === "disk_failed", `${error}`);
  }
}

Deno.test("a cut keeps what was synced, tears what was not, and garbles nothing beside it (T1, T2)", () => {
  const write = (offset: number, fill: number, length = 1024): Call => ({
    kind: "write",
    file: "f",
    offset,
    bytes: new Uint8Array(length).fill(fill),
  });
  const calls: Call[] = [
    write(0, 1, 2048),
    { kind: "sync", file: "f", from: 1 },
    { kind: "sync", file: FOLDER, from: 1 },
    write(700, 2),
    write(3000, 3, 10),
  ];
  for (let seed = 0; seed < 200; seed++) {
    const draws = new Draws(`${seed}`);
    const tear = draws.pick(TEARS);
    const bytes = cutAt(calls, 4, tear, draws).get("f") ?? new Uint8Array();
    assert.ok(
      bytes.subarray(0, 700).every((one) => one === 1) &&
        bytes.subarray(1724, 2048).every((one) => one === 1),
    );
    if (tear === "nothing") assert.equal(bytes.length, 2048);
    if (tear === "all") assert.equal(bytes.length, 3010);
    if (tear === "some sectors") assert.ok(bytes.every((one) => one <= 3));
  }
});

Deno.test("strace's lines become calls: data, offsets, lengths, interrupted syncs", () => {
  const hex = (text: string) =>
    [...text].map((one) => `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`).join("");
  const file = `7<${hex("/d/f")}>`;
  const trace = [
    `10 pwrite64(${file}, "${hex("ab")}", 2, 512) = 2`,
    `10 pwrite64(8<${hex("/other/f")}>, "${hex("zz")}", 2, 0) = 2`,
    `11 fdatasync(${file} <unfinished ...>`,
    `10 pwrite64(${file}, "${hex("c")}", 1, 514 <unfinished ...>`,
    `11 <... fdatasync resumed>)          = 0`,
    `10 write(1<${hex("/out")}>, "${hex("5\n")}", 2) = 2`,
    `10 ftruncate(${file}, 100) = 0`,
    `10 fsync(${file}) = -1 EIO (Input/output error)`,
    `10 unlink("${hex("/d/f")}") = 0`,
    `10 rename("${hex("/d/g.new")}", "${hex("/d/g")}") = 0`,
    `10 fsync(9<${hex("/d")}>) = 0`,
  ].join("\n");
  assert.deepEqual(callsOf(trace, "/d"), [
    { kind: "write", file: "f", offset: 512, bytes: new TextEncoder().encode("ab") },
    { kind: "write", file: "f", offset: 514, bytes: new TextEncoder().encode("c") },
    { kind: "sync", file: "f", from: 1 },
    { kind: "said", text: "5" },
    { kind: "length", file: "f", bytes: 100 },
    { kind: "unlink", file: "f" },
    { kind: "rename", file: "g.new", to: "g" },
    { kind: "sync", file: FOLDER, from: 7 },
  ]);
});

Deno.test("a name stands for what the file has that was renamed to it, once the folder is synced (T3)", () => {
  const write = (file: string, fill: number): Call => ({
    kind: "write",
    file,
    offset: 0,
    bytes: new Uint8Array(4).fill(fill),
  });
  const calls: Call[] = [
    write("f", 1),
    { kind: "sync", file: "f", from: 1 },
    { kind: "sync", file: FOLDER, from: 2 },
    write("f.new", 2),
    { kind: "rename", file: "f.new", to: "f" },
    { kind: "sync", file: FOLDER, from: 5 },
  ];
  const draws = new Draws("names");
  const firstByte = (index: number, tear: Tear) => cutAt(calls, index, tear, draws).get("f")?.[0];
  assert.equal(firstByte(4, "nothing"), 1);
  assert.equal(firstByte(4, "all"), 2);
  // Its bytes were not synced before it had the name.
  assert.equal(firstByte(5, "nothing"), undefined);
  assert.deepEqual([...cutAt(calls, 5, "all", draws).keys()], ["f"]);
});
