/**
 * A player's page. It shows what the table tells, and keeps on it the tiles that are laid and not yet played.
 *
 * Its socket is the client library's: it goes on at another site when this one dies, and a move that was sent arrives once.
 * Only when the table has forgotten this page the socket is another, and the move is sent again: it says which move of the
 * game it is.
 */
// Every site serves it; where this file lies there is none to check it against.
const { connect } = await import(new URL("/_sojourn/client.js", location.href));

const { table } = document.body.dataset;
const SIZE = 15;
const VALUES = {
  ...{ A: 1, B: 3, C: 3, D: 2, E: 1, F: 4, G: 2, H: 4, I: 1, J: 8, K: 5, L: 1, M: 3, N: 1, O: 1, P: 3 },
  ...{ Q: 10, R: 1, S: 1, T: 1, U: 1, V: 4, W: 4, X: 8, Y: 4, Z: 10, _: 0 },
};
const $ = (id) => document.getElementById(id);
const board = $("board"), rack = $("rack");
const squares = [...board.children];
// A page that came over plain HTTP has no crypto.randomUUID.
const key = sessionStorage.getItem("key") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
sessionStorage.setItem("key", key);
$("name").value = sessionStorage.getItem("name") ?? localStorage.getItem("name") ?? "";

let socket = null, isAway = true;
let wantsSeat = sessionStorage.getItem("seated") === table;
let view = null, problem = "", clockMs = 0;
/** Sent, and not yet seen in a view. */
let pending = null;
/** The rack in the order in which it is shown: `{tile, as, x, y}`; `x` while it is laid on the board. */
let tiles = [];
/** Index in `tiles` of the one that is to be laid next; a set of them for an exchange. */
let chosen = null, exchanging = null;
/** In which direction typing goes on. */
let direction = [1, 0];

// The connection

// "." is where this page is: the app, at this site. The others are asked for.
const client = await connect({ sites: "." });

function open() {
  const now = socket = new client.WebSocket(`/${table}/socket`);
  now.addEventListener("open", () => {
    isAway = false;
    if (wantsSeat) sit();
    if (pending !== null) say(pending);
    show();
  });
  for (const kind of ["away", "back"]) {
    now.addEventListener(kind, () => {
      isAway = kind === "away";
      show();
    });
  }
  now.addEventListener("message", ({ data }) => take(JSON.parse(data)));
  // The table has ended, or this page was away for longer than it is waited for: begin anew.
  now.addEventListener("close", () => {
    isAway = true;
    view = null;
    show();
    setTimeout(open, 500);
  });
}

const say = (words) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(words));
const sit = () => say({ kind: "sit", key, name: $("name").value.trim() || "Somebody" });

function take(words) {
  if (words.kind === "problem") {
    problem = words.problem;
    pending = null;
    return show();
  }
  // What is older than what was shown is never shown.
  if (view !== null && words.moment < view.moment) return;
  const before = view;
  view = words;
  clockMs = performance.now();
  const { open: game } = view;
  if (pending !== null && (game.phase !== "playing" || game.moves.length >= pending.move)) pending = null;
  if (before === null || before.moment !== view.moment) problem = "";
  hold(view.yours.rack);
  show();
}

/** The rack as the table has it: tiles that are still there stay where they are, in hand or on the board. */
function hold(rackNow) {
  const left = [...rackNow];
  tiles = tiles.filter(({ tile }) => {
    const found = left.indexOf(tile);
    if (found >= 0) left.splice(found, 1);
    return found >= 0;
  });
  tiles.push(...left.map((tile) => ({ tile })));
  for (const each of tiles) if (each.x !== undefined && onBoard(each.x, each.y) !== ".") recall(each);
  if (chosen !== null && chosen >= tiles.length) chosen = null;
}

const onBoard = (x, y) => view?.open.board[y * SIZE + x] ?? ".";
const laidAt = (x, y) => tiles.find((each) => each.x === x && each.y === y);
const isMyTurn = () =>
  view?.open.phase === "playing" && view.open.turn === view.yours.seat && pending === null;

