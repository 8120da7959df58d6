/**
 * A player's page. It draws what the table tells, a moment behind so that it is smooth, and tells the table where the
 * paddle is wanted. Its own paddle moves at once: the table moves it by the same rule.
 *
 * Its socket is the client library's: it goes on at another site when this one dies, and nothing is lost on it. The seat
 * is kept for who knows its key.
 */
// Every site serves it; where this file lies there is none to check it against.
const { connect } = await import(new URL("/_sojourn/client.js", location.href));

const { table } = document.body.dataset;
const COURT = { width: 160, height: 100 }, PADDLE = { half: 9, face: 8, speed: 130 }, BALL_RADIUS = 1.6;
/** Two frames: one may come late and nothing jumps. */
const BEHIND_MS = 70;
/** The table takes a player for gone who says nothing for six times as long. */
const PULSE_MS = 250;

const $ = (id) => document.getElementById(id);
const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
// A page that came over plain HTTP has no crypto.randomUUID.
const key = sessionStorage.getItem("key") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
sessionStorage.setItem("key", key);
$("name").value = sessionStorage.getItem("name") ?? localStorage.getItem("name") ?? "";

let socket = null, isAway = false, problem = "", heardMs = 0;
/** What was told, newest last, and when. */
const told = [];
let you = { seat: null, seen: 0 };
let wantsSeat = sessionStorage.getItem("seated") === table;
const mine = { n: 0, y: 50, shown: 50, sentMs: 0, isSent: true };
/** When each `aim` left, until the table has it: the lag is measured by these. */
const sent = new Map();
let lagMs = null;

// The connection

// "." is where this page is: the app, at this site. The others are asked for.
const client = await connect({ sites: "." });

function open() {
  const now = socket = new client.WebSocket(`/${table}/socket`);
  isAway = true;
  heardMs = performance.now();
  const isHere = () => {
    isAway = false;
    if (wantsSeat) sit();
  };
  now.addEventListener("open", isHere);
  now.addEventListener("back", isHere);
  now.addEventListener("away", () => isAway = true);
  now.addEventListener("message", ({ data }) => {
    heardMs = performance.now();
    take(JSON.parse(data));
  });
  // The table has ended, or this page was away for longer than it is waited for: begin anew.
  now.addEventListener("close", () => {
    isAway = true;
    setTimeout(open, 500);
  });
}

const say = (words) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(words));
const sit = () => say({ kind: "sit", key, name: $("name").value.trim() || "Somebody" });

function take(words) {
  if (words.kind === "you") {
    you = words;
    problem = words.problem ?? "";
    mine.n = Math.max(mine.n, words.seen);
    return;
  }
  const newest = told.at(-1)?.state;
  // The table counts its frames: what is older than what was shown is never shown.
  if (newest !== undefined && words.frame <= newest.frame) return;
  told.push({ state: words, atMs: performance.now() });
  if (told.length > 8) told.shift();
  if (you.seat !== null) {
    const leftMs = sent.get(words.seen[you.seat]);
    if (leftMs !== undefined) {
      lagMs = lagMs === null ? performance.now() - leftMs : 0.9 * lagMs + 0.1 * (performance.now() - leftMs);
    }
    for (const n of sent.keys()) if (n <= words.seen[you.seat]) sent.delete(n);
  }
  label(words);
}

// The player

const inReach = (y) => Math.min(COURT.height - PADDLE.half, Math.max(PADDLE.half, y));
function want(y) {
  mine.y = inReach(y);
  mine.isSent = false;
}
const pressed = new Set();
const UP = ["ArrowUp", "w", "W"], DOWN = ["ArrowDown", "s", "S"];
addEventListener("keydown", (event) => {
  if (event.target instanceof HTMLInputElement || event.metaKey || event.ctrlKey || event.altKey) return;
  if (!UP.includes(event.key) && !DOWN.includes(event.key)) return;
  pressed.add(event.key);
  event.preventDefault();
});
addEventListener("keyup", (event) => pressed.delete(event.key));
addEventListener("blur", () => pressed.clear());
for (const kind of ["pointermove", "pointerdown"]) {
  canvas.addEventListener(kind, (event) => {
    const box = canvas.getBoundingClientRect();
    if (you.seat !== null) want(((event.clientY - box.top) / box.height) * COURT.height);
  });
}
canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));

