/**
 * A camera: sends frames to a site, from files or of a street that does not exist, and prints what moves.
 *
 *     deno run -A examples/motion/camera.ts --to URL[,URL…] [--frames 300] [--size 768x576] [--seed 1] [--fps N] [FILE.pgm …]
 *
 * A frame that was not answered is sent again, to the next of the sites: it has a key, and is counted once.
 */
import { writePgm } from "./pgm.ts";
import { Scene } from "./scene.ts";

function option(args: readonly string[], name: string, otherwise: string): string {
  const at = args.indexOf(`--${name}`);
  return at < 0 ? otherwise : args[at + 1] ?? otherwise;
}

/** What has been read off the command line. @throws TypeError. */
export function cameraOptions(args: readonly string[]) {
  const number = (name: string, otherwise: number) => {
    const value = Number(option(args, name, `${otherwise}`));
    if (Number.isInteger(value) && value >= 0) return value;
    throw new TypeError(`--${name} takes a whole number, not ${option(args, name, "")}`);
  };
  const [, width, height] = /^(\d{1,4})x(\d{1,4})$/.exec(option(args, "size", "768x576")) ?? [];
  if (width === undefined) {
    throw new TypeError(`--size takes 768x576 or the like, not ${option(args, "size", "")}`);
  }
  const to = option(args, "to", "http://localhost:8003/motion/cameras/gate").split(",");
  const files = args.filter((arg) => arg.endsWith(".pgm"));
  return {
    ...{ to, files, frames: number("frames", 300), seed: number("seed", 1), fps: number("fps", 0) },
    size: { width: Number(width), height: Number(height) },
  };
}

/** The try at which it is said that none was answered: some two seconds, which a site that was killed takes. */
const SAID_AT = 8;

/**
 * Sends one frame until it is answered. Where nothing is known of what became of it, it is sent again with the same key;
 * after a 502 it was not counted, and this is told to whoever asks with that key: it has another one then.
 */
export async function sendFrame(
  to: readonly string[],
  pgm: Uint8Array<ArrayBuffer>,
  key: string,
): Promise<unknown> {
  let failed = 0;
  for (let tries = 0;; tries++) {
    const url = to[tries % to.length] ?? "";
    const headers = { "idempotency-key": `${key}-${failed}` };
    const answer = await fetch(url, { method: "POST", body: pgm, headers }).catch(() => null);
    if (answer?.ok) return await answer.json();
    const text = await answer?.text();
    if (tries === SAID_AT) console.error(`${url}: ${answer === null ? "no answer" : text}; trying on`);
    if (answer !== null && answer.status < 500) throw new Error(`${url}: ${answer.status} ${text}`);
    if (answer?.status === 502) failed++;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function optionsOrExit(): ReturnType<typeof cameraOptions> {
  try {
    return cameraOptions(Deno.args);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(2);
  }
}

if (import.meta.main) {
  const { to, files, frames, seed, size, fps } = optionsOrExit();
  const scene = new Scene(size, { seed, movers: 3 });
  const count = files.length > 0 ? files.length : frames;
  const begun = performance.now(), run = crypto.randomUUID();
  for (let i = 0; i < count; i++) {
    const file = files[i];
    const pgm = file === undefined ? writePgm(scene.frame(i)) : await Deno.readFile(file);
    const seen = await sendFrame(to, pgm, `${run}-${i}`) as {
      frame: number;
      background: number;
      boxes: { x: number; y: number; width: number; height: number }[];
    };
    const boxes = seen.boxes.map(({ x, y, width, height }) => `${width}×${height}+${x}+${y}`).join(" ");
    console.log(`frame ${seen.frame}, background of ${seen.background}: ${boxes || "nothing"}`);
    const dueMs = fps === 0 ? 0 : begun + ((i + 1) * 1000) / fps - performance.now();
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
  }
  console.log(`${count} frames in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}
