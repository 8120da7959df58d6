/**
 * The pages of pong and scrabble, in a real browser: two play, and the site of the one, where the table lives too, is
 * killed. The page goes on, and nothing in it complains but of the site that is gone.
 */
import { strict as assert } from "node:assert";
import { Browser, findBrowser, type Page } from "./browser.ts";
import type { TestCluster } from "./cluster.ts";

/** What a page may complain of: its requests to the site that was killed. */
const EXPECTED = /Failed to load resource|WebSocket connection to .* failed|ERR_CONNECTION_REFUSED/;
const points = `[0, 1].map((side) => Number(document.getElementById("points-" + side).textContent))`;

async function sit(page: Page, name: string, leave: string): Promise<void> {
  await page.until("it has the table", `/way of/i.test(document.getElementById("state").textContent)`);
  await page.evaluate(
    `document.getElementById("name").value = "${name}"; document.getElementById("sit").click()`,
  );
  await page.until("it has a seat", `document.getElementById("${leave}").hidden === false`);
}

async function pong(cluster: TestCluster, browser: Browser): Promise<Page[]> {
  const [ann, bob] = await both(cluster, browser, "pong/pages");
  await sit(ann, "Ann", "leave");
  await sit(bob, "Bob", "leave");
  // Nobody moves: who is served to loses the point.
  await bob.until("a point is made", `${points}.some((each) => each > 0)`);
  return [ann, bob];
}

async function scrabble(cluster: TestCluster, browser: Browser): Promise<Page[]> {
  const [ann, bob] = await both(cluster, browser, "scrabble/pages");
  await sit(ann, "Ann", "leave");
  await sit(bob, "Bob", "leave");
  await ann.until("two are there", `document.getElementById("start").hidden === false`);
  await ann.evaluate(`document.getElementById("start").click()`);
  for (const page of [ann, bob]) {
    await page.until("it has a rack", `document.querySelectorAll("#rack .tile").length === 7`);
  }
  return [ann, bob];
}

async function both(cluster: TestCluster, browser: Browser, path: string): Promise<[Page, Page]> {
  return [
    await browser.open(`${cluster.url("edge-1")}/${path}`),
    await browser.open(`${cluster.url("edge-2")}/${path}`),
  ];
}

/** Walks both, where there is a browser. */
export async function walkGamePages(cluster: TestCluster): Promise<void> {
  const found = await findBrowser();
  if (found === null) return console.error("there is no browser: the pages of the games are not looked at");
  const browser = await Browser.start(found);
  let isKilled = false;
  try {
    const players = await pong(cluster, browser), [ann, bob] = await scrabble(cluster, browser);
    assert.ok(ann !== undefined && bob !== undefined);
    const before = await players[1]?.evaluate(points) as number[];
    isKilled = true;
    await cluster.control("kill", "edge-1");
    // While the page looks for another site, its buttons wait.
    await ann.until(
      "Ann has passed",
      `document.getElementById("pass").click(), document.querySelectorAll("#moves li").length === 1`,
    );
    await bob.until("it is Bob's turn", `document.getElementById("says").textContent === "It is your turn."`);
    for (const player of players) {
      await player.until(
        "the game goes on",
        `${points}.some((each, side) => each > ${JSON.stringify(before)}[side])`,
      );
    }
    for (const page of [...players, ann, bob]) {
      assert.deepEqual(page.complaints.filter((text) => !EXPECTED.test(text)), []);
    }
  } finally {
    await browser.stop();
    if (isKilled) {
      await cluster.control("start", "edge-1");
      await cluster.ready("edge-1");
    }
  }
}
