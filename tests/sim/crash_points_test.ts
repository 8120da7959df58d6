/**
 * Crashes wherever a site yields, in small scenarios: each place in the code of the store by which a site yields is
 * tried by the first and the last time that it is passed. `deno task sim --crash-points` tries all times.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { POINTS } from "./crash_points.ts";
import { crashAt, ends, survey } from "./crash_survey.ts";
import { SCENARIOS } from "./scenarios.ts";

/** What the scenarios reach is about a tenth more; where it falls below, a scenario no longer does its work. */
const PLACES_MIN = 155;

const reached = new Set<string>();

for (const scenario of SCENARIOS) {
  Deno.test(`store keeps its guarantees when a site crashes wherever it yields: ${scenario.name}`, async () => {
    for (const place of await survey(scenario, openReplica)) {
      for (const crossing of ends(place)) {
        const violations = await crashAt(scenario, crossing, openReplica);
        deepStrictEqual(
          violations,
          [],
          `deno task sim --crash-points ${scenario.name}/${crossing}: ${place.name}`,
        );
      }
      reached.add(place.name);
    }
  });
}

Deno.test("crashes have hit every kind of point, at hundreds of places", () => {
  const points = POINTS.filter((point) => ![...reached].some((name) => name.includes(`: ${point} `)));
  deepStrictEqual(points, []);
  ok(reached.size >= PLACES_MIN, `${reached.size} places`);
});

Deno.test("store keeps its guarantees when an edge crashes that carried from below a core which lost its disk", async () => {
  // What it waited for was a position in the lost journal, and the new one had reached that number (handoff H10).
  // The crossings are those of the run that showed it.
  const scenario = SCENARIOS.find(({ name }) => name === "resync of a core");
  ok(scenario !== undefined);
  for (const crossing of [506, 527]) {
    deepStrictEqual(await crashAt(scenario, crossing, openReplica), [], `crossing ${crossing}`);
  }
});
