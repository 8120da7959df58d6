/**
 * A camera of examples/motion whose site is killed between two of its frames, and while one is on its way.
 *
 * M1  Frames are counted one after the other, each once, whichever site is asked.
 * M2  The background is what it was: what moves is found at once at the next site.
 */
import { strict as assert } from "node:assert";
import { sendFrame } from "../../examples/motion/camera.ts";
import { writePgm } from "../../examples/motion/pgm.ts";
import { Scene } from "../../examples/motion/scene.ts";
import type { TestCluster } from "./cluster.ts";

interface Seen {
  readonly frame: number;
  readonly background: number;
  readonly boxes: readonly { readonly x: number; readonly width: number }[];
}

const SMALL = { width: 192, height: 144 };
const FULL = { width: 768, height: 576 };

/** Walks the example over a cluster with f = 1 at its edges. */
export async function walkMotion(cluster: TestCluster): Promise<void> {
  const to = (camera: string, ...sites: string[]) =>
    sites.map((site) => `${cluster.url(site)}/motion/cameras/${camera}`);
  const scene = new Scene(SMALL, { seed: 4, movers: 2 });
  const look = async (i: number, ...sites: string[]) =>
    await sendFrame(to("gate", ...sites), writePgm(scene.frame(i)), `f${i}`) as Seen;
  let background = 0;
  for (let i = 0; i < 60; i++) {
    const seen = await look(i, "edge-1");
    assert.equal(seen.frame, i + 1); // M1
    background = seen.background;
  }
  const sending = look(60, "edge-1", "edge-2", "edge-3");
  await cluster.control("kill", "edge-1");
  assert.equal((await sending).frame, 61); // M1
  const seen = await look(61, "edge-2", "edge-3");
  assert.deepEqual([seen.frame, seen.background >= background], [62, true]); // M1, M2
  assert.ok(seen.boxes.length > 0 && seen.boxes.length <= 6, JSON.stringify(seen)); // M2
  assert.deepEqual(await look(61, "edge-3", "edge-2"), seen, "sent again, it is answered as it was");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  // One of the paper's size: it fits a request, and the time that a handler has.
  const full = await sendFrame(
    to("wide", "edge-1"),
    writePgm(new Scene(FULL, { seed: 1, movers: 1 }).frame(0)),
    "w",
  );
  assert.equal((full as Seen).frame, 1);
}
