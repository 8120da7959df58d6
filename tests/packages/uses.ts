/** What packages of many kinds are used for: each makes the same of it in a stateful session as anywhere. */
import addFormats from "ajv-formats";
import { Ajv } from "ajv";
import asyncLibrary from "async";
import bluebird from "bluebird";
import { format, formatDistance } from "date-fns";
import { Array as Lists, Effect, HashMap, Option, Ref, Schedule, Schema } from "effect";
import { EventEmitter } from "eventemitter3";
import Handlebars from "handlebars";
import i18next from "i18next";
import { enableMapSet, produce } from "immer";
import Joi from "joi";
import { LRUCache } from "lru-cache";
import { autorun, makeAutoObservable, observable } from "mobx";
import moment from "moment";
import PQueue from "p-queue";
import qs from "qs";
import { concatMap, delay, firstValueFrom, lastValueFrom, of, timer, toArray } from "rxjs";
import semver from "semver";
import { assign, createActor, createMachine } from "xstate";
import * as Y from "yjs";

enableMapSet();

const machine = createMachine({
  id: "t",
  initial: "a",
  context: { n: 0 },
  states: {
    a: { on: { GO: { target: "b", actions: assign({ n: ({ context }) => context.n + 1 }) } } },
    b: { after: { 2: "c" } },
    c: { type: "final" },
  },
});

class Counted {
  n = 1;
  all: number[] = [];
  constructor() {
    makeAutoObservable(this);
  }
  get double(): number {
    return this.n * 2;
  }
  more(): void {
    this.n++;
    this.all.push(this.n);
  }
}

// With the first object of a class mobx writes on its prototype what it found there, which no session could.
new Counted();

/** By the packages' names. */
export const USES: Readonly<Record<string, () => unknown>> = {
  ajv: () => {
    const ajv = new Ajv({ allErrors: true });
    // Of a CommonJS module, whose types say otherwise.
    (addFormats as unknown as (to: Ajv) => void)(ajv);
    const check = ajv.compile({
      type: "object",
      properties: { a: { type: "integer", minimum: 1 }, e: { type: "string", format: "email" } },
      required: ["a"],
    });
    return [
      check({ a: 1, e: "a@b.de" }),
      check({ a: 0, e: "x" }),
      check.errors?.map(({ message }) => message),
    ];
  },
  async: () => asyncLibrary.mapLimit([1, 2, 3], 2, async (n: number) => await n * 2),
  bluebird: async () => [
    await bluebird.map([1, 2, 3], (n: number) => n * 2, { concurrency: 1 }),
    await bluebird.delay(1, "x"),
  ],
  "date-fns": () => {
    const day = new Date(2024, 1, 28);
    return [format(day, "yyyy-MM-dd"), formatDistance(day, new Date(2024, 3, 8))];
  },
  effect: async () => {
    const work = Effect.gen(function* () {
      const ref = yield* Ref.make(0);
      yield* Ref.update(ref, (n) => n + 5);
      return (yield* Effect.promise(() => Promise.resolve(2))) + (yield* Ref.get(ref));
    });
    const failing = Effect.fail("no").pipe(Effect.retry(Schedule.recurs(2)));
    return [
      await Effect.runPromise(work),
      Option.getOrNull(Option.some(1)),
      Schema.decodeUnknownSync(Schema.Struct({ a: Schema.NumberFromString }))({ a: "5" }),
      Lists.dedupe([1, 1, 2]),
      HashMap.size(HashMap.make(["a", 1])),
      (await Effect.runPromise(Effect.either(failing)))._tag,
    ];
  },
  eventemitter3: () => {
    const emitter = new EventEmitter(), heard: unknown[] = [];
    emitter.once("x", (each: number) => heard.push(each));
    return [emitter.emit("x", 1), emitter.emit("x", 2), heard];
  },
  handlebars: () => Handlebars.escapeExpression("<a>"),
  i18next: async () => {
    const translator = i18next.createInstance();
    const translation = { k: "hi {{n}}", k_one: "one", k_other: "many {{count}}" };
    await translator.init({ lng: "en", resources: { en: { translation } } });
    return [translator.t("k", { n: "x" }), translator.t("k", { count: 1 }), translator.t("k", { count: 5 })];
  },
  immer: () => {
    const before = { m: new Map([["a", { n: 1 }]]), l: [{ x: 1 }, { x: 2 }] };
    const next = produce(before, (draft) => {
      draft.m.set("b", { n: 9 });
      draft.l.push({ x: 3 });
      for (const each of draft.l) each.x++;
    });
    return [[...next.m], next.l, before.l];
  },
  joi: () => {
    const schema = Joi.object({ a: Joi.number().min(1).required() });
    return [schema.validate({ a: "5" }).value, schema.validate({ a: 0 }).error?.message];
  },
  mobx: () => {
    const seen: number[] = [], counted = new Counted();
    const stop = autorun(() => void seen.push(counted.double + counted.all.length));
    counted.more();
    counted.more();
    stop();
    return [seen, [...observable.map([["a", 1]])], counted.all.slice()];
  },
  moment: () => [moment.utc(0).format(), moment.duration(5000).humanize()],
  "p-queue": async () => {
    const queue = new PQueue({ concurrency: 2 }), done: number[] = [];
    await Promise.all([1, 2, 3].map((n) =>
      queue.add(async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        done.push(n);
      })
    ));
    return done;
  },
  "lru-cache": () => {
    const cache = new LRUCache<string, number>({ max: 2 });
    for (const [i, name] of ["a", "b", "c"].entries()) cache.set(name, i);
    return [[...cache.keys()], cache.get("b")];
  },
  qs: () => [qs.parse("a[b]=1&a[c][]=2"), qs.stringify({ a: { b: [1, 2] } })],
  rxjs: async () => [
    await firstValueFrom(timer(2)),
    await lastValueFrom(of(1, 2).pipe(concatMap((n) => of(n).pipe(delay(1))), toArray())),
  ],
  semver: () => [semver.satisfies("1.2.3", "^1.0.0"), semver.inc("1.2.3", "minor")],
  xstate: async () => {
    const actor = createActor(machine), seen: unknown[] = [];
    actor.subscribe(({ value }) => void seen.push(value));
    actor.start();
    actor.send({ type: "GO" });
    await new Promise((resolve) => setTimeout(resolve, 30));
    return [seen, actor.getSnapshot().context];
  },
  yjs: () => {
    const [a, b] = [new Y.Doc(), new Y.Doc()];
    a.getText("t").insert(0, "hello");
    Y.applyUpdate(b, Y.encodeStateAsUpdate(a));
    b.getText("t").insert(5, " you");
    return `${b.getText("t")}`;
  },
};
