/** All checkers over one history, beside one trail. */
import { DisksCheck } from "./check_disks.ts";
import { SessionCheck } from "./check_sessions.ts";
import { SitesCheck } from "./check_sites.ts";
import type { Excused } from "./excuses.ts";
import type { History, Violation } from "./history.ts";
import { Trail } from "./trail.ts";

/**
 * All that is wrong with a history.
 *
 * @param excused hears each time that something is let pass.
 */
export function checkHistory(history: History, excused: Excused): Violation[] {
  const trail = new Trail(history);
  const sessions = new SessionCheck(trail, excused), sites = new SitesCheck(trail, excused);
  const disks = new DisksCheck(trail, excused);
  for (const event of history.events) {
    sessions.before(event);
    sites.before(event);
    disks.before(event);
    trail.step(event);
    sites.after(event);
  }
  sites.end();
  return [...sessions.violations, ...sites.violations, ...disks.violations];
}
