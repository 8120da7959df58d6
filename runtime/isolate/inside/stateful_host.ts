/**
 * The trusted bootstrap of isolates of stateful sessions: the code that runs in such a process before, and around, an
 * app.
 *
 * Stages: as in main.ts up to `ready` → `load` (the bundle, whose module code sees a stopped clock) → sessions open,
 * run and close. Frames only queue what they ask for; app code runs in macrotasks of the loop
 * (functions/sessions/turn/turn_loop.ts).
 *
 * SH1  No app code runs before the permissions are gone and the realm is cut and recorded.
 * SH3  Sessions begin when the app's modules have run and what the language brings is frozen (stateful_intrinsics.ts),
 *      as is what those modules hold (module_state.ts).
 */
import { CONTEXT_SLOT } from "../../../functions/context.ts";
import type { BaseEnv } from "../../../functions/define.ts";
import { buildEnv } from "../../../functions/env.ts";
import { SESSION_SLOT, type SessionSlot } from "../../../functions/class/session_slot.ts";
import { chainName } from "../../../functions/sessions/turn/event.ts";
import { ChainedCaller } from "../../../functions/sessions/turn/session_calls.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { ParkedError } from "../../../functions/sessions/turn/replay.ts";
import { ProgramQueues } from "../../../functions/sessions/turn/session_queues.ts";
import { ProgramStore } from "../../../functions/sessions/turn/session_store.ts";
import { TurnLoop } from "../../../functions/sessions/turn/turn_loop.ts";
import { useOneForm } from "../../../functions/values/value.ts";
import { ClockShare } from "../../../store/model/clock_share.ts";
import { type Payload, readFrames } from "../frame_reader.ts";
import { FrameWriter } from "../frame_writer.ts";
import { FRAME_TO_ISOLATE_BYTES_MAX, ISOLATE_FRAME } from "../frames.ts";
import { TurnMark } from "../turn_mark.ts";
import { StatesComing } from "../state_frames.ts";
import { readAcknowledged, readEvent, readOpen, readPromotion } from "../session_frames.ts";
import { wireError, writeError } from "../store_frames.ts";
import { AsyncScope } from "./async_scope.ts";
import { captureConsole } from "./console.ts";
import { installFetchedResponse } from "./fetched_response.ts";
import { catchUncaught, type IsolatePaths, revokeAll } from "./process_start.ts";
import { cutRealm, type Realm } from "./realm.ts";
import { stackOf } from "./stack.ts";
import { after, drainTasks, nowMs, schedule } from "./stateful_core.ts";
import { recordedFetch } from "./stateful_fetch.ts";
import { type ClassPlaces, classPlaces, placeIn } from "./class_places.ts";
import { BUNDLE_URL, recordImports } from "./stateful_imports.ts";
import { installGuards } from "./guarded.ts";
import { ModuleState } from "./module_state.ts";
import { collectIntrinsics } from "./stateful_intrinsics.ts";
import { Intervals } from "./stateful_intervals.ts";
import { recordRealm, tellRejections } from "./stateful_realm.ts";
import { rehearse } from "./stateful_rehearsal.ts";
import { FrameSink } from "./stateful_sink.ts";

/** Options that the site sends with a bundle. */
interface LoadOptions {
  readonly vars: Record<string, string>;
  readonly secrets: Record<string, string>;
  readonly atRoot: boolean;
  readonly name: string;
  /** Share of the site's clock that this isolate draws from (store/model/clock_share.ts). */
  readonly clockShare: number;
}

/** The app of this isolate. */
interface Loaded {
  readonly defaultExport: unknown;
  readonly options: LoadOptions;
}

