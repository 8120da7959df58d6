/**
 * Programs nobody here wrote, on a cluster. One written for `Deno.openKv()` runs on Deno's KV (":memory:") and,
 * unchanged, as an app; what it saw is compared. Every difference is in the list below, and in
 * docs/compatibility.md; a difference that is gone fails here too. A Hono app (tests/compat/hono) answers over HTTP
 * at an edge what it answers in its isolate.
 *
 * An error counts as the same where it has Deno's class and begins with Deno's words: ours may say more.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bundleApp } from "../../runtime/bundle/mod.ts";
import { pageSection, rowNames } from "../compat/page.ts";
import { checkCases } from "../compat/hono/cases.ts";
import { startCluster, type TestCluster } from "./cluster.ts";

type Answers = Readonly<Record<string, string>>;

const COMPAT = join(import.meta.dirname ?? ".", "..", "compat");
const FOLDER = join(COMPAT, "kv");

/** Paths of the probes' program, in the order in which they are asked for. */
const PATHS = ["/run", "/queues", "/retries"];

/** Probes that answer something else here, and why. */
const DIFFERENT: Readonly<Record<string, string>> = {
  "value refused: a shared buffer": "a copy of it is stored",
  "value refused: a blob": "what could not be read back is refused",
  "value refused: an URL inside": "the same, with its path",
  "value refused: an object whose fields are private": "the same",
  "value of 65537 bytes": "values may have 1 MiB",
  "value of 2 MiB": "the same, in the message",
  "900 KB in one operation": "an operation may have 4 MiB",
  "5 MB in one operation": "the same, in the message",
  "getMany of 11 keys": "1,000 keys",
  "watch of too many keys": "100 keys",
  "get with an unknown consistency": "there is one more: the message says so",
  "key with a large bigint": "a bigint in a key has 64 bits",
  "key with a lone surrogate": "text that is no text is refused in a key",
  "empty key, read": "refused, as in a write",
  "key of a wrong part": "the message says what stands there",
  "key that is no array": "the message says what stands there",
  "key that is too large": "the message says how large it is",
  "key that is too large, read": "the same limit and message as in a write",
  "sum of a number": "numbers can be summed too",
  "sum on another type": "an error of the store, which has a code and is no TypeError",
  "sum after a set of another type, with all of its operation": "the same",
  "what has expired is gone": "at once; Deno's rows stay a while",
  "commitVersionstamp": "not available",
  "listenQueue while a request runs": "listeners are added while the module loads",
  "enqueue of a shared buffer": "a copy of it is sent",
  "enqueue of 65537 bytes": "a message may have more",
  "enqueue of 2 MiB": "the same, in the message",
  "5 MB of messages in one operation": "the same, in the message",
  "enqueue with an empty key": "refused, as in a write",
  "enqueue with a key that is too large": "the same",
  "enqueue with a key of a wrong part": "the message says what stands there",
  "enqueue with a key that is no array": "the same",
  "enqueue with delay of a text": "the message says what is expected",
  "enqueue with pauses of null": "the same",
};

async function answersOfDeno(): Promise<Answers> {
  const bundle = await bundleApp(join(FOLDER, "app.ts"));
  assert.equal(bundle.kind, "bundled", JSON.stringify(bundle));
  if (bundle.kind !== "bundled") return {};
  const folder = await Deno.makeTempDir({ prefix: "sojourn-test-" });
  try {
    const path = join(folder, "bundle.js");
    await Deno.writeFile(path, bundle.code);
    const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--no-check",
        "--no-config",
        "--unstable-kv",
        join(FOLDER, "plain.ts"),
        `file://${path}`,
        ...PATHS,
      ],
      env: { NO_COLOR: "1" },
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    return JSON.parse(new TextDecoder().decode(stdout).trimEnd().split("\n").at(-1) ?? "");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function answersOf(cluster: TestCluster): Promise<Answers> {
  const answers: Record<string, string> = {};
  for (const path of PATHS) {
    const response = await fetch(`${cluster.url("edge-1")}/kv${path}`);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    Object.assign(answers, JSON.parse(text));
  }
  return answers;
}

/** Versionstamps by their age, since they name a clock. */
function plainly(text = ""): string {
  const stamps = [...new Set(text.match(/"[0-9a-f]{20}"/g) ?? [])].sort();
  return text.replace(/"[0-9a-f]{20}"/g, (stamp) => `version ${stamps.indexOf(stamp)}`);
}

const isSame = (ours: string, theirs: string): boolean =>
  ours === theirs || /^(?:threw )?\w*Error: /.test(theirs) && ours.startsWith(theirs.replace(/[.)]$/, ""));

/**
 * What the platform adds to: variables are given by the test in an isolate, `Server-Timing` begins with the
 * platform's, and the origin of a page is the site's own.
 */
const LEFT_OUT = ["/runtime", "/timing", "/csrf"];

Deno.test("programs nobody here wrote run on a cluster", async (t) => {
  await using cluster = await startCluster({ apps: [FOLDER, join(COMPAT, "hono", "app.tsx")] });
  await t.step(
    "a program for Deno.openKv sees what it sees on Deno's KV, but for what is listed",
    async () => {
      const [theirs, ours] = [await answersOfDeno(), await answersOf(cluster)];
      assert.deepEqual(Object.keys(ours), Object.keys(theirs));
      const count = Object.keys(theirs).length;
      assert.match(await pageSection("### KV"), new RegExp(`a program of ${count} probes`));
      const different = Object.keys(theirs).filter((name) =>
        !isSame(plainly(ours[name]), plainly(theirs[name]))
      );
      for (const name of different) {
        if (!(name in DIFFERENT)) {
          console.log(
            `## ${name}\n  in Deno: ${theirs[name]}\n  here:    ${ours[name]}`,
          );
        }
      }
      assert.deepEqual(different.toSorted(), Object.keys(DIFFERENT).toSorted());
    },
  );
  await t.step("a Hono app answers over HTTP what it answers in its isolate", async () => {
    const url = `${cluster.url("edge-2")}/hono`;
    await checkCases((path, init) => fetch(url + path, { redirect: "manual", ...init }), LEFT_OUT);
  });
});

Deno.test("the page on compatibility lists the differences of the KV", async () => {
  assert.deepEqual(rowNames(await pageSection("### KV")).toSorted(), Object.keys(DIFFERENT).toSorted());
});
