import { strict as assert } from "node:assert";
import { Browser, findBrowser, type Page } from "./browser.ts";
import { ask, HeaderClient, NEW_SESSION } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = new URL("apps/talker/", import.meta.url).pathname;
const browserPath = await findBrowser();
const skipped = browserPath === null ? " (skipped: no Chromium is installed)" : "";

const dashboardOf = (cluster: TestCluster, site: string) =>
  `${cluster.url(site)}/_sojourn/dashboard#token=${cluster.adminToken}`;
/** The card of a site, as an expression. */
const card = (id: string) =>
  `[...document.querySelectorAll(".card")].find((card) => card.textContent.startsWith(${
    JSON.stringify(id)
  }))`;
const fault = (text: string) =>
  `[...document.querySelectorAll("#faults button")].find((button) => button.textContent === ${
    JSON.stringify(text)
  })`;

async function showsTheCluster(page: Page, cluster: TestCluster): Promise<void> {
  await page.until("the tree is there", `document.querySelectorAll("#tree .card").length === 6`);
  // The tree as lists within lists: each site's depth in it is its depth in the cluster.
  const depths = await page.evaluate(
    `Object.fromEntries([...document.querySelectorAll("#tree .name")].map((name) => {
    let depth = 0;
    for (let at = name.closest("ul"); at.id !== "tree"; at = at.parentElement.closest("ul")) depth++;
    return [name.firstChild.textContent, depth];
  }))`,
  );
  assert.deepEqual(depths, { cloud: 0, "core-1": 1, "core-2": 1, "edge-1": 2, "edge-2": 2, "edge-3": 2 });
  await page.until(
    "all links are up",
    `[...document.querySelectorAll(".wire")].length === 5 && document.querySelectorAll(".wire.up").length === 5`,
  );
  const client = new HeaderClient();
  await client.fetch(`${cluster.url("edge-1")}/talker/shown`, NEW_SESSION);
  await client.fetch(`${cluster.url("edge-3")}/talker/shown`);
  await page.until(
    "the session is seen moving",
    `[...document.querySelectorAll("#moves tr")].some((row) => row.textContent.startsWith("edge-1edge-3"))`,
  );
  await movesOrLightsUp(page, cluster, client);
  await page.until(
    "the app has its row",
    `document.querySelector("#apps tr")?.textContent.startsWith("talker")`,
  );
  await page.until(
    "the log has its line",
    `document.querySelector("#lines").textContent.includes("said /shown")`,
  );
  await ask(`${cluster.url("edge-2")}/talker/warned?level=warn`);
  await page.evaluate(
    `{ const level = document.querySelector("#log-level"); level.value = "warn"; level.onchange(); }`,
  );
  await page.until(
    "the log is filtered by level",
    `((text) => text.includes("said /warned") && !text.includes("said /shown"))(document.querySelector("#lines").textContent)`,
  );
}

async function movesOrLightsUp(page: Page, cluster: TestCluster, client: HeaderClient): Promise<void> {
  await page.evaluate(`{
    window.drawn = { ways: 0, dots: 0 };
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) {
        for (const node of addedNodes) {
          if (node.classList?.contains("way")) drawn.ways++;
          if (node.classList?.contains("dot")) drawn.dots++;
        }
      }
    }).observe(document.querySelector("#wires"), { childList: true });
  }`);
  await page.send("Emulation.setEmulatedMedia", {
    features: [{ name: "prefers-reduced-motion", value: "reduce" }],
  });
  await client.fetch(`${cluster.url("edge-2")}/talker/shown`);
  await page.until("the way lights up where motion is not wanted", "drawn.ways > 0");
  assert.equal(await page.evaluate("drawn.dots"), 0);
  await page.send("Emulation.setEmulatedMedia", { features: [] });
  await client.fetch(`${cluster.url("edge-1")}/talker/shown`);
  await page.until("it flies elsewhere", "drawn.dots > 0");
}

/** On a phone nothing of the tree lies beside the page. */
async function fitsAPhone(page: Page): Promise<void> {
  const size = { width: 390, height: 844, deviceScaleFactor: 1, mobile: true };
  await page.send("Emulation.setDeviceMetricsOverride", size);
  await page.until(
    "all sites are within the page's width",
    `[...document.querySelectorAll("#tree .card")].every((card) => {
      const { left, right } = card.getBoundingClientRect();
      return left >= 0 && right <= innerWidth;
    }) && document.documentElement.scrollWidth <= innerWidth`,
  );
  const tops = await page.evaluate(
    `[...document.querySelectorAll("#tree .card")].map((card) => card.getBoundingClientRect().top)`,
  ) as number[];
  assert.deepEqual(tops, [...new Set(tops)].sort((a, b) => a - b)); // in the order of the list, none over another
  await page.send("Emulation.setDeviceMetricsOverride", { ...size, width: 1280, height: 900, mobile: false });
  await page.until(
    "they stand side by side again",
    `new Set([...document.querySelectorAll("#tree .card")].map((card) => card.style.top)).size === 3`,
  );
}

