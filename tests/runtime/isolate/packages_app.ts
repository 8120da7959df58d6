// deno-lint-ignore-file no-import-prefix -- packages that only this test needs
/** Sessions that draw from packages which count in variables of their modules, of closures, in statics and objects. */
import { defineApp, type EnvOf, Session } from "sojourn";
import { createId } from "npm:@paralleldrive/cuid2@2.2.2";
import { ObjectId } from "npm:bson@6.10.1";
import { Body } from "npm:cannon-es@0.20.0";
import lodash from "npm:lodash@4.17.21";
import { DateTime } from "npm:luxon@3.7.2";
import matter from "npm:matter-js@0.20.0";
import { monotonicFactory } from "npm:ulid@2.3.0";
import { v1, v6, v7 } from "npm:uuid@11.1.0";

type Env = EnvOf<Record<never, never>, { probe: Probe }>;

const ulid = monotonicFactory();

const DRAWS: Readonly<Record<string, () => unknown>> = {
  uuid: () => v7() + v1() + v6(),
  uniqueId: () => lodash.uniqueId("x"),
  ulid: () => ulid(),
  objectId: () => new ObjectId().toHexString(),
  cuid: () => createId(),
  matter: () => matter.Common.nextId(),
  cannon: () => new Body().id,
  luxon: () => {
    const berlin = DateTime.fromMillis(0, { zone: "Europe/Berlin" }).toLocaleString(DateTime.DATETIME_FULL);
    return [berlin, DateTime.now().setZone("Asia/Tokyo").toISO()];
  },
};

export class Probe extends Session<Env> {
  drawn: unknown[] = [];

  /** One before it waits, one behind. */
  async draw(name: string): Promise<unknown[]> {
    const first = DRAWS[name]?.();
    await new Promise((resolve) => setTimeout(resolve, 1));
    const got = [first, DRAWS[name]?.()];
    this.drawn.push(...got);
    return got;
  }
}

export default defineApp({ sessions: { probe: Probe }, fetch: () => new Response() });
