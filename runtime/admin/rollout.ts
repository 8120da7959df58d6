/** Gradual rollouts: their state, a change of the weight, the end. The weight is per cent of the sessions. */
import { parseWeight, WEIGHT_MAX } from "../deploy/rollout.ts";
import { problemResponse } from "../gateway/problem.ts";
import { changing } from "./deploy.ts";
import { type AdminHono, type AdminServices, unknownApp } from "./services.ts";

/** Adds `/apps/:app/rollout`, `…/finish` and `…/abort`. */
export function rolloutRoutes(app: AdminHono, services: AdminServices): void {
  app.get("/apps/:app/rollout", (c) => {
    const live = services.apps.get(c.req.param("app"));
    if (live === undefined) return unknownApp(c.req.param("app"));
    const { name, record: { current, rollout = null } } = live;
    return c.json({ app: name, current, rollout });
  });
  app.post("/apps/:app/rollout", async (c) => {
    const weight = parseWeight(c.req.query("weight") ?? "");
    if (weight === null) return badWeight(c.req.query("weight"));
    const { app: name } = c.req.param();
    return await changing(services, c, (to) => to.rollout(name, c.req.query("version") ?? "", weight));
  });
  for (const how of ["finish", "abort"] as const) {
    app.post(
      `/apps/:app/rollout/${how}`,
      (c) => changing(services, c, (deployments) => deployments.endRollout(c.req.param("app"), how)),
    );
  }
}

/** Returns the refusal of a text that is no weight. */
export const badWeight = (text: string | undefined): Response =>
  problemResponse(
    "query_invalid",
    `a weight is a number from 0 to ${WEIGHT_MAX} with at most two decimals, not ${
      JSON.stringify(text ?? "")
    }`,
  );
