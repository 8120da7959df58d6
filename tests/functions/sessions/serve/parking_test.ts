/** Sessions that stand still, as a site knows them (functions/sessions/serve/parking.ts). */
import { strict as assert } from "node:assert";
import { Parking, type ParkingPorts } from "../../../../functions/sessions/serve/parking.ts";
import type { ParkedReport } from "../../../../functions/sessions/serve/ports.ts";

const name = (app: string, id: string) => ({ app, class: "card", id });
const report = (version: string, site: string): ParkedReport => ({
  ...{ code: "diverged", message: "m", detail: {}, version, site, atMs: 1 },
});

Deno.test("a report counts for the version that serves, and for no other, nor where none does (parked_table.ts PT2)", () => {
  const reports = [
    { name: name("shop", "a"), report: report("v1", "edge-1") },
    { name: name("shop", "b"), report: report("v2", "edge-1") },
    { name: name("shop", "c"), report: report("v2", "edge-2") },
    { name: name("gone", "a"), report: report("v2", "edge-1") },
  ];
  let serves = "v1";
  const ports: Partial<ParkingPorts> = {
    site: "edge-1",
    parked: {
      get: ({ app, id }: { app: string; id: string }) =>
        reports.find(({ name }) => name.app === app && name.id === id)?.report ?? null,
      all: () => reports,
    } as unknown as ParkingPorts["parked"],
    apps: {
      get: (app: string) => app === "shop" ? { current: { version: serves } } : undefined,
    } as unknown as ParkingPorts["apps"],
  };
  const parking = new Parking(ports as ParkingPorts, () => false);
  const known = () => ({
    still: reports.filter(({ name }) => parking.why(name) !== null).map(({ name }) =>
      `${name.app} ${name.id}`
    ),
    reported: [...parking.reported()].map(({ app, id }) => `${app} ${id}`),
  });
  assert.deepEqual(known(), { still: ["shop a"], reported: ["shop a"] });
  assert.equal(parking.why(name("shop", "a")), "diverged: m");
  serves = "v2";
  assert.deepEqual(known(), { still: ["shop b", "shop c"], reported: ["shop b"] });
});
