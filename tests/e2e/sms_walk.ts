/**
 * The walk of examples/sms: companies and a program outside post messages at three sites, one of which is killed (-9) in
 * the middle of it, and comes back.
 *
 * W1  What was acknowledged is delivered, or a dead letter where nobody has its number.
 * W2  The reports are the operators' own: each of the numbers 1, 2, 3 … that an operator gave is one row, and no more.
 * W3  All sites show the same.
 */
import { strict as assert } from "node:assert";
import { Browser, findBrowser } from "./browser.ts";
import { ask } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const SITES = ["east", "west", "north"] as const;
const PREFIXES = ["+99910", "+99920", "+99930"] as const;
const COMPANIES = ["acme", "bolt", "coda"] as const;
/** Messages of a company. */
const MESSAGES = 40;
/** Of so many one has a number that nobody has. */
const UNUSED_EVERY = 15;
/** Of so many one is posted at two sites. */
const TWICE_EVERY = 4;
/** So long a site is away. */
const AWAY_MS = 1_500;

interface Message {
  readonly id: string;
  readonly state: "delivered" | "failed";
  readonly operator: string;
  readonly serial?: number;
}

interface Books {
  readonly name: string;
  readonly posted: number;
  readonly delivered: number;
  readonly failed: number;
}

const at = (cluster: TestCluster, site: string, path: string) => `${cluster.url(site)}/sms/${path}`;

