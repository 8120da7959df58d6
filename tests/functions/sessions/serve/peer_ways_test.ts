/** Ways to homes at other sites, over links that the test plays. */
import assert from "node:assert/strict";
import {
  decodeForwarded,
  decodeReply,
  encodeForwarded,
  encodeForwardedReply,
} from "../../../../functions/sessions/serve/forwarded.ts";
import type { LinkRequest } from "../../../../functions/vocabulary/site_links.ts";
import { SYSTEM_CLOCK } from "../../../../runtime/stateful/clock.ts";
import { PeerWays, WayRefused } from "../../../../functions/sessions/serve/peer_ways.ts";

const NAME = { app: "shop", class: "robot", id: "r" };
const PARENTS: Record<string, string | null> = { cloud: null, here: "cloud", there: "cloud" };
type Fellows = ConstructorParameters<typeof PeerWays>[0]["fellows"];
type Standing = ReturnType<Fellows["standing"]>;

const arrived = (body: ReadableStream<Uint8Array>) =>
  Promise.resolve({
    head: encodeForwardedReply({ kind: "answer", answer: new Uint8Array(0), token: null }).head,
    body,
  });

/** A site `here`; the home is `there`, as far as it knows. */
class Scene {
  readonly asked: string[] = [];
  readonly watched: string[] = [];
  readonly faults: unknown[] = [];
  /** Of what a link was asked last. */
  head: Uint8Array = new Uint8Array();
  standing: Standing = "alive";
  /** What the links answer. */
  answer: (to: string) => Promise<{ head: Uint8Array; body: ReadableStream<Uint8Array> | null }> = () =>
    arrived(new ReadableStream());
  #changed: Parameters<Fellows["onChange"]>[0] = () => {};
  readonly ways = new PeerWays({
    ...{ site: "here", clock: SYSTEM_CLOCK },
    failed: (_, error) => void this.faults.push(error),
    homes: { where: () => "there", misled: () => {} },
    host: { connect: () => Promise.reject(new Error("it is not here")) },
    links: {
      request: (to, _kind, head, { signal } = {}) => {
        this.asked.push(to);
        this.head = head;
        const late = new Promise<never>((_, reject) =>
          signal?.addEventListener("abort", () => reject(new Error("given up")), { once: true })
        );
        return Promise.race([this.answer(to), late]);
      },
    },
    sites: () => new Map(Object.entries(PARENTS).map(([site, parent]) => [site, { parent }])),
    fellows: {
      standing: () => this.standing,
      watch: (site) => {
        this.watched.push(site);
        return () => void this.watched.splice(this.watched.indexOf(site), 1);
      },
      onChange: (changed) => {
        this.#changed = changed;
        return () => {};
      },
    },
  });

  becomes(standing: Standing): void {
    this.standing = standing;
    this.#changed("there", standing);
  }
}

Deno.test("a way to a site that is suspected is broken, and its site watched as long as there are ways (PW3)", async () => {
  const scene = new Scene();
  const [one, other] = [await scene.ways.open(NAME, null), await scene.ways.open(NAME, null)];
  assert.deepEqual(scene.watched, ["there"]);
  const ended = Promise.all([one.next(), other.next()]);
  scene.becomes("suspected");
  assert.deepEqual(await ended, [null, null]);
  await Promise.resolve();
  assert.deepEqual(scene.watched, []);
});

Deno.test("a site that is suspected while it is asked is waited for no longer (PW3)", async () => {
  const scene = new Scene();
  scene.answer = () => new Promise(() => {});
  const opening = scene.ways.open(NAME, null);
  await Promise.resolve();
  scene.becomes("suspected");
  // Nobody knows another, and this one can't be the home: its host says so.
  await assert.rejects(opening, (error) => error instanceof WayRefused && error.message === "it is not here");
  assert.deepEqual([scene.asked, scene.watched], [["there"], []]);
});

Deno.test("a site that is not heard of is asked along the tree, and one that can't be reached so, too (PW3)", async () => {
  const scene = new Scene();
  const answer = () => arrived(ReadableStream.from([]));
  scene.answer = answer;
  scene.standing = "dead";
  assert.equal(await (await scene.ways.open(NAME, null)).next(), null);
  assert.deepEqual(scene.asked, ["cloud"]);
  scene.standing = "alive";
  scene.answer = (to) =>
    to === "there" ? Promise.reject(Object.assign(new Error("no link"), { code: "unreachable" })) : answer();
  assert.equal(await (await scene.ways.open(NAME, null)).next(), null);
  assert.deepEqual(scene.asked, ["cloud", "there", "cloud"]);
});

Deno.test("a site that is asked passes on ways for other sites along the tree, and looks for none itself (PW1)", async () => {
  const scene = new Scene();
  const serve = async (to: string, hops: number) => {
    const { head } = encodeForwarded({
      ...{ name: NAME, request: "", to, hops, chain: [], token: null, call: new Uint8Array() },
    });
    const reply = await scene.ways.serve({ head, body: new ReadableStream() } as LinkRequest);
    return decodeReply(reply.head, null);
  };
  assert.deepEqual(await serve("here", 2), { kind: "elsewhere", site: "there" });
  assert.deepEqual(await serve("there", 0), { kind: "elsewhere", site: "" });
  assert.deepEqual(scene.asked, []);
  assert.equal((await serve("there", 2)).kind, "answer");
  assert.deepEqual([scene.asked, decodeForwarded(scene.head, null).hops], [["cloud"], 1]);
  scene.answer = () => Promise.reject(new Error("no link"));
  assert.deepEqual(await serve("there", 2), { kind: "elsewhere", site: "" });
  assert.equal(scene.asked.length, 2, "once");
});
