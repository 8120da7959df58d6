/** Motion: what a camera's session finds in frames of a street that does not exist. */
import assert from "node:assert/strict";
import { cameraOptions } from "../../../examples/motion/camera.ts";
import { Camera, type Seen } from "../../../examples/motion/camera_session.ts";
import { type Box, boxesOf, inFront } from "../../../examples/motion/detect.ts";
import { readPgm, writePbm, writePgm } from "../../../examples/motion/pgm.ts";
import { type Mover, Scene } from "../../../examples/motion/scene.ts";
import { SessionState } from "../../../functions/tracked/mod.ts";
import { made } from "./made.ts";

const camera = (vars: Record<string, string>) => made(() => new Camera(), { vars });
const SMALL = { width: 192, height: 144 };

/** Share of their union that two have in common. */
function overlap(box: Box, mover: Mover, { width }: { width: number }): number {
  const left = Math.max(0, mover.x), right = Math.min(width, mover.x + mover.width);
  const [w, h] = [
    Math.min(box.x + box.width, right) - Math.max(box.x, left),
    Math.min(box.y + box.height, mover.y + mover.height) - Math.max(box.y, mover.y),
  ];
  const common = Math.max(0, w) * Math.max(0, h);
  return common / (box.width * box.height + (right - left) * mover.height - common);
}

/** Held against what does move: all of it is found that is well in the picture, and nothing else is. */
function judge(
  seen: Seen,
  movers: readonly Mover[],
  size: { width: number },
): { found: number; there: number } {
  const inPicture = movers.filter(({ x, width }) => x + width > 0 && x < size.width);
  const whole = inPicture.filter(({ x, width }) => x >= 0 && x + width <= size.width);
  const found = whole.filter((mover) => seen.boxes.some((box) => overlap(box, mover, size) > 0.6));
  for (const box of seen.boxes) {
    assert.ok(
      inPicture.some((mover) => overlap(box, mover, size) > 0.1),
      `frame ${seen.frame}: nothing is at ${JSON.stringify(box)}`,
    );
  }
  return { found: found.length, there: whole.length };
}

Deno.test("a camera finds what moves, where it is, and nothing that only flickers", () => {
  const scene = new Scene(SMALL, { seed: 4, movers: 3 });
  const one = camera({ DEPTH: "30", EVERY: "3" });
  const all = { found: 0, there: 0 };
  for (let i = 0; i < 240; i++) {
    const seen = one.look(writePgm(scene.frame(i)));
    assert.equal(seen.frame, i + 1);
    if (seen.background < 30) continue;
    const { found, there } = judge(seen, scene.moversAt(i), SMALL);
    all.found += found;
    all.there += there;
  }
  assert.ok(all.there > 150 && all.found > 0.97 * all.there, JSON.stringify(all));
});

Deno.test("what has come to stand still becomes background, and what leaves is not seen for long", () => {
  const { width, height } = SMALL;
  const picture = (grey: number) => {
    const pixels = new Uint8Array(width * height).fill(100);
    for (let y = 40; y < 80; y++) pixels.fill(grey, y * width + 50, y * width + 90);
    return writePgm({ width, height, pixels });
  };
  const one = camera({ DEPTH: "10", EVERY: "1" });
  const boxes = (grey: number, frames: number) =>
    Array.from({ length: frames }, () => one.look(picture(grey)).boxes.length);
  boxes(100, 12);
  const [parked = [], gone = []] = [boxes(180, 14), boxes(100, 14)];
  assert.deepEqual([parked[0], parked.at(-1), gone[0], gone.at(-1)], [1, 0, 1, 0]);
});

Deno.test("the sum is the frames in the ring added up, also from a checkpoint of it", () => {
  const scene = new Scene({ width: 64, height: 48 }, { seed: 9, movers: 1 });
  let one = camera({ DEPTH: "5", EVERY: "2" });
  let state = new SessionState(one);
  const segments: Uint8Array[] = [];
  for (let i = 0; i < 37; i++) {
    one.look(writePgm(scene.frame(i)));
    segments.push(state.checkpoint());
    if (i % 7 === 6) { // another isolate goes on
      one = camera({ DEPTH: "5", EVERY: "2" });
      state = new SessionState(one);
      state.load(...segments as [Uint8Array]);
    }
    const sum = new Uint16Array(64 * 48);
    for (const frame of one.ring) [...frame].forEach((pixel, at) => sum[at] = (sum[at] ?? 0) + pixel);
    assert.deepEqual(new Uint16Array(one.sum.slice().buffer), sum);
  }
  assert.deepEqual([one.frames, one.learned, one.ring.length], [37, 19, 5]);
});

Deno.test("a frame that does not go into the background is some numbers of a checkpoint", () => {
  const scene = new Scene(SMALL, { seed: 1, movers: 1 });
  const one = camera({ DEPTH: "20", EVERY: "4" });
  const state = new SessionState(one);
  const bytes: number[] = [];
  for (let i = 0; i < 100; i++) {
    one.look(writePgm(scene.frame(i)));
    bytes.push(state.checkpoint().length);
  }
  const pixels = SMALL.width * SMALL.height;
  const late = bytes.slice(84);
  for (const [i, each] of late.entries()) {
    assert.ok(i % 4 === 0 ? each >= 3 * pixels && each < 3.1 * pixels : each < 1_000, `${i}: ${each}`);
  }
});