const post = (url: string, body: unknown) =>
  ask(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function read<T>(url: string): Promise<T> {
  const { status, text } = await ask(url);
  assert.equal(status, 200, `${url}: ${text}`);
  return JSON.parse(text) as T;
}

const isUnused = (n: number) => n % UNUSED_EVERY === UNUSED_EVERY - 1;
const numberOf = (n: number) => `${PREFIXES[n % PREFIXES.length]}${1_000 + n}${isUnused(n) ? "000" : "123"}`;

/**
 * Posts a company's messages one after the other, each at one site after the other until one takes it; some at another
 * one as well, as a company that has not heard the first.
 */
async function company(cluster: TestCluster, name: string, first: number): Promise<string[]> {
  const ids: string[] = [];
  let place = first;
  for (let n = 0; n < MESSAGES; n++) {
    await eventually(`${name} has posted ${n}`, async () => {
      const site = SITES[place % SITES.length] ?? "";
      const url = at(cluster, site, `companies/${name}/messages`);
      const answer = await post(url, { id: `m${n}`, to: numberOf(n), text: "hello" }).catch(() => null);
      if (answer?.status !== 202) place++;
      else ids.push((JSON.parse(answer.text) as { id: string }).id);
      return answer?.status === 202;
    });
    if (n % TWICE_EVERY !== 0) continue;
    const again = at(cluster, SITES[(place + 1) % SITES.length] ?? "", `companies/${name}/messages`);
    await post(again, { id: `m${n}`, to: numberOf(n), text: "hello" }).catch(() => null);
  }
  assert.deepEqual(ids, Array.from({ length: MESSAGES }, (_, n) => `${name}:m${n}`));
  return ids;
}

/** A program that knows only the queue. */
async function outside(cluster: TestCluster): Promise<string[]> {
  const ids = Array.from({ length: 10 }, (_, n) => `outside:${n}`);
  const messages = ids.map((id, n) => ({ id, body: { company: "outside", to: numberOf(n), text: "hello" } }));
  await eventually("the batch is stored", async () => {
    const url = `${cluster.url("north")}/_sojourn/queues/sms/outgoing/batch`;
    return (await post(url, { messages })).status === 202;
  });
  return ids;
}

async function done(cluster: TestCluster, site: string): Promise<Message[]> {
  const all = await Promise.all(
    [...COMPANIES, "outside"].map((name) =>
      read<{ messages: Message[] }>(at(cluster, site, `companies/${name}/messages`))
    ),
  );
  return all.flatMap(({ messages }) => messages).sort((a, b) => a.id < b.id ? -1 : 1);
}

/** What no operator and no queue is done with. */
async function underWay(cluster: TestCluster): Promise<number> {
  const { queues, missing } = await read<{
    queues: { ready: number; delayed: number; lent: number }[];
    missing: unknown[];
  }>(`${cluster.url("cloud")}/_sojourn/admin/queues?app=sms`);
  assert.deepEqual(missing, []);
  return queues.reduce((sum, { ready, delayed, lent }) => sum + ready + delayed + lent, 0);
}

/** Walks it over a cluster with f = 1 at its edges. */
export async function walkSms(cluster: TestCluster): Promise<void> {
  for (const name of ["aurora", "borealis", "cirrus"]) {
    await eventually(
      `${name} hurries`,
      async () => (await post(at(cluster, "east", `operators/${name}`), { perSecond: 200 })).status === 200,
    );
  }
  const posting = Promise.all([
    ...COMPANIES.map((name, place) => company(cluster, name, place)),
    outside(cluster),
  ]);
  await eventually("some are delivered", async () => (await done(cluster, "west")).length > 10);
  // The operators are at home here, and a third of the messages are responsible here.
  await cluster.control("kill", "east");
  await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
  await cluster.control("start", "east");
  const acknowledged = (await posting).flat().sort();
  await cluster.ready("east");
  let rows: Message[] = [];
  await eventually("what was acknowledged is done, each once, and nothing else (W1)", async () => {
    if (await underWay(cluster) > 0) return false;
    rows = await done(cluster, "cloud");
    assert.deepEqual(rows.map(({ id }) => id), acknowledged);
    return true;
  });
  const failed = rows.filter(({ state }) => state === "failed").map(({ id }) => id);
  assert.deepEqual(failed, acknowledged.filter((id) => isUnused(Number(/\d+$/.exec(id)?.[0]))), "(W1)");
  const dead = await read<{ messages: { id: string; error: string }[] }>(
    `${cluster.url("cloud")}/_sojourn/admin/queues/sms/outgoing/dead`,
  );
  // Posted at two sites it may be there twice.
  assert.deepEqual([...new Set(dead.messages.map(({ id }) => id))].sort(), failed, "dead letters (W1)");
  assert.match(dead.messages[0]?.error ?? "", /nobody has this number/);
  await eventually("the operators' books are told", async () => {
    const books = await read<Books[]>(at(cluster, "cloud", "operators"));
    for (const { name, posted, delivered, failed } of books) {
      const own = rows.filter(({ operator }) => operator === name);
      const serials = own.flatMap(({ serial }) => serial ?? []).sort((a, b) => a - b);
      assert.deepEqual(serials, Array.from({ length: delivered }, (_, n) => n + 1), `${name} (W2)`);
      assert.deepEqual([posted, delivered + failed], [own.length, own.length], `${name} (W2)`);
    }
    return true;
  });
  for (const site of SITES) {
    await eventually(`${site} shows the same (W3)`, async () => {
      assert.deepEqual(await done(cluster, site), rows);
      return true;
    });
  }
}

/** What the page may complain of: its requests to the site that was killed. */
const EXPECTED = /Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED/;

const POST = `document.querySelector("#post button").click()`;

/** Looks at the page in a browser, where there is one: it posts, and goes on at another site when its own is killed. */
export async function walkSmsPage(cluster: TestCluster): Promise<void> {
  const found = await findBrowser();
  if (found === null) return console.error("there is no browser: the page of the gateway is not looked at");
  const browser = await Browser.start(found);
  let isKilled = false;
  try {
    const page = await browser.open(at(cluster, "west", ""));
    const shown = (of: string) =>
      `Number(document.querySelector(".flow [data-of=${of}] dd").textContent.replaceAll(",", ""))`;
    await page.until("it has the operators", `document.querySelectorAll("#operators article").length === 3`);
    await page.until("it shows what was done", `${shown("delivered")} > 100`);
    await page.until(
      "it shows where it is",
      `document.querySelector("nav [aria-current]")?.textContent === "west"`,
    );
    await page.until("it shows the last ones", `document.querySelectorAll("#reports li").length === 12`);
    const before = Number(await page.evaluate(shown("delivered")));
    await page.evaluate(`document.querySelector("[name=text]").value = "I was typed", ${POST}`);
    await page.until("its own are delivered", `${shown("delivered")} === ${before + 20}`);
    isKilled = true;
    await cluster.control("kill", "west");
    await page.until(
      "it is at another site",
      `/^at (east|north|cloud)$/.test(document.getElementById("site").textContent)`,
    );
    await page.until(
      "what was typed is there",
      `document.querySelector("[name=text]").value === "I was typed"`,
    );
    await page.until("it knows the operators", `document.querySelector("[name=prefix]").value !== ""`);
    await page.evaluate(POST);
    await page.until("the gateway goes on", `${shown("delivered")} === ${before + 40}`);
    assert.deepEqual(page.complaints.filter((text) => !EXPECTED.test(text)), []);
  } finally {
    await browser.stop();
    if (isKilled) {
      await cluster.control("start", "west");
      await cluster.ready("west");
    }
  }
}