/** With the keyboard alone, and by what a screen reader is given. */
async function isUsableWithoutPointer(page: Page): Promise<void> {
  await page.evaluate(`document.activeElement.blur()`);
  for (let i = 0; i < 4; i++) await page.press("Tab");
  const focused = await page.evaluate(
    `document.activeElement.querySelector(".name")?.firstChild.textContent ?? ""`,
  );
  assert.equal(focused, "edge-2"); // cloud, core-1, edge-1, edge-2: down the tree
  await page.press("Enter");
  await page.until("it is selected", `document.querySelector("#site-title").textContent === "edge-2"`);
  assert.equal(await page.evaluate(`document.activeElement.getAttribute("aria-pressed")`), "true");
  const { nodes } = await page.send("Accessibility.getFullAXTree") as {
    nodes: { role?: { value: string }; name?: { value: string }; ignored: boolean }[];
  };
  const seen = nodes.filter(({ ignored }) => !ignored).map(({ role, name }) =>
    `${role?.value} ${name?.value ?? ""}`
  );
  for (
    const wanted of [
      "banner ",
      "main ",
      "region Sites",
      "region edge-2",
      "region Apps",
      "log Logs",
      "heading Logs",
    ]
  ) assert(seen.some((node) => node.startsWith(wanted)), `${wanted}: ${seen.slice(0, 80)}`);
  assert(seen.some((node) => /^button edge-2 edge.* requests\/s/.test(node)), "a site says what it is");
  const nameless = seen.filter((node) => /^(button|combobox|searchbox|textbox) $/.test(node));
  assert.deepEqual(nameless, []);
}

async function breaksAndMends(page: Page, cluster: TestCluster): Promise<void> {
  await page.evaluate(`${card("edge-3")}.click()`);
  await page.until(
    "faults are offered",
    `!document.querySelector("#faults").hidden && ${fault("Kill")} !== undefined`,
  );
  await page.evaluate(`${fault("Kill")}.click()`);
  await page.until("it is shown as killed", `${card("edge-3")}.textContent.includes("killed")`);
  await eventually("it is down", async () => (await cluster.site("edge-3")).pid === 0);
  await page.until("it can be started", `${fault("Start")} !== undefined`);
  await page.evaluate(`${fault("Start")}.click()`);
  await page.until("it is back", `${card("edge-3")}.classList.contains("ok")`);
  await page.evaluate(`${fault("Cut link to core-2")}.click()`);
  await page.until("its link is cut", `document.querySelectorAll(".wire.cut").length === 1`);
  await page.until("it can be healed", `${fault("Heal link to core-2")} !== undefined`);
  await page.evaluate(`${fault("Heal link to core-2")}.click()`);
  await page.until("its link is up again", `document.querySelectorAll(".wire.up").length === 5`);
}

/** The page came from core-2; it goes on without it. */
async function outlivesItsSite(page: Page, cluster: TestCluster): Promise<void> {
  await cluster.control("kill", "core-2");
  await page.until(
    "another site tells",
    `/^live, seen from (?!core-2)/.test(document.querySelector("#connection").textContent)`,
  );
  await page.until("its own site is shown as killed", `${card("core-2")}.textContent.includes("killed")`);
  await cluster.control("start", "core-2");
  await page.until("all are back", `document.querySelectorAll(".card.ok").length === 6`);
}

async function asksForItsToken(browser: Browser, cluster: TestCluster): Promise<void> {
  const page = await browser.open(`${cluster.url("cloud")}/_sojourn/dashboard`);
  await page.until(
    "it asks",
    `!document.querySelector("#ask").hidden && document.querySelector("#main").hidden`,
  );
  const enter = (token: string) =>
    page.evaluate(
      `{ document.querySelector("#token").value = "${token}"; document.querySelector("#ask button").click(); }`,
    );
  await enter("not-the-token-at-all");
  await page.until(
    "it asks again",
    `document.querySelector("#token").value === "" && !document.querySelector("#ask").hidden`,
  );
  await enter(cluster.adminToken);
  await page.until("it opens", `!document.querySelector("#main").hidden`);
  await page.close();
}