/** The state of the modules, which all sessions of the isolate share. */
interface Shared {
  /** Called when the app's modules are about to run. */
  load(): void;
  freeze(): Promise<void>;
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Runs the isolate until its socket closes. */
export async function serveSessions(paths: IsolatePaths): Promise<void> {
  // The mark first: the site removes both paths as soon as it sees the connection.
  const mark = new TurnMark(Deno.openSync(paths.mark, { write: true }));
  const connection = await Deno.connect({ transport: "unix", path: paths.socket });
  await revokeAll(paths);
  const exit = Deno.exit.bind(Deno);
  const { stderr } = Deno;
  const report = (text: string) => void stderr.writeSync(encoder.encode(text));
  const writer = new FrameWriter(connection, () => exit(1));
  const app = new StatefulApp();
  const sink = new FrameSink(writer), coming = new StatesComing();
  const owners = new AsyncScope<Program>();
  const modules = new ModuleState(), intervals = new Intervals();
  const loop = new TurnLoop({
    sink,
    nowMs,
    storeClock: (after) => app.storeClock(after),
    drain: drainTasks,
    schedule,
    after,
    mark: (channel, received) => mark.write(channel, received),
    enter: (program, run) => owners.run(program, run),
    owner: () => owners.get(),
    turnOf: (program) => modules.turnOf(program),
    changed: (program) => modules.changed() ?? intervals.left(program),
    told: (error) => modules.told(error),
    make: (className, program) => app.make(className, program),
    envOf: (program) => app.envOf(program),
    unpin: (program) => app.unpin(program),
    placeOf: (className, method) => placeIn(app.places, className, method),
  });
  const current = () => loop.acting;
  Object.defineProperty(globalThis, Symbol.for("sojourn.modules"), { value: modules.asked });
  Object.defineProperty(globalThis, CONTEXT_SLOT, {
    value: Object.freeze({ current: () => loop.acting?.env }),
  });
  useOneForm();
  installFetchedResponse();
  captureConsole((level, text) => {
    // What a replay prints has been printed.
    if (loop.current?.isReplaying !== true) {
      loop.sink.log(loop.current === undefined ? 0 : loop.channel, level, text);
    }
  });
  recordImports(() => app.source, current);
  const realm = cutRealm(recordedFetch(current));
  recordRealm(current, intervals);
  tellRejections(modules.asked.caught);
  installGuards();
  const intrinsics = collectIntrinsics();
  const globals = new Set(Reflect.ownKeys(globalThis));
  const shared: Shared = {
    load: () => modules.load(),
    freeze: async () => {
      const unwatched = await modules.freeze(intrinsics, globals);
      for (const each of unwatched) {
        sink.log(0, "warn", `all stateful sessions share ${each}, and nobody watches whether they change it`);
      }
    },
  };
  const rehearsed = () => {
    try {
      rehearse();
    } catch (error) {
      sink.log(0, "error", `an isolate of stateful sessions that waits: ${stackOf(error)}`);
    }
  };
  // Not before: a bootstrap that fails says so on its way out.
  catchUncaught(modules.asked.caught);
  writer.signal(ISOLATE_FRAME.ready, 0);
  try {
    await readFrames(connection, FRAME_TO_ISOLATE_BYTES_MAX, (type, channel, payload) => {
      switch (type) {
        case ISOLATE_FRAME.sessionEvent:
          return loop.deliver(channel, readEvent(payload));
        case ISOLATE_FRAME.sessionOpen:
          return loop.open(channel, readOpen(payload, coming.take(channel)));
        case ISOLATE_FRAME.sessionState:
          return coming.add(channel, payload);
        case ISOLATE_FRAME.sessionAcknowledged:
          return loop.acknowledge(channel, readAcknowledged(payload));
        case ISOLATE_FRAME.sessionCheckpointNow:
          return loop.checkpointNow(channel);
        case ISOLATE_FRAME.sessionFollow:
          return loop.follow(channel, readOpen(payload, coming.take(channel)));
        case ISOLATE_FRAME.sessionPiece:
          return loop.piece(channel, payload.rest());
        case ISOLATE_FRAME.sessionPromote:
          return loop.promote(channel, readPromotion(payload));
        case ISOLATE_FRAME.sessionClose:
          loop.close(channel);
          sink.closed(channel);
          coming.drop(channel);
          return writer.signal(ISOLATE_FRAME.sessionClosed, channel);
        case ISOLATE_FRAME.rehearse:
          return schedule(rehearsed);
        case ISOLATE_FRAME.ping:
          return writer.signal(ISOLATE_FRAME.pong, channel);
        case ISOLATE_FRAME.secrets:
          app.setSecrets(JSON.parse(payload.text()) as Record<string, string>);
          return loop.renew();
        case ISOLATE_FRAME.load:
          return void load(writer, payload, realm, app, shared);
      }
    });
  } catch (error) {
    // The end of the socket is no news; what can't be read is, and stderr is what is left to say it.
    report(stackOf(error));
    exit(1);
  }
  exit(0);
}

async function load(
  writer: FrameWriter,
  payload: Payload,
  realm: Realm,
  app: StatefulApp,
  shared: Shared,
): Promise<void> {
  const options = JSON.parse(payload.text()) as LoadOptions;
  try {
    realm.setVars(options.vars);
    app.source = decoder.decode(payload.restView());
    shared.load();
    const module = await import(BUNDLE_URL) as Record<string, unknown>;
    const defaultExport = realm.served.appOf(module);
    app.places = classPlaces(app.source, (Object(defaultExport) as { sessions?: unknown }).sessions);
    app.source = "";
    await shared.freeze();
    app.loaded = { defaultExport, options };
    writer.begin(ISOLATE_FRAME.loaded, 0).text("{}").end();
  } catch (error) {
    writer.begin(ISOLATE_FRAME.loadFailed, 0);
    writeError(writer, wireError(error, "load_failed"));
    writer.text(stackOf(error)).end();
  }
}

/**
 * Freezes an env: no checkpoint has what a session would add. Tables and namespaces are made where they are first read.
 */
function freezeEnv(env: BaseEnv): void {
  const groups = ["tables", "queues", "sessions"].map((name) => Reflect.get(env, name) as object);
  for (const group of groups) {
    for (const name in group) Object.freeze(Reflect.get(group, name));
  }
  for (const each of [env, ...Object.values(env)]) Object.freeze(each);
}

/** The app, as the executor asks for it. */
class StatefulApp {
  /** Source of its bundle, for the import. */
  source = "";
  loaded: Loaded | undefined;
  places: ClassPlaces = new Map();
  #clock: ClockShare | undefined;
  #secrets: Readonly<Record<string, string>> | undefined;
  /** Secrets as sessions see them: what their logs have come to rests on them until the next checkpoint. */
  readonly #pinned = new Map<string, Readonly<Record<string, string>>>();
  readonly #slot: SessionSlot = { making: undefined };

