/**
 * The gateway's page. It shows what its site knows, as that changes, and asks once a second whether the site is there:
 * when it is not, the page goes on at another one, with what was typed.
 */
const $ = (id) => document.getElementById(id);
const SLOW_MS = 3_000;
/** A site that does not answer for so long is gone. */
const PATIENCE_MS = 2_000;

// Sites

let sites = [];
let here = "";

/** The same page at another site. Names of this machine stay as they are: in dev sites differ in ports. */
function pageAt(url) {
  const page = new URL(location.pathname, url);
  if (/^(127\.0\.0\.1|localhost)$/.test(page.hostname)) page.hostname = location.hostname;
  return page;
}

async function learnSites() {
  const answer = await fetch("/_sojourn/sites");
  const known = JSON.stringify(sites);
  sites = await answer.json();
  // Who has come to a link by keyboard stays there.
  if (JSON.stringify(sites) === known) return;
  const links = sites.map(({ id, url }) => {
    const link = Object.assign(document.createElement("a"), { href: pageAt(url).href, textContent: id });
    if (id === here) link.setAttribute("aria-current", "page");
    return link;
  });
  document.querySelector("nav").replaceChildren(...links);
}

const isThere = (url) =>
  fetch(new URL("/_sojourn/readyz", url), { signal: AbortSignal.timeout(PATIENCE_MS), cache: "no-store" })
    .then(({ ok }) => ok, () => false);

/** Says something of the site; aloud only what is new. */
function says(text) {
  if ($("site").textContent !== text) $("site").textContent = text;
}

/** Looks after the site; goes to the first of the others that answers when it is gone. */
async function look() {
  const isHere = await isThere(location.href);
  document.body.classList.toggle("away", !isHere);
  if (isHere) {
    if (here === "") return; // it is there, and has not said its name
    says(`at ${here}`);
    return void await learnSites().catch(() => {});
  }
  says(`${here} does not answer: looking for another site`);
  const others = sites.filter(({ id }) => id !== here).map(({ url }) => pageAt(url));
  const next = await Promise.any(others.map(async (url) => {
    if (await isThere(url)) return url;
    throw new Error("it is gone, too");
  })).catch(() => null);
  if (next === null) return;
  next.hash = new URLSearchParams(new FormData($("post"))).toString();
  location.replace(next);
}

setInterval(look, 1_000);
/** What was typed at the site before. */
const typed = new URLSearchParams(location.hash.slice(1));
for (const [name, text] of typed) {
  const field = $("post").elements.namedItem(name);
  if (field !== null) field.value = text;
}
history.replaceState(null, "", location.pathname);

// What is live

const live = new EventSource("live");
const on = (event, take) => live.addEventListener(event, ({ data }) => take(JSON.parse(data)));
on("site", (site) => {
  here = site;
  void look();
});
on("operators", showOperators);
on("reports", (reports) => {
  $("no-reports").hidden = reports.length > 0;
  $("reports").replaceChildren(
    ...reports.map(({ company, to, operator, deliveredMs, id }) =>
      row(deliveredMs, company, to, operator, id)
    ),
  );
});
on("failures", (failures) => {
  $("no-failures").hidden = failures.length > 0;
  $("redrive").hidden = failures.length === 0;
  const focused = document.activeElement?.closest("#failures li")?.title;
  $("failures").replaceChildren(...failures.map(({ company, to, why, failedMs, id }) => {
    const item = row(failedMs, company, to, why, id);
    const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Redrive" });
    again.setAttribute("aria-label", `Redrive the message of ${company} to ${to}`);
    again.onclick = () => redrive([id]);
    item.append(again);
    return item;
  }));
  // Who has come to a button by keyboard stays there.
  [...$("failures").children].find(({ title }) => title === focused)?.querySelector("button").focus();
});

/** A message in a list: whose it is and for which number; when, and what became of it. */
function row(ms, company, to, what, id) {
  const made = (name, textContent, more) =>
    Object.assign(document.createElement(name), { textContent, ...more });
  const item = document.createElement("li"),
    whose = document.createElement("p"),
    became = document.createElement("p");
  const at = new Date(ms);
  whose.append(company, " → ", made("span", to, { className: "to" }));
  became.append(
    made("time", at.toLocaleTimeString(), { dateTime: at.toISOString() }),
    " · ",
    made("span", what, { className: "what" }),
  );
  item.title = id;
  item.append(whose, became);
  return item;
}

// Operators

const FLOW = ["posted", "waiting", "taken", "delivered", "failed"];
const number = new Intl.NumberFormat("en");