document.querySelector("form").onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem("name", $("name").value);
  localStorage.setItem("name", $("name").value);
  sessionStorage.setItem("seated", table);
  wantsSeat = true;
  sit();
  canvas.focus();
};
$("again").onclick = () => say({ kind: "again" });
$("leave").onclick = () => {
  sessionStorage.removeItem("seated");
  wantsSeat = false;
  say({ kind: "leave" });
};

/** Thirty times a second, also where nothing is drawn: what has changed, and now and then that the player is here. */
setInterval(() => {
  const now = performance.now();
  status(now);
  // What is said while there is no connection arrives later, when it is of no use.
  if (you.seat === null || isAway) return;
  if (mine.isSent && now - mine.sentMs < PULSE_MS) return;
  mine.isSent = true;
  mine.sentMs = now;
  sent.set(++mine.n, now);
  if (sent.size > 100) sent.clear();
  say({ kind: "aim", n: mine.n, y: mine.y });
}, 33);

// What is seen

const WORDS = {
  empty: "Two players are needed.\nSit down, or send the link to a friend.",
  away: "Waiting until both players are here",
  hold: "Ready",
  rally: "",
};

function label(state) {
  for (const side of [0, 1]) {
    $(`name-${side}`).textContent = state.names[side] ?? "free seat";
    $(`name-${side}`).classList.toggle("mine", you.seat === side);
    $(`points-${side}`).textContent = state.points[side];
  }
  const seated = you.seat !== null;
  $("name").hidden = $("sit").hidden = seated;
  $("leave").hidden = !seated;
  $("again").hidden = !seated || state.phase !== "over";
  $("sit").disabled = !state.names.includes(null);
  $("sit").textContent = state.names.includes(null) ? "Sit down" : "Both seats are taken";
  canvas.classList.toggle("playing", seated && state.phase !== "over" && state.phase !== "empty");
  $("rally").textContent = `rally ${state.rally} · longest ${state.longest}`;
  $("watching").textContent = `${state.watching} connected`;
}

function status(now) {
  const { site } = client.status();
  $("state").textContent = isAway
    ? "looking for another site"
    : problem || `by way of ${site.id ?? new URL(site.url).host}`;
  $("lag").textContent = lagMs === null || you.seat === null
    ? ""
    : `${Math.round(lagMs)} ms to the table and back`;
  const state = told.at(-1)?.state;
  const isStill = state !== undefined && ["rally", "hold"].includes(state.phase) && now - heardMs > 700;
  $("card").textContent = isStill || (isAway && state !== undefined)
    ? "The table is moving to another site …"
    : state === undefined
    ? "…"
    : state.phase === "over"
    ? `${state.names[state.winner] ?? "Somebody"} wins`
    : WORDS[state.phase];
}

const mix = (from, to, share) => from + (to - from) * share;