function recall(each) {
  delete each.x;
  delete each.y;
  delete each.as;
}

// Laying tiles

async function layAt(each, x, y) {
  if (onBoard(x, y) !== "." || laidAt(x, y) !== undefined) return false;
  if (each.tile === "_" && each.as === undefined) {
    const letter = await askLetter();
    if (letter === null) return false;
    each.as = letter;
  }
  [each.x, each.y] = [x, y];
  chosen = null;
  show();
  return true;
}

const letters = $("blank").querySelector("form");
letters.append(...[..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((letter) => {
  const button = document.createElement("button");
  button.value = button.textContent = letter;
  return button;
}));
function askLetter() {
  const dialog = $("blank");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue || null);
  });
}
addEventListener("keydown", ({ key: pressed }) => {
  if ($("blank").open && /^[a-z]$/i.test(pressed)) $("blank").close(pressed.toUpperCase());
});

board.addEventListener("click", (event) => {
  const square = event.target.closest(".square");
  if (square === null) return;
  const [x, y] = [Number(square.dataset.x), Number(square.dataset.y)];
  focus(x, y);
  const mine = laidAt(x, y);
  if (mine !== undefined) {
    recall(mine);
    return show();
  }
  if (chosen !== null) layAt(tiles[chosen], x, y);
});

