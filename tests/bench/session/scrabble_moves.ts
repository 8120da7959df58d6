/**
 * In a process of its own: games of scrabble, move by move, by the class alone and by the class in the executor. The same
 * words are parsed, checked and told in both; what the executor adds is the log, outputs and checkpoints.
 */
import { Table } from "../../../examples/scrabble/game.ts";
import type { View } from "../../../examples/scrabble/messages.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { made } from "../../examples/games/made.ts";
import { wish } from "../../examples/games/scrabble_bot.ts";
import { Draws } from "../../sim/random.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { Solo } from "../../functions/sessions/turn/solo.ts";
import { freshAnswer, freshInput } from "../fresh.ts";

const text = new TextDecoder();
const sit = (name: string) => JSON.stringify({ kind: "sit", key: `key of ${name}`, name });
const START = JSON.stringify({ kind: "start" });

interface Peer {
  readonly id: string;
  readonly kind: "client";
  send(message: string | Uint8Array): void;
  close(): void;
}

/** One who plays both, on whatever table: says who says what, until the game is over. Only `say` is timed. */
function game(
  draws: Draws,
  say: (peer: string, message: string) => void,
  views: Map<string, View>,
): { us: number; moves: number } {
  const spent = { us: 0, moves: 0 };
  for (let turn = 0; turn < 200; turn++) {
    const playing = ["a", "b"].map((id) => ({ id, view: views.get(id) })).find(({ view }) =>
      view !== undefined && view.open.phase === "playing" && view.open.turn === view.yours.seat
    );
    if (playing?.view === undefined) break;
    const message = JSON.stringify(wish(playing.view, draws));
    const begun = performance.now();
    say(playing.id, message);
    spent.us += (performance.now() - begun) * 1000;
    spent.moves++;
  }
  return spent;
}

const heard = (views: Map<string, View>, id: string, words: string) => {
  const view = JSON.parse(words) as View;
  if (view.kind === "view") views.set(id, view);
};

function alone(seed: string) {
  const views = new Map<string, View>(), told = new Map<string, string>();
  const peers = ["a", "b"].map((id): Peer => ({
    id,
    kind: "client",
    send: (words) => void told.set(id, String(words)),
    close: () => {},
  }));
  const table = made(() => new Table(), {}, () => peers);
  const say = (id: string, message: string) => {
    const peer = peers.find((each) => each.id === id);
    if (peer !== undefined) table.onMessage(message, peer as never);
  };
  for (const { id } of peers) say(id, sit(id));
  say("a", START);
  const listen = () => told.forEach((words, id) => heard(views, id, words));
  listen();
  return game(new Draws(seed), (id, message) => {
    say(id, message);
    listen();
  }, views);
}

function inSession(seed: string) {
  const views = new Map<string, View>();
  const solo = new Solo(Table as unknown as new () => SessionObject).open({
    seed: new Uint8Array(32).fill(seed.length),
  });
  let outBytes = 0, logBytes = 0;
  const listen = () => {
    const out: Record<string, number> = {};
    for (const { outputs, entries } of solo.commits.splice(0)) {
      logBytes += entries.length;
      for (const { to, sequence, bytes } of outputs) {
        outBytes += bytes.length;
        out[to] = sequence;
        heard(views, to, text.decode(bytes.subarray(1)));
      }
    }
    solo.checkpoints.length = 0;
    solo.loop.acknowledge(1, { outputs: out, effects: 0 });
    solo.run();
  };
  for (const id of ["a", "b"]) {
    solo.deliver({ kind: "attach", peer: { kind: "client", id } });
    solo.deliver({ kind: "message", peer: id, message: sit(id) });
  }
  solo.deliver({ kind: "message", peer: "a", message: START });
  listen();
  [outBytes, logBytes] = [0, 0];
  const spent = game(new Draws(seed), (id, message) => {
    solo.deliver({ kind: "message", peer: id, message });
    listen();
  }, views);
  if (solo.parked !== null) throw new Error(solo.parked.message);
  return { ...spent, outBytes, logBytes };
}

const games = Number(freshInput());
freshAnswer(
  await inMacrotask(() => {
    const sums = { without: 0, moves: 0, within: 0, played: 0, logBytes: 0, outBytes: 0 };
    // The first games are for the compiler.
    for (let i = -2; i < games; i++) {
      const bare = alone(`game ${i}`), full = inSession(`game ${i}`);
      if (i < 0) continue;
      sums.without += bare.us;
      sums.moves += bare.moves;
      sums.within += full.us;
      sums.played += full.moves;
      sums.logBytes += full.logBytes;
      sums.outBytes += full.outBytes;
    }
    return {
      ...{ without: sums.without / sums.moves, within: sums.within / sums.played },
      ...{ logBytes: sums.logBytes / sums.played, outBytes: sums.outBytes / sums.played },
    };
  }),
);
