/**
 * Motion: what moves before a camera, by subtracting the background. A camera is a stateful session that holds the frames
 * of its last minutes, at the site next to it; when that is lost, another goes on with the background that it had.
 */
import { defineApp, type EnvOf } from "sojourn";
import { Hono } from "hono";
import { Camera, resources } from "./camera_session.ts";

type Env = EnvOf<typeof resources, { camera: Camera }>;

const http = new Hono<{ Bindings: Env }>();

const CAMERA = /^[a-z0-9-]{1,40}$/;

/** `POST` a frame, `GET` what is known of the camera. */
http.on(["GET", "POST"], "/cameras/:camera", async (c) => {
  const camera = c.req.param("camera");
  if (CAMERA.test(camera)) return await c.env.sessions.camera.get(camera).fetch(c.req.raw);
  return c.json({ problem: "a camera's name is made of a-z, 0-9 and -, at most 40 of them" }, 404);
});

export default defineApp({ name: "motion", ...resources, sessions: { camera: Camera }, fetch: http.fetch });
