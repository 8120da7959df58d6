/**
 * The walk of examples/chat/README.md: people at three edges talk, one of them moves, one edge dies.
 *
 * K1  Who has said something finds it at the next site, at once.
 * K2  Every follower gets every message once.
 * K3  A site that was killed shows the whole room when it is back.
 */
import { strict as assert } from "node:assert";
import { HeaderClient } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

interface Said {
  readonly id: string;
  readonly text: string;
}

const ROOM = "/chat/harbour";
/** Enough moves that a site without handoffs shows an old room at one of them. */
const MOVES = 6;

const textsOf = (messages: readonly Said[]) => messages.map(({ text }) => text);

/** Someone who only listens, over a WebSocket or server-sent events. */
interface Follower {
  readonly got: Said[];
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

async function followSocket(base: string): Promise<Follower & { say(name: string, text: string): void }> {
  const socket = new WebSocket(`${base.replace("http", "ws")}${ROOM}/socket`);
  const got: Said[] = [];
  socket.onmessage = ({ data }) => got.push(...(JSON.parse(data) as { messages?: Said[] }).messages ?? []);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  socket.onclose = () => resolve();
  await new Promise((opened, failed) => {
    socket.onopen = opened;
    socket.onerror = failed;
  });
  return {
    got,
    ended,
    say: (name, text) => socket.send(JSON.stringify({ name, text })),
    stop: () => {
      socket.close();
      return ended;
    },
  };
}

async function followEvents(base: string): Promise<Follower> {
  const gone = new AbortController();
  const answer = await fetch(`${base}${ROOM}/events`, { signal: gone.signal });
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream/);
  const got: Said[] = [];
  const reading = async () => {
    let text = "";
    for await (const part of (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const events = (text + part).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (data !== undefined) got.push(JSON.parse(data) as Said);
      }
    }
  };
  const ended = reading().catch(() => {}); // the site was killed, or we have stopped
  return {
    got,
    ended,
    stop: () => {
      gone.abort();
      return ended;
    },
  };
}

class Person extends HeaderClient {
  constructor(readonly name: string) {
    super();
  }

  async say(base: string, text: string): Promise<void> {
    const said = await this.fetch(`${base}${ROOM}/messages`, {
      method: "POST",
      body: JSON.stringify({ name: this.name, text }),
    });
    assert.equal(said.status, 201, said.text);
  }

  async room(base: string): Promise<Said[]> {
    const answer = await this.fetch(`${base}${ROOM}/messages`);
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text) as Said[];
  }
}

/** Walks the example over a cluster that runs it. */
export async function walkChat(cluster: TestCluster): Promise<void> {
  const [one, two, three] = [cluster.url("edge-1"), cluster.url("edge-2"), cluster.url("edge-3")];
  const bob = await followSocket(three);
  const cho = await followEvents(two);
  const lost = await followSocket(one);
  try {
    const ann = new Person("Ann");
    for (let move = 0; move < MOVES; move++) {
      const [here, next] = move % 2 === 0 ? [one, three] : [three, one];
      await ann.say(here, `ann ${move}`);
      assert(
        textsOf(await ann.room(next)).includes(`ann ${move}`),
        `ann ${move} is missing at the next site`,
      ); // K1
      bob.say("Bob", `bob ${move}`);
    }
    const first = Array.from({ length: MOVES }, (_, i) => [`ann ${i}`, `bob ${i}`]).flat();
    await everyone([bob, cho, lost], first); // K2
    await ann.room(two); // what she has seen is no longer known at edge-1 alone
    await cluster.control("kill", "edge-1");
    await lost.ended;
    await ann.say(two, "is anybody there?");
    bob.say("Bob", "I am");
    await everyone([bob, cho], [...first, "is anybody there?", "I am"]);
    await cluster.control("start", "edge-1");
    await cluster.ready("edge-1");
    const room = await ann.room(two);
    assert.deepEqual(await ann.room(one), room); // K3
  } finally {
    await Promise.all([bob, cho, lost].map((follower) => follower.stop()));
  }
}

/** K2 */
async function everyone(followers: readonly Follower[], texts: readonly string[]): Promise<void> {
  const wanted = [...texts].sort();
  for (const { got } of followers) {
    await eventually(
      `a follower has ${texts.length} messages, not ${got.length}`,
      () => Promise.resolve(got.length >= texts.length),
    );
    assert.deepEqual(textsOf(got).sort(), wanted);
    assert.equal(new Set(got.map(({ id }) => id)).size, got.length);
  }
}