/** What a page of an app can do that is served on the dashboard's own host and port. */
const ATTACKS: Record<string, [script: string, outcome: unknown]> = {
  "reading the cluster": [`(await fetch("/_sojourn/admin/cluster")).status`, 401],
  "reading logs": [`(await fetch("/_sojourn/admin/logs")).status`, 401],
  "reading the status": [`(await fetch("/_sojourn/status")).status`, 401],
  "injecting a fault": [
    `(await fetch("/_sojourn/admin/chaos", { method: "POST", body: '{"action":"kill","site":"edge-1"}' })).status`,
    401,
  ],
  "injecting a fault by a form": [
    `await new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.name = "taken";
      document.body.append(frame);
      const form = Object.assign(document.createElement("form"), {
        method: "POST", action: "/_sojourn/admin/chaos", target: "taken", enctype: "text/plain",
      });
      form.append(Object.assign(document.createElement("input"), { name: '{"action":"kill","site":"edge-1","x":"', value: '"}' }));
      document.body.append(form);
      frame.onload = () => resolve(/admin_token_invalid/.test(frame.contentDocument?.body.textContent ?? "") ? "refused" : "?");
      form.submit();
    })`,
    "refused",
  ],
  "rolling back an app": [
    `(await fetch("/_sojourn/admin/apps/talker/rollback", { method: "POST" })).status`,
    401,
  ],
  "framing the dashboard": [
    `await new Promise((resolve) => {
      const frame = Object.assign(document.createElement("iframe"), { src: "/_sojourn/dashboard" });
      frame.onload = () => resolve(frame.contentDocument?.querySelector?.("#tree") ? "read" : "closed");
      document.body.append(frame);
    })`,
    "closed",
  ],
  "scripting the dashboard in a window": [
    `await new Promise((resolve) => {
      const other = open("/_sojourn/dashboard");
      const untilMs = Date.now() + 1500;
      const look = () => {
        try {
          if (other?.document?.querySelector("#ask")) return resolve("read");
        } catch { return resolve("closed"); }
        if (Date.now() > untilMs || other === null || other.closed) return resolve("closed");
        setTimeout(look, 20);
      };
      look();
    })`,
    "closed",
  ],
  "standing in for it by a service worker": [
    `await navigator.serviceWorker.register("/talker/worker.js", { scope: "/" }).then(() => "taken", ({ name }) => name)`,
    "SecurityError",
  ],
  "following logs by a WebSocket": [
    `await new Promise((resolve) => {
      const socket = new WebSocket(location.origin.replace("http", "ws") + "/_sojourn/admin/logs?follow=1");
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("closed");
    })`,
    "closed",
  ],
  "following logs by an EventSource": [
    `await new Promise((resolve) => {
      const source = new EventSource("/_sojourn/admin/logs?follow=1");
      source.onopen = () => resolve("open");
      source.onerror = () => { source.close(); resolve("closed"); };
    })`,
    "closed",
  ],
  "a window that is sent on to what only a person's own address opens": [
    `await new Promise((resolve) => {
      const other = open("/talker/away?to=/_sojourn/admin/cluster");
      const untilMs = Date.now() + 1500;
      const look = () => {
        const text = other?.document?.body?.textContent ?? "";
        if (/"sites"/.test(text)) return resolve("read");
        if (/admin_token_invalid/.test(text) || Date.now() > untilMs) return resolve("refused");
        setTimeout(look, 20);
      };
      look();
    })`,
    "refused",
  ],
  "asking from a sandbox of its own": [
    `await new Promise((resolve) => {
      addEventListener("message", ({ data }) => resolve(data));
      const frame = document.createElement("iframe");
      frame.sandbox = "allow-scripts";
      frame.srcdoc = "<script>fetch('" + location.origin + "/_sojourn/admin/cluster').then((a) => a.status, () => 'closed').then((r) => parent.postMessage(r, '*'))</" + "script>";
      document.body.append(frame);
    })`,
    401,
  ],
};

async function keepsAppsOut(browser: Browser, cluster: TestCluster): Promise<void> {
  const url = cluster.url("edge-1");
  const page = await browser.open(`${url}/talker/`);
  for (const [name, [script, outcome]] of Object.entries(ATTACKS)) {
    assert.equal(await page.evaluate(`(async () => ${script})()`), outcome, name);
  }
  // On a host of its own an app has a root of its own, and the dashboard is not there.
  await page.go(url.replace("127.0.0.1", "talker.localhost"));
  assert.equal(await page.evaluate(`fetch("/_sojourn/dashboard").then(({ status }) => status)`), 404);
  assert.equal(await page.evaluate(`fetch("/_sojourn/admin/cluster").then(({ status }) => status)`), 401);
  await page.close();
  assert.equal((await ask(`${url}/_sojourn/healthz`)).status, 200);
}

Deno.test({
  name: "the dashboard, in a browser" + skipped,
  ignore: browserPath === null,
  fn: async (t) => {
    await using cluster = await startCluster({ apps: [APP] });
    const browser = await Browser.start(browserPath ?? "");
    try {
      const page = await browser.open(dashboardOf(cluster, "core-2"));
      await t.step(
        "shows sites, links, moving sessions, apps and logs",
        () => showsTheCluster(page, cluster),
      );
      await t.step("fits a phone", () => fitsAPhone(page));
      await t.step("is used by keyboard and screen reader", () => isUsableWithoutPointer(page));
      await t.step("has an origin of its own, and breaks no rule of its policy", async () => {
        assert.equal(await page.evaluate("self.origin"), "null");
        assert.deepEqual(page.complaints, []);
        const loaded = await page.evaluate(
          `performance.getEntriesByType("resource").map(({ name }) => new URL(name).origin)`,
        );
        assert.deepEqual([...new Set(loaded as string[])], [cluster.url("core-2")]);
      });
      await t.step("breaks a site and a link by click, and mends them", () => breaksAndMends(page, cluster));
      await t.step("goes on when its site is killed", () => outlivesItsSite(page, cluster));
      await t.step("asks for a token where it has none", () => asksForItsToken(browser, cluster));
      await t.step(
        "a page of an app can neither read it nor act for it",
        () => keepsAppsOut(browser, cluster),
      );
    } finally {
      await browser.stop();
    }
  },
});