  constructor() {
    Object.defineProperty(globalThis, SESSION_SLOT, { value: this.#slot });
  }

  setSecrets(secrets: Readonly<Record<string, string>>): void {
    this.#secrets = secrets;
  }

  /** Returns the next time of the store's clock. Sessions are opened once the app is loaded. */
  storeClock(after: number): number {
    this.#clock ??= new ClockShare(this.#loaded().options.clockShare, nowMs);
    return this.#clock.after(after);
  }

  unpin({ className, id }: Program): void {
    this.#pinned.delete(chainName(className, id));
  }

  /**
   * Makes the object of a session. @throws ParkedError for a class that the app has not, and what its constructor
   * throws.
   */
  make(className: string, program: Program): SessionObject {
    const { sessions } = Object(this.loaded?.defaultExport) as {
      readonly sessions?: Record<string, unknown>;
    };
    const found = Object(sessions) as Record<string, unknown>;
    const Class = Object.hasOwn(found, className) ? found[className] : undefined;
    if (typeof Class !== "function") {
      throw new ParkedError("class_unknown", `the app has no class of stateful sessions named ${className}`);
    }
    this.#slot.making = program;
    try {
      return Reflect.construct(Class, []) as SessionObject;
    } finally {
      this.#slot.making = undefined;
    }
  }

  envOf(program: Program): unknown {
    const { defaultExport, options } = this.#loaded();
    const name = chainName(program.className, program.id);
    const secrets = this.#pinned.get(name) ?? this.#secrets ?? options.secrets;
    if (Object.keys(secrets).length > 0) this.#pinned.set(name, secrets);
    const env = buildEnv(defaultExport, {
      store: new ProgramStore(program),
      queues: new ProgramQueues(program),
      sessions: new ChainedCaller(program),
      recordedBytes: (bytes) => program.crypto.fill(bytes),
      vars: options.vars,
      secrets,
      app: options.name,
      atRoot: options.atRoot,
    });
    freezeEnv(env);
    return env;
  }

  #loaded(): Loaded {
    if (this.loaded === undefined) throw new Error("a session was opened before its app");
    return this.loaded;
  }
}
