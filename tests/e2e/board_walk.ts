/** The board on a running cluster, as browsers use it that move between edges. */
import { strict as assert } from "node:assert";
import { ADMIN_TOKEN } from "../examples/board/operated_app.ts";
import { read } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

/** Where each site serves the board. */
type Places = Readonly<Record<string, string>>;

/** A browser: it keeps all cookies, sends forms, and asks for JSON where a test wants to read it. */
class Visitor {
  readonly #places: Places;
  readonly #cookies = new Map<string, string>();

  constructor(places: Places) {
    this.#places = places;
  }

  async #fetch(site: string, path: string, init: RequestInit) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...init.headers as Record<string, string>, ...cookie === "" ? {} : { cookie } };
    const url = `${this.#places[site]}${path}`;
    const answer = await read(await fetch(url, { redirect: "manual", ...init, headers }));
    for (const set of answer.headers.getSetCookie()) {
      const [pair = ""] = set.split(";");
      this.#cookies.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    return answer;
  }

  page = (site: string, path: string) => this.#fetch(site, path, {});

  post = (site: string, path: string, form: Record<string, string>) =>
    this.#fetch(site, path, { method: "POST", body: new URLSearchParams(form) });

  async json(site: string, path: string): Promise<Record<string, unknown>> {
    const answer = await this.#fetch(site, path, { headers: { accept: "application/json" } });
    assert.equal(answer.status, 200, answer.text);
    return JSON.parse(answer.text);
  }
}

const person = (nickname: string) => ({
  nickname,
  firstName: "A",
  lastName: "B",
  email: "a@example.org",
  password: "long enough",
});

/** The part of a path behind its last slash. */
const lastPart = (path: string | null): string => (path ?? "").split("/").at(-1) ?? "";

/** Registers an author at an edge, who publishes a story; its id. */
async function publish(author: Visitor): Promise<string> {
  const registered = await author.post("edge-1", "/accounts", person("Ada"));
  assert.equal(registered.status, 303, registered.text);
  assert.equal(registered.headers.get("sojourn-site"), "cloud", "registration runs at the root");
  assert.match(registered.headers.get("location") ?? "", /^\/board\/users\//, "links keep the prefix");
  // Each step at another edge, each needs what the step before it wrote.
  assert.equal((await author.post("edge-3", "/categories", { name: "The sea" })).status, 303);
  const story = { title: "Tides", body: "They come and go.", category: "the-sea" };
  assert.equal((await author.post("edge-2", "/submissions", story)).status, 303);
  const waiting = await author.page("edge-1", "/submissions");
  const accept = /submissions\/[0-9a-z]+\/accept/.exec(waiting.text)?.[0];
  assert.ok(accept !== undefined, waiting.text);
  const accepted = await author.post("edge-3", `/${accept}`, {});
  assert.match((await author.page("edge-2", "/")).text, /Tides/);
  return lastPart(accepted.headers.get("location"));
}

async function oneNicknameIsTakenOnce(places: Places): Promise<void> {
  const answers = await Promise.all(
    ["edge-1", "edge-2", "edge-3"].map((site) => new Visitor(places).post(site, "/accounts", person("Bob"))),
  );
  assert.deepEqual(answers.map((answer) => answer.status).sort(), [303, 409, 409]);
}

/** Answers and ratings given at three edges at the same time all count. */
async function countsAddUp(places: Places, author: Visitor, story: string): Promise<void> {
  const posted = await author.post("edge-1", `/stories/${story}/comments`, {
    subject: "First",
    text: "Hello",
  });
  const comment = lastPart(posted.headers.get("location"));
  await author.post("edge-1", `/stories/${story}/comments/${comment}/moderate`, { rating: "1" });
  const readers = ["edge-1", "edge-2", "edge-3"].map((site) => ({ site, visitor: new Visitor(places) }));
  await Promise.all(readers.map(async ({ site, visitor }) => {
    // A reader who has not been here sees the comment once it has travelled.
    await eventually(
      `the comment is at ${site}`,
      async () => (await visitor.page(site, `/stories/${story}/comments/${comment}`)).status === 200,
    );
    const answer = { to: comment, subject: "Re: First", text: `from ${site}` };
    assert.equal((await visitor.post(site, `/stories/${story}/comments`, answer)).status, 303);
    // One's own answer is there at once, at any edge.
    const next = site === "edge-1" ? "edge-3" : "edge-1";
    const { comments } = await visitor.json(next, `/stories/${story}/comments/${comment}`);
    const texts = (comments as { value: { text: string } }[]).map(({ value }) => value.text);
    assert.ok(texts.includes(`from ${site}`), `${next} shows ${texts.join()}`);
  }));
  for (const site of Object.keys(places)) {
    await eventually(`all answers are counted at ${site}`, async () => {
      const { counts } = await author.json(site, `/stories/${story}`);
      const count = (counts as Record<string, unknown>)[comment];
      // It began at 1, as somebody with a name wrote it.
      return JSON.stringify(count) === JSON.stringify({ children: 3, rating: 2 });
    });
  }
}

async function operatorsRoutesAreAtTheRoot(places: Places): Promise<void> {
  const ask = (authorization: string) =>
    fetch(`${places["edge-2"]}/admin/read`, {
      method: "POST",
      headers: { authorization },
      body: JSON.stringify({ rows: [{ table: "accounts", key: ["ada"] }] }),
    });
  const closed = await read(await ask("Bearer wrong"));
  assert.equal(closed.status, 403);
  const open = await read(await ask(`Bearer ${ADMIN_TOKEN}`));
  assert.equal(JSON.parse(open.text).site, "cloud");
  const [account] = JSON.parse(open.text).rows;
  assert.match(account.value.password, /^pbkdf2-sha256\$/);
}

/** Walks the board over a cluster that runs it, step by step. */
export async function walkBoard(cluster: TestCluster, t: Deno.TestContext): Promise<void> {
  const places = Object.fromEntries(Object.keys(cluster.sites).map((id) => [id, `${cluster.url(id)}/board`]));
  const author = new Visitor(places);
  let story = "";
  await t.step("registering, submitting and accepting, each at another edge", async () => {
    story = await publish(author);
  });
  await t.step(
    "one nickname is taken once, wherever it is asked for",
    () => oneNicknameIsTakenOnce(places),
  );
  await t.step("answers and ratings of three edges add up", () => countsAddUp(places, author, story));
  await t.step(
    "the operator's routes run at the root and want the token",
    () => operatorsRoutesAreAtTheRoot(places),
  );
}