function focus(x, y) {
  if (x < 0 || y < 0 || x >= SIZE || y >= SIZE) return;
  for (const square of squares) square.tabIndex = -1;
  const square = squares[y * SIZE + x];
  square.tabIndex = 0;
  square.focus();
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
board.addEventListener("keydown", async (event) => {
  const square = event.target.closest(".square");
  if (square === null || event.ctrlKey || event.metaKey || event.altKey) return;
  let [x, y] = [Number(square.dataset.x), Number(square.dataset.y)];
  const arrow = ARROWS[event.key];
  if (arrow !== undefined) {
    event.preventDefault();
    if (arrow[0] + arrow[1] > 0) direction = arrow;
    return focus(x + arrow[0], y + arrow[1]);
  }
  if (event.key === "Backspace" || event.key === "Delete") {
    if (laidAt(x, y) === undefined) [x, y] = [x - direction[0], y - direction[1]];
    const mine = laidAt(x, y);
    if (mine !== undefined) recall(mine);
    show();
    return focus(x, y);
  }
  if (!/^[a-z]$/i.test(event.key)) return;
  const letter = event.key.toUpperCase();
  const free = tiles.filter((each) => each.x === undefined);
  const each = free.find(({ tile }) => tile === letter) ?? free.find(({ tile }) => tile === "_");
  if (each === undefined || onBoard(x, y) !== "." || laidAt(x, y) !== undefined) return;
  if (each.tile === "_") each.as = letter;
  await layAt(each, x, y);
  do [x, y] = [x + direction[0], y + direction[1]]; while (onBoard(x, y) !== "." && x < SIZE && y < SIZE);
  focus(x, y);
});

/** A tile follows the finger; let go over a square it lies there, anywhere else it is chosen. */
function drag(event, each) {
  const start = [event.clientX, event.clientY];
  let ghost = null;
  const move = (now) => {
    if (ghost === null && Math.hypot(now.clientX - start[0], now.clientY - start[1]) > 6) {
      ghost = tileOf(each, "dragged");
      document.body.append(ghost);
    }
    if (ghost !== null) Object.assign(ghost.style, { left: `${now.clientX}px`, top: `${now.clientY}px` });
  };
  const up = (now) => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", up);
    removeEventListener("pointercancel", up);
    if (ghost === null) return choose(each);
    ghost.remove();
    const square = document.elementFromPoint(now.clientX, now.clientY)?.closest(".square");
    if (square && now.type === "pointerup") layAt(each, Number(square.dataset.x), Number(square.dataset.y));
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", up);
  addEventListener("pointercancel", up);
}

function choose(each) {
  const index = tiles.indexOf(each);
  if (exchanging === null) chosen = chosen === index ? null : index;
  else if (!exchanging.delete(each)) exchanging.add(each);
  show();
}

// What the player does

function send(words) {
  pending = { ...words, move: view.open.moves.length + 1 };
  say(pending);
  show();
}
$("play").onclick = () => {
  const laid = tiles.filter((each) => each.x !== undefined);
  send({
    kind: "play",
    tiles: laid.map(({ x, y, tile, as }) => ({ x, y, tile: tile === "_" ? as.toLowerCase() : tile })),
  });
};
$("recall").onclick = () => {
  tiles.forEach(recall);
  exchanging = null;
  show();
};
$("shuffle").onclick = () => {
  for (let i = tiles.length - 1; i > 0; i--) {
    const other = Math.floor(Math.random() * (i + 1));
    [tiles[i], tiles[other]] = [tiles[other], tiles[i]];
  }
  chosen = null;
  show();
};
$("exchange").onclick = () => {
  if (exchanging === null) {
    tiles.forEach(recall);
    exchanging = new Set();
    return show();
  }
  const out = [...exchanging].map(({ tile }) => tile).join("");
  exchanging = null;
  if (out === "") return show();
  send({ kind: "exchange", tiles: out });
};
$("pass").onclick = () => send({ kind: "pass" });
$("resign").onclick = () => confirm("Resign?") && send({ kind: "resign" });
$("start").onclick = () => say({ kind: "start" });
$("leave").onclick = () => {
  sessionStorage.removeItem("seated");
  wantsSeat = false;
  say({ kind: "leave" });
};
document.querySelector("aside form").onsubmit = (event) => {
  event.preventDefault();
  sessionStorage.setItem("name", $("name").value);
  localStorage.setItem("name", $("name").value);
  sessionStorage.setItem("seated", table);
  wantsSeat = true;
  sit();
};

// What is seen

function tileOf({ tile, as }, ...kinds) {
  const element = document.createElement("span"), value = document.createElement("sub");
  const isBlank = tile === "_" || tile !== tile.toUpperCase();
  element.className = ["tile", ...kinds, ...isBlank ? ["blank"] : []].join(" ");
  element.append(as ?? (tile === "_" ? "" : tile.toUpperCase()));
  value.textContent = isBlank ? "" : VALUES[tile];
  element.append(value);
  return element;
}

let boardShown = "", lastBoard = "";
function showBoard() {
  const { board: now } = view.open;
  const laid = tiles.filter((each) => each.x !== undefined).map(({ x, y, tile, as }) =>
    `${x},${y},${tile},${as}`
  );
  const key = `${now}|${laid.join(";")}|${view.open.moves.length}`;
  if (key === boardShown) return;
  if (now !== boardShown.split("|")[0]) lastBoard = boardShown.split("|")[0];
  boardShown = key;
  for (const square of squares) {
    const [x, y] = [Number(square.dataset.x), Number(square.dataset.y)];
    const tile = onBoard(x, y), mine = laidAt(x, y);
    square.querySelector(".tile")?.remove();
    const isLast = tile !== "." && lastBoard.length === now.length && lastBoard[y * SIZE + x] === ".";
    if (tile !== ".") square.append(tileOf({ tile }, ...isLast ? ["last"] : []));
    else if (mine !== undefined) square.append(tileOf(mine, "mine"));
    const says = tile !== "." ? tile.toUpperCase() : mine?.as ?? mine?.tile;
    square.ariaLabel = says === undefined ? square.dataset.where : `${says} on ${square.dataset.where}`;
  }
}

function showRack() {
  rack.replaceChildren(
    ...tiles.flatMap((each, index) => {
      if (each.x !== undefined) return [];
      const isChosen = exchanging === null ? chosen === index : exchanging.has(each);
      const shown = tileOf(each, ...isChosen ? ["chosen"] : []);
      const button = document.createElement("button");
      button.type = "button";
      button.className = shown.className;
      button.append(...shown.childNodes);
      button.ariaLabel = each.tile === "_" ? "blank" : each.tile;
      button.ariaPressed = String(isChosen);
      button.onpointerdown = (event) => {
        event.preventDefault();
        drag(event, each);
      };
      button.onkeydown = (event) => {
        if (event.key === "Enter" || event.key === " ") choose(each);
      };
      return [button];
    }),
  );
}

const KINDS = { exchange: "exchanged", pass: "passed", time: "ran out of time", resign: "resigned" };
function showSide() {
  const { open: game, yours } = view;
  $("players").replaceChildren(...game.names.map((name, seat) => {
    const item = document.createElement("li");
    const who = document.createElement("span"),
      points = document.createElement("b"),
      time = document.createElement("time");
    who.textContent = name;
    who.classList.toggle("you", seat === yours.seat);
    points.textContent = game.points[seat];
    item.classList.toggle("turn", game.phase === "playing" && seat === game.turn);
    if (game.phase === "playing" && seat === game.turn) time.id = "clock";
    item.append(who, time, points);
    return item;
  }));
  $("moves").replaceChildren(
    ...game.moves.toReversed().map((move) => {
      const item = document.createElement("li");
      const cells = [
        game.names[move.by],
        move.kind === "play" ? move.words.map(({ word }) => word).join(", ") : KINDS[move.kind],
        move.kind === "play" ? `+${move.score}` : "",
      ];
      item.append(
        ...cells.map((text) => Object.assign(document.createElement("span"), { textContent: text })),
      );
      return item;
    }),
  );
  $("bag").textContent = game.phase === "waiting" ? "" : `${game.bag} tiles in the bag`;
  $("watching").textContent = `${yours.watching} connected`;
  $("name").hidden = $("sit").hidden = yours.seat !== null || game.phase === "playing";
  $("start").hidden = yours.seat === null || game.phase === "playing" || game.names.length < 2;
  $("start").textContent = game.phase === "over" ? "Another game" : "Start";
  $("leave").hidden = yours.seat === null || game.phase === "playing";
}

function words() {
  const { open: game, yours } = view;
  if (problem !== "") return problem;
  if (pending !== null) return "…";
  if (game.phase === "waiting") {
    return game.names.length < 2 ? "Two to four players are needed." : "Whoever sits here can start.";
  }
  if (game.phase === "over") {
    const names = game.winners.map((seat) => game.names[seat]).join(" and ");
    return names === "" ? "It is over." : `${names} won.`;
  }
  if (exchanging !== null) return "Choose tiles, then press Exchange again.";
  return game.turn === yours.seat ? "It is your turn." : `It is ${game.names[game.turn]}'s turn.`;
}

function show() {
  const { site } = client.status();
  $("state").textContent = isAway
    ? "Looking for a site that answers"
    : `By way of ${site.id ?? new URL(site.url).host}`;
  if (view === null) return;
  if (!isMyTurn()) exchanging = null;
  showBoard();
  showRack();
  showSide();
  $("says").textContent = isAway ? "The table is moving to another site …" : words();
  $("says").classList.toggle("problem", problem !== "" && !isAway);
  const laid = tiles.some((each) => each.x !== undefined), turn = isMyTurn() && !isAway;
  $("play").disabled = !turn || !laid;
  $("recall").disabled = !laid && exchanging === null;
  $("shuffle").disabled = tiles.length === 0;
  $("exchange").disabled = !turn || (exchanging === null && view.open.bag < 7);
  $("exchange").classList.toggle("main", exchanging !== null && exchanging.size > 0);
  $("pass").disabled = $("resign").disabled = !turn;
}

setInterval(() => {
  if (view?.open.endsMs == null || $("clock") === null) return;
  const leftS = Math.max(0, (view.open.endsMs - view.yours.nowMs - (performance.now() - clockMs)) / 1000);
  $("clock").textContent = `${Math.floor(leftS / 60)}:${String(Math.floor(leftS % 60)).padStart(2, "0")}`;
}, 250);

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

open();
setInterval(links, 1_000);
client.addEventListener("move", show);