Deno.test("what is no frame of a camera is refused and changes nothing; one with a key counts once", async () => {
  const one = camera({ DEPTH: "5", EVERY: "1" });
  const ask = async (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}, query = "") => {
    const answer = await one.fetch(
      new Request(`http://motion/cameras/a${query}`, { method: "POST", body, headers }),
    );
    return { status: answer.status, body: await answer.text() };
  };
  const frame = (width: number, height: number) =>
    writePgm({ width, height, pixels: new Uint8Array(width * height) });
  for (const bad of ["", "P5", "P2 1 1 255\n0", "P5 2 2 65535\n...."]) {
    assert.equal((await ask(new TextEncoder().encode(bad))).status, 400, bad);
  }
  assert.match((await ask(frame(64, 48).slice(0, -1))).body, /has 3072 pixels, not 3071/);
  assert.match((await ask(frame(1000, 600))).body, /at most 442368 pixels/);
  assert.deepEqual([one.size, one.frames, one.ring.length], [null, 0, 0]);
  const first = await ask(frame(64, 48), { "idempotency-key": "k1" });
  assert.deepEqual(await ask(frame(64, 48), { "idempotency-key": "k1" }), first);
  assert.equal(one.frames, 1);
  assert.match((await ask(frame(32, 48))).body, /are of 64 × 48, not 32 × 48/);
  assert.equal((await ask(frame(64, 48), {}, "?mask")).body.slice(0, 8), "P4 64 48");
  const known = await one.fetch(new Request("http://motion/cameras/a"));
  assert.deepEqual(await known.json(), {
    size: { width: 64, height: 48 },
    frames: 2,
    background: 2,
    stateBytes: 4 * 64 * 48,
  });
});

Deno.test("pictures are read as they are written; masks are bits, and boxes have their bounds", () => {
  const picture = { width: 3, height: 2, pixels: Uint8Array.of(1, 2, 3, 4, 5, 255) };
  assert.deepEqual(readPgm(writePgm(picture)), { ...picture });
  assert.equal(readPgm(new TextEncoder().encode("P5\n# from a file\n1 1\n255\nx")).pixels[0], 120);
  const mask = inFront(Uint8Array.of(10, 60, 40), Uint16Array.of(20, 60, 20), 2);
  assert.deepEqual([...mask], [0, 1, 1]);
  assert.deepEqual([...writePbm(mask, { width: 3, height: 1 })].at(-1), 0b01100000);
  const size = { width: 64, height: 64 };
  const two = new Uint8Array(64 * 64);
  for (let y = 10; y < 30; y++) two.fill(1, y * 64 + 5, y * 64 + 21);
  for (let y = 40; y < 60; y++) two.fill(1, y * 64 + 40, y * 64 + 60);
  two[64 * 5 + 50] = 1; // noise
  assert.deepEqual(boxesOf(two, size), [
    { x: 40, y: 40, width: 20, height: 20, pixels: 400 },
    { x: 5, y: 10, width: 16, height: 20, pixels: 320 },
  ]);
});

Deno.test("the camera's command says what it can't take", () => {
  assert.deepEqual(cameraOptions(["--to", "http://a,http://b", "--frames", "5"]).to, [
    "http://a",
    "http://b",
  ]);
  assert.throws(() => cameraOptions(["--frames", "x"]), /--frames takes a whole number, not x/);
  assert.throws(() => cameraOptions(["--size", "7"]), /--size takes 768x576/);
});

Deno.test("a background of 120 frames of 768 × 576 is 54 MB, and one frame more is 1.3 MB of a checkpoint", () => {
  const size = { width: 768, height: 576 }, pixels = 768 * 576;
  const scene = new Scene(size, { seed: 2, movers: 2 });
  // A few pictures over and over: it is their number that counts here.
  const pictures = Array.from({ length: 4 }, (_, i) => writePgm(scene.frame(40 * i)));
  const one = camera({ DEPTH: "120", EVERY: "1" });
  const state = new SessionState(one);
  for (let i = 0; i < 120; i++) one.look(pictures[i % 4] ?? new Uint8Array());
  const segments = [state.checkpoint()];
  assert.ok((segments[0]?.length ?? 0) >= 122 * pixels);
  const seen = one.look(pictures[0] ?? new Uint8Array());
  segments.push(state.checkpoint());
  assert.ok((segments[1]?.length ?? 0) < 3.1 * pixels, `${segments[1]?.length}`);
  const next = camera({ DEPTH: "120", EVERY: "1" });
  new SessionState(next).load(...segments);
  assert.deepEqual([next.frames, next.learned, seen.background], [121, 121, 120]);
  assert.deepEqual(next.look(pictures[1] ?? new Uint8Array()), one.look(pictures[1] ?? new Uint8Array()));
});