/** The court as it was BEHIND_MS ago, between two of the states that were told. */
function courtAt(ms) {
  const after = told.findIndex(({ atMs }) => atMs > ms);
  const newest = told.at(-1);
  if (after <= 0) {
    const { state, atMs } = after === 0 ? told[0] : newest;
    // The newest is old: on a little, so that a late frame does not stop the ball.
    const ahead = state.phase === "rally" ? Math.min(0.1, Math.max(0, (ms - atMs) / 1000)) : 0;
    const [x, y, vx, vy] = state.ball;
    return { ball: [x + vx * ahead, y + vy * ahead], paddles: state.paddles };
  }
  const from = told[after - 1], to = told[after];
  const share = (ms - from.atMs) / Math.max(1, to.atMs - from.atMs);
  // A serve is a jump, not a flight through the court.
  const jumps = from.state.points.some((points, side) => points !== to.state.points[side]) ||
    from.state.match !== to.state.match;
  const [a, b] = [from.state, jumps ? from.state : to.state];
  return {
    ball: [mix(a.ball[0], b.ball[0], share), mix(a.ball[1], b.ball[1], share)],
    paddles: [0, 1].map((side) => mix(a.paddles[side], b.paddles[side], share)),
  };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
const colours = {};
function readColours() {
  // light-dark() is resolved where a property is used, not in a custom one.
  const probe = document.createElement("i");
  document.body.append(probe);
  for (const name of ["--chalk", "--left", "--right"]) {
    probe.style.color = colour(name);
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColours);

const trail = [];
let drawnMs = performance.now();
function draw(now) {
  const passed = Math.min(0.1, (now - drawnMs) / 1000);
  drawnMs = now;
  if (pressed.size > 0 && you.seat !== null) {
    const by = ([...pressed].some((k) => DOWN.includes(k)) ? 1 : 0) -
      ([...pressed].some((k) => UP.includes(k)) ? 1 : 0);
    if (by !== 0) want(mine.y + by * PADDLE.speed * passed);
  }
  const most = PADDLE.speed * passed;
  mine.shown += Math.min(most, Math.max(-most, mine.y - mine.shown));
  const scale = canvas.width / COURT.width;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, COURT.width, COURT.height);
  lines();
  if (told.length > 0) play(courtAt(now - BEHIND_MS));
  requestAnimationFrame(draw);
}

function lines() {
  pen.strokeStyle = colours["--chalk"];
  pen.globalAlpha = 0.35;
  pen.lineWidth = 0.5;
  pen.strokeRect(2, 2, COURT.width - 4, COURT.height - 4);
  pen.setLineDash([2.5, 2.5]);
  pen.beginPath();
  pen.moveTo(COURT.width / 2, 2);
  pen.lineTo(COURT.width / 2, COURT.height - 2);
  pen.stroke();
  pen.setLineDash([]);
  pen.beginPath();
  pen.arc(COURT.width / 2, COURT.height / 2, 14, 0, 2 * Math.PI);
  pen.stroke();
  pen.globalAlpha = 1;
}

function play({ ball: [x, y], paddles }) {
  for (const side of [0, 1]) {
    const middle = you.seat === side ? mine.shown : paddles[side];
    pen.fillStyle = colours[side === 0 ? "--left" : "--right"];
    pen.beginPath();
    pen.roundRect(
      side === 0 ? PADDLE.face - 2.4 : COURT.width - PADDLE.face,
      middle - PADDLE.half,
      2.4,
      2 * PADDLE.half,
      1.2,
    );
    pen.fill();
  }
  trail.push([x, y]);
  if (trail.length > 9) trail.shift();
  pen.fillStyle = colours["--chalk"];
  trail.forEach(([tx, ty], i) => {
    pen.globalAlpha = i === trail.length - 1 ? 1 : 0.045 * (i + 1);
    pen.beginPath();
    pen.arc(tx, ty, i === trail.length - 1 ? BALL_RADIUS : BALL_RADIUS * (0.4 + 0.06 * i), 0, 2 * Math.PI);
    pen.fill();
  });
  pen.globalAlpha = 1;
}

open();
requestAnimationFrame(draw);
setInterval(links, 1_000);

/** The same table, by way of the other sites, as far as they are known. */
function links() {
  const here = client.status().sites.filter(({ id }) => id !== null);
  const nav = document.querySelector("nav");
  if (nav.childElementCount === here.length) return;
  nav.replaceChildren(...here.map(({ id, url }) => {
    const link = document.createElement("a");
    link.href = new URL(location.pathname, url);
    link.textContent = id;
    if (new URL(url).origin === location.origin) link.setAttribute("aria-current", "page");
    return link;
  }));
}
