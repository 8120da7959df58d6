/**
 * Time as a stateful session sees it: the clock of its turn, whichever way it is asked.
 *
 * ST1  Nothing here shows the time of the process: where no turn runs (module code) the clock stands still.
 * ST2  Dates that JavaScript makes by itself are replaced too: `constructor`, formatting without a date, Temporal,
 *      files, also those that a form makes.
 */
import type { Current } from "./stateful_current.ts";
import { installForms } from "./stateful_forms.ts";
import type { Intervals } from "./stateful_intervals.ts";

/** Time of module code, in milliseconds: the same wherever it runs. */
const MODULE_MS = Date.UTC(2025, 0, 1);

type Define = (target: object, name: string, value: unknown) => unknown;

/** Replaces clocks and timers. */
export function installTime(current: Current, intervals: Intervals, define: Define): void {
  const nowMs = (): number => current()?.now() ?? MODULE_MS;
  const originMs = (): number => current()?.originMs ?? MODULE_MS;
  installDate(nowMs, define);
  installFormats(nowMs);
  installTemporal(nowMs, define);
  installPerformance(nowMs, originMs, define);
  installFile(nowMs, define);
  installForms(current, nowMs, define);
  installTimers(current, intervals, define);
}

function installDate(nowMs: () => number, define: Define): void {
  const BuiltIn = Date;
  const Recorded = function Date(this: unknown, ...args: unknown[]): unknown {
    if (new.target === undefined) return new BuiltIn(nowMs()).toString();
    return Reflect.construct(BuiltIn, args.length === 0 ? [nowMs()] : args, new.target);
  };
  Object.defineProperty(Recorded, "length", { value: 7 });
  Object.defineProperty(Recorded, "prototype", { value: BuiltIn.prototype, writable: false });
  for (const [name, value] of [["now", nowMs], ["parse", BuiltIn.parse], ["UTC", BuiltIn.UTC]] as const) {
    Object.defineProperty(Recorded, name, { value, writable: true, configurable: true });
  }
  Object.defineProperty(BuiltIn.prototype, "constructor", {
    value: Recorded,
    writable: true,
    configurable: true,
  });
  Object.defineProperty(BuiltIn, "now", { value: nowMs });
  define(globalThis, "Date", Recorded);
}

/** Replaces `format()` and `formatToParts()`, which without a date mean now. */
function installFormats(nowMs: () => number): void {
  const { prototype } = Intl.DateTimeFormat;
  const format = Object.getOwnPropertyDescriptor(prototype, "format")?.get;
  const { formatToParts } = prototype;
  Object.defineProperty(prototype, "format", {
    configurable: true,
    get(this: Intl.DateTimeFormat) {
      const bound = Reflect.apply(format ?? (() => undefined), this, []) as (date?: Date | number) => string;
      return (date?: Date | number) => bound(date ?? nowMs());
    },
  });
  Object.defineProperty(prototype, "formatToParts", {
    configurable: true,
    writable: true,
    value(this: Intl.DateTimeFormat, date?: Date | number) {
      return Reflect.apply(formatToParts, this, [date ?? nowMs()]);
    },
  });
}

interface ZonedLike {
  toPlainDateTime(): unknown;
  toPlainDate(): unknown;
  toPlainTime(): unknown;
}

function installTemporal(nowMs: () => number, define: Define): void {
  const { Temporal } = globalThis as {
    Temporal?: {
      readonly Now: object;
      readonly Instant: {
        fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: unknown): ZonedLike };
      };
    };
  };
  if (Temporal === undefined) return;
  const instant = () => Temporal.Instant.fromEpochMilliseconds(nowMs());
  const zoned = (zone: unknown = "UTC") => instant().toZonedDateTimeISO(zone);
  define(Temporal.Now, "instant", instant);
  define(Temporal.Now, "timeZoneId", () => "UTC");
  define(Temporal.Now, "zonedDateTimeISO", zoned);
  define(Temporal.Now, "plainDateTimeISO", (zone?: unknown) => zoned(zone).toPlainDateTime());
  define(Temporal.Now, "plainDateISO", (zone?: unknown) => zoned(zone).toPlainDate());
  define(Temporal.Now, "plainTimeISO", (zone?: unknown) => zoned(zone).toPlainTime());
}