function showOperators(operators) {
  const sums = Object.fromEntries(FLOW.map((of) => [of, operators.reduce((sum, each) => sum + each[of], 0)]));
  for (const of of FLOW) {
    document.querySelector(`.flow [data-of=${of}] dd`).textContent = number.format(sums[of]);
    const part = document.querySelector(`#bar [data-of=${of}]`);
    if (part !== null) part.style.flexGrow = sums[of];
  }
  $("bar").classList.toggle("empty", sums.posted === 0);
  $("bar").setAttribute(
    "aria-label",
    sums.posted === 0 ? "No messages yet" : `Of ${sums.posted}, ${sums.delivered} are delivered`,
  );
  for (const operator of operators) {
    // Numbers of nobody are worth a card when somebody has written to one.
    if (operator.prefix !== "" || operator.posted > 0) showOperator(operator);
  }
}

function showOperator({ name, prefix, isOut, slowMs, perSecond, ...counts }) {
  const card = document.getElementById(`operator-${name}`) ?? newCard(name, prefix);
  for (const part of card.querySelectorAll("[data-of]")) {
    part.textContent = number.format(counts[part.dataset.of]);
  }
  const state = isOut ? "out" : slowMs > 0 ? "slow" : "in";
  card.dataset.state = state;
  card.querySelector(".word").textContent = { out: "Out of service", slow: "Slow", in: "In service" }[state];
  const { isOut: out, isSlow, perSecond: rate } = card.querySelector("form").elements;
  out.checked = isOut;
  isSlow.checked = slowMs > 0;
  if (document.activeElement !== rate) rate.value = perSecond;
}

function newCard(name, prefix) {
  const card = $("operator").content.firstElementChild.cloneNode(true);
  card.id = `operator-${name}`;
  card.querySelector(".name").textContent = name;
  card.querySelector(".prefix").textContent = prefix === "" ? "numbers of no operator" : prefix;
  const form = card.querySelector("form");
  form.hidden = card.querySelector(".state").hidden = prefix === "";
  form.setAttribute("aria-label", name);
  form.onsubmit = (event) => event.preventDefault();
  form.onchange = ({ target }) => {
    if (!target.reportValidity()) return;
    const mood = {
      isOut: () => ({ isOut: target.checked }),
      isSlow: () => ({ slowMs: target.checked ? SLOW_MS : 0 }),
      perSecond: () => ({ perSecond: target.valueAsNumber }),
    }[target.name]();
    void send(`operators/${name}`, mood);
  };
  $("operators").append(card);
  if (prefix !== "") {
    const isTyped = typed.get("prefix") === prefix;
    $("post").elements.prefix.append(new Option(`${name} ${prefix}`, prefix, false, isTyped));
  }
  return card;
}

// What people do

/** Posts something; `isLate` where it may be posted again. */
async function send(path, body, headers = {}) {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const told = await answer.json().catch(() => ({}));
    if (answer.ok) return told;
    const problem = told.problem ?? told.detail ?? `the site says ${answer.status}`;
    return { problem, isLate: answer.status >= 500 };
  } catch (error) {
    return { problem: error.message, isLate: true };
  }
}

/** Eight more digits: never three zeros at the end, which nobody has. */
const digits = () =>
  String(10_000_000 + crypto.getRandomValues(new Uint32Array(1))[0] % 89_999_999).replace(/000$/, "001");
/** A page that came over plain HTTP has no crypto.randomUUID. */
const newId = () => [...crypto.getRandomValues(new Uint32Array(3))].map((part) => part.toString(36)).join("");

$("post").onsubmit = async (event) => {
  event.preventDefault();
  const { company, prefix, text, count } = Object.fromEntries(new FormData($("post")));
  const messages = Array.from(
    { length: Number(count) },
    () => ({ id: newId(), to: prefix + digits(), text }),
  );
  // Posted again under their ids, they are the same messages.
  for (let tries = 1;; tries++) {
    const { ids, problem, isLate } = await send(`companies/${company}/messages`, messages);
    const isOver = ids !== undefined || !isLate || tries === 10;
    $("post-says").textContent = ids === undefined
      ? `${problem}${isOver ? "" : ", again in a second"}`
      : `${ids.length} posted at ${here}`;
    if (isOver) return;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
};

/** Dead letters are the cluster's: its operators have them come again, by this or by `sojourn queues redrive`. */
async function redrive(ids) {
  const token = $("redrive").elements.token;
  if (!token.reportValidity()) return;
  const told = await send("/_sojourn/admin/queues/sms/outgoing/redrive", ids === undefined ? {} : { ids }, {
    authorization: `Bearer ${token.value}`,
  });
  $("redrive-says").textContent = told.problem ?? `${told.count} will come again`;
}

$("redrive").onsubmit = (event) => {
  event.preventDefault();
  void redrive();
};
