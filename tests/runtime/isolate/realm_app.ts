/** An app whose stateful sessions say what they can reach: all built-in modules are there. */
import * as m0 from "node:assert";
import * as m1 from "node:assert/strict";
import * as m2 from "node:async_hooks";
import * as m3 from "node:buffer";
import * as m4 from "node:crypto";
import * as m5 from "node:diagnostics_channel";
import * as m6 from "node:events";
import * as m7 from "node:path";
import * as m8 from "node:path/posix";
import * as m9 from "node:path/win32";
import * as m10 from "node:querystring";
import * as m11 from "node:stream";
import * as m12 from "node:stream/consumers";
import * as m13 from "node:stream/promises";
import * as m14 from "node:stream/web";
import * as m15 from "node:string_decoder";
import * as m16 from "node:timers";
import * as m17 from "node:timers/promises";
import * as m18 from "node:url";
import * as m19 from "node:util";
import * as m20 from "node:util/types";
import * as m21 from "node:zlib";
import { defineApp, Session } from "sojourn";
import { memberAt, sourcesOf, walkRealm } from "./realm_walk.ts";

/** The modules by their names. */
const modules = {
  "node:assert": m0,
  "node:assert/strict": m1,
  "node:async_hooks": m2,
  "node:buffer": m3,
  "node:crypto": m4,
  "node:diagnostics_channel": m5,
  "node:events": m6,
  "node:path": m7,
  "node:path/posix": m8,
  "node:path/win32": m9,
  "node:querystring": m10,
  "node:stream": m11,
  "node:stream/consumers": m12,
  "node:stream/promises": m13,
  "node:stream/web": m14,
  "node:string_decoder": m15,
  "node:timers": m16,
  "node:timers/promises": m17,
  "node:url": m18,
  "node:util": m19,
  "node:util/types": m20,
  "node:zlib": m21,
};

class Realm extends Session {
  paths(globals: readonly string[]): string[] {
    return walkRealm(globals, modules);
  }

  sources(paths: readonly string[]): string[] {
    return sourcesOf(paths, modules);
  }

  /** Those of groups of paths that do not lead to one and the same object. */
  apart(groups: readonly (readonly string[])[]): string[][] {
    const value = (path: string) => memberAt(path, modules).value;
    return groups.filter(([first = "", ...more]) => more.some((path) => value(path) !== value(first)))
      .map((group) => [...group]);
  }

  /** What comes of a call of each without arguments: the message of what is thrown at once. */
  refusals(paths: readonly string[]): string[] {
    return paths.map((path) => {
      try {
        const { owner, value } = memberAt(path, modules);
        if (value === undefined) return "not there";
        const result: unknown = typeof value === "function" ? Reflect.apply(value, owner, []) : value;
        return `gives ${typeof result}`;
      } catch (error) {
        return String(Object(error).message);
      }
    });
  }
}

export default defineApp({ sessions: { realm: Realm }, fetch: () => new Response() });