function installPerformance(nowMs: () => number, originMs: () => number, define: Define): void {
  const { prototype } = Performance;
  const { mark, measure, clearMarks, clearMeasures } = prototype;
  const sinceOrigin = () => nowMs() - originMs();
  define(prototype, "now", sinceOrigin);
  Object.defineProperty(prototype, "timeOrigin", { configurable: true, get: originMs });
  define(prototype, "toJSON", () => ({ timeOrigin: originMs() }));
  // An entry is the session's; the list of entries would be that of all in this isolate.
  define(prototype, "mark", function (this: Performance, name: string, options: PerformanceMarkOptions = {}) {
    const entry = Reflect.apply(mark, this, [name, { startTime: sinceOrigin(), ...options }]);
    Reflect.apply(clearMarks, this, [name]);
    return entry;
  });
  define(
    prototype,
    "measure",
    function (this: Performance, name: string, options: PerformanceMeasureOptions = {}) {
      if (typeof options !== "object") {
        throw new TypeError(
          "performance.measure in a stateful session takes { start, end }: it keeps no marks",
        );
      }
      const span = { start: 0, end: sinceOrigin(), ...options };
      const entry = Reflect.apply(measure, this, [name, span]);
      Reflect.apply(clearMeasures, this, [name]);
      return entry;
    },
  );
  // As `mark` without its list.
  const BuiltIn = PerformanceMark;
  define(
    globalThis,
    "PerformanceMark",
    new Proxy(BuiltIn, {
      construct: (target, [name, options = {}], newTarget) =>
        Reflect.construct(target, [name, { startTime: sinceOrigin(), ...Object(options) }], newTarget),
    }),
  );
  define(BuiltIn.prototype, "constructor", globalThis.PerformanceMark);
  for (const name of ["getEntries", "getEntriesByName", "getEntriesByType"]) {
    define(prototype, name, () => []);
  }
}

function installFile(nowMs: () => number, define: Define): void {
  const construct = (target: typeof File, args: unknown[], newTarget: unknown): object => {
    const [bits, name, options] = args as [BlobPart[], string, FilePropertyBag | undefined];
    return Reflect.construct(target, [bits, name, { lastModified: nowMs(), ...options }], newTarget as never);
  };
  const BuiltIn = File;
  define(globalThis, "File", new Proxy(BuiltIn, { construct }));
  define(BuiltIn.prototype, "constructor", globalThis.File);
}

function installTimers(current: Current, intervals: Intervals, define: Define): void {
  const programOf = (what: string) => {
    const program = current();
    if (program === undefined) throw new TypeError(`${what} works in a handler, not while a module loads`);
    return program;
  };
  const bound = (callback: unknown, args: unknown[]): () => void => {
    if (typeof callback !== "function") throw new TypeError("a timer takes a function");
    return () => void Reflect.apply(callback, undefined, args);
  };
  const set = (callback: unknown, ms: unknown, args: unknown[]): number => {
    const run = bound(callback, args);
    return programOf("a timer").setLocal(Number(ms ?? 0), run);
  };
  const clear = (timer: unknown): void => {
    const program = current();
    if (program === undefined || intervals.clear(program, Number(timer))) return;
    program.clearLocal(Number(timer));
  };
  define(
    globalThis,
    "setTimeout",
    (callback: unknown, ms?: unknown, ...args: unknown[]) => set(callback, ms, args),
  );
  define(globalThis, "setImmediate", (callback: unknown, ...args: unknown[]) => set(callback, 0, args));
  define(globalThis, "clearTimeout", (timer: unknown) => clear(timer));
  define(globalThis, "clearImmediate", (timer: unknown) => clear(timer));
  define(globalThis, "clearInterval", (timer: unknown) => clear(timer));
  define(globalThis, "setInterval", (callback: unknown, ms?: unknown, ...args: unknown[]) => {
    const run = bound(callback, args);
    return intervals.set(programOf("setInterval"), Number(ms ?? 0), run);
  });
  define(AbortSignal, "timeout", (ms: number): AbortSignal => {
    const controller = new AbortController();
    programOf("AbortSignal.timeout").setLocal(ms, () => {
      controller.abort(new DOMException("Signal timed out.", "TimeoutError"));
    });
    return controller.signal;
  });
}
