/**
 * Broken variants: each is wrong in one rule, and the checker must see it. A variant wraps production code from outside
 * (homes, isolates, disks, ways), and changes nothing in it.
 */
import { decodeToHost, encodeToHost } from "../../functions/sessions/attach/mod.ts";
import type { Home, Homes } from "../../functions/sessions/home/mod.ts";
import { decodeCheckpoint, encodeCheckpoint } from "../../functions/sessions/turn/checkpoint.ts";
import { readEntries } from "../../functions/sessions/turn/log_entry.ts";
import type { Commit, OpenSession, SessionEvent } from "../../functions/sessions/turn/mod.ts";
import { Program } from "../../functions/sessions/turn/program.ts";
import type { ChannelSink } from "../../functions/sessions/serve/ports.ts";
import type { HostServices } from "../../runtime/stateful/host_services.ts";
import type { AttachedSession } from "../../store/api/api.ts";
import type { Storage } from "../../store/model/ports.ts";
import { faulty, owned, type SitesPlan, star } from "./plan.ts";
import type { Violation } from "./checker.ts";
import type { SitesOptions } from "./simulation.ts";
import type { Wrongs } from "./surroundings.ts";

/** A variant. */
export interface Variant {
  readonly name: string;
  /** Fresh for each run. */
  readonly make: () => Wrongs;
  readonly change: (plan: SitesPlan) => SitesPlan;
  /** Who dies when, beside what is drawn. */
  readonly passes?: () => NonNullable<SitesOptions["passes"]>;
  readonly caughtBy: readonly Violation["checker"][];
  /** Where few seeds catch it, or those that do run long: the first that is tried. */
  readonly first?: number;
  /** How many it may take. */
  readonly seeds: number;
}

// ── Plans ──

/** One session that changes hands, with disks that take their time. */
const contested = (plan: SitesPlan): SitesPlan => {
  const changed = {
    ...plan,
    ...{ classes: ["whole"], devices: 2, plain: 0, callers: 1, messages: 20, requests: 6, idleMs: 60_000 },
    ...{
      kills: 0,
      stands: 0,
      moves: 0,
      moveAtOnce: 0,
      deploys: 0,
      roams: 3,
      cuts: 3,
      breaks: 0.01,
      garbles: 0,
    },
    ...{ deaths: 0, closes: 0, hasStandbys: false },
    ops: plan.ops.filter((op) => op !== "kick" && op !== "throw"),
    store: { ...plan.store, safetyMs: 2_500, downMs: [20, 900] },
  } satisfies SitesPlan;
  const on = star(changed, { delaysMs: [1, 5, 2], commitMs: [5, 30], f: 1 });
  return faulty(on, { crash: 4, partition: 2 });
};

const moving = (plan: SitesPlan): SitesPlan => ({
  ...faulty(contested(plan), { crash: 2, partition: 2 }),
  moves: 6,
  moveAtOnce: 0.3,
});
const dying = (plan: SitesPlan): SitesPlan => faulty(contested(plan));
const throwing = (plan: SitesPlan): SitesPlan => ({
  ...contested(plan),
  ops: [...contested(plan).ops, "throw", "balk"],
});
const asking = (plan: SitesPlan): SitesPlan => ({
  ...faulty(contested(plan), { crash: 6, partition: 2 }),
  ops: ["post", "post", "put", "put", "swap", "echo"],
});

/** Minutes pass at once, and the store forgets deletions after a moment. */
const aging = (plan: SitesPlan): SitesPlan => {
  const changed = faulty(contested(plan), { crash: 6, nap: 3, partition: 2 });
  return {
    ...{ ...changed, ops: ["put", "put", "set", "quiet"], commitMs: [1, 4] },
    store: { ...changed.store, horizonMs: 400, downMs: [300, 2_500] },
  };
};

/** A process dies whenever it has passed a point of a kind so many times, whichever it is. */
export const every = (kind: string, count: number) => (): NonNullable<SitesOptions["passes"]> => {
  let passed = 0;
  return (site, point) => {
    const isIt = site !== null && point === kind && ++passed % count === 0;
    return isIt ? "crashes" : "goes on";
  };
};

// ── Wrappers ──

/** The same thing, but for what is otherwise. */
export function otherwise<T extends object>(target: T, changed: Partial<T>): T {
  return new Proxy(target, {
    get: (of, key) => {
      const value = Object.hasOwn(changed, key)
        ? Reflect.get(changed, key)
        : Reflect.get(of, key, of) as unknown;
      return typeof value === "function" && !Object.hasOwn(changed, key) ? value.bind(of) : value;
    },
  });
}

/** Homes that serve otherwise. */
const homes = (change: (home: Home) => Partial<Home>) => (services: HostServices): HostServices => ({
  ...services,
  homes: otherwise<Homes>(services.homes, {
    open: async (name, version) => {
      const opened = await services.homes.open(name, version);
      return otherwise(opened, {
        start: (answers) => {
          const home = opened.start(answers);
          return otherwise(home, change(home));
        },
      });
    },
  }),
});

/** What isolates say. */
const saying = (change: (sink: ChannelSink, open: OpenSession) => Partial<ChannelSink>): Wrongs => ({
  sink: (sink, open) => otherwise(sink, change(sink, open)),
});

/** A commit that is held, for whoever waits for it, at once. */
const atOnce = (home: Home): Home["commit"] => (commit) => {
  home.commit(commit).catch(() => {});
  return Promise.resolve();
};

/** Hands events over again; `isAgain` says which, and when: with the event, or when its commit comes. */
function again(isAgain: (event: SessionEvent, commit: Commit | null) => boolean) {
  return (services: HostServices): HostServices => ({
    ...services,
    pool: {
      open: async (app, session, sink) => {
        const extras: number[] = [];
        let last = 0;
        let heard: (SessionEvent & { readonly number: number }) | null = null;
        const repeat = (event: SessionEvent) => {
          extras.push(++last);
          opened.isolate.deliver(opened.channel, { ...event, number: last } as SessionEvent);
        };
        const opened = await services.pool.open(
          app,
          session,
          otherwise(sink, {
            commit: (commit) => {
              const before = extras.filter((number) => number <= commit.through).length;
              sink.commit({ ...commit, through: commit.through - before });
              if (heard !== null && isAgain(heard, commit)) repeat(heard);
            },
          }),
        );
        const { isolate, channel } = opened;
        return {
          channel,
          isolate: otherwise(isolate, {
            deliver: (_, event) => {
              if (event.kind === "result") return isolate.deliver(channel, event);
              last = event.number + extras.length;
              isolate.deliver(channel, { ...event, number: last });
              if (event.kind === "message") heard = event;
              if (isAgain(event, null)) repeat(event);
            },
          }),
        };
      },
    },
  });
}

/** Changes what a checkpoint holds. */
const checkpoints = (change: (parts: ReturnType<typeof decodeCheckpoint>) => typeof parts): Wrongs =>
  saying((sink) => ({
    checkpointed: (checkpoint) => {
      const host = {
        make: () => ({}),
        envOf: () => null,
        aside: <T>(_: Program, work: () => T): T => work(),
      };
      const program = new Program(host, "whole", "x0");
      const parts = change(decodeCheckpoint(checkpoint.bytes, program));
      sink.checkpointed({ ...checkpoint, bytes: encodeCheckpoint(program, parts) });
    },
  }));

/** A disk that says it has written before it has. */
const hasty = (storage: Storage): Storage => {
  let tail = Promise.resolve();
  return otherwise(storage, {
    commit: (commit) => {
      tail = tail.then(() => storage.commit(commit)).catch(() => {});
      return Promise.resolve();
    },
  });
};

/** Standbys that go on one piece behind their log. */
function behind(): Wrongs {
  const held = new WeakMap<OpenSession, Uint8Array>();
  const missing = (open: OpenSession) => readEntries(held.get(open) ?? new Uint8Array(0)).length;
  return {
    piece: (bytes, open) => {
      const before = held.get(open) ?? null;
      held.set(open, bytes);
      return before;
    },
    ...saying((sink, open) => ({
      opened: (opened) => sink.opened({ ...opened, sequence: opened.sequence + missing(open) }),
      commit: (commit) => sink.commit({ ...commit, first: commit.first + missing(open) }),
      checkpointed: (checkpoint) => sink.checkpointed({ ...checkpoint, at: checkpoint.at + missing(open) }),
    })),
  };
}

/** Messages are acknowledged with commits that nobody waits for; those with outputs are waited for. */
function hastyAcknowledgements(): Wrongs {
  let hasOutputs = false;
  return {
    ...saying((sink) => ({
      commit: (commit) => {
        hasOutputs = commit.outputs.length > 0;
        sink.commit(commit);
      },
    })),
    services: homes((home) => ({
      commit: (commit) => hasOutputs ? home.commit(commit) : atOnce(home)(commit),
    })),
  };
}

/** An output goes again under the next number. */
function repeated(chunk: Uint8Array): Uint8Array[] {
  const frame = decodeToHost(chunk.slice(4));
  if (frame.kind !== "output" || frame.sequence % 3 !== 0) return [chunk];
  const bytes = encodeToHost({ ...frame, sequence: frame.sequence + 1 });
  const sized = new Uint8Array(4 + bytes.length);
  new DataView(sized.buffer).setUint32(0, bytes.length);
  sized.set(bytes, 4);
  return [chunk, sized];
}

/** Rows under the number of whoever writes them. */
function ownVersions(services: HostServices): HostServices {
  const { replica } = services;
  const own = (session: AttachedSession): AttachedSession =>
    otherwise(session, {
      writeAs: (mutations, { clock }) =>
        session.writeAs(mutations, { clock, replica: replica.status().replica }),
    });
  return {
    ...services,
    replica: otherwise(replica, { attach: async (token) => own(await replica.attach(token)) }),
  };
}

/** What the store may have forgotten deletions of is taken for written. */
function forgotten(services: HostServices): HostServices {
  const { replica } = services;
  const session = (inner: AttachedSession): AttachedSession =>
    otherwise(inner, {
      writeAs: (mutations, version) =>
        inner.isOld(version) ? Promise.resolve(true) : inner.writeAs(mutations, version),
      isOld: () => false,
    });
  return {
    ...services,
    replica: otherwise(replica, { attach: async (token) => session(await replica.attach(token)) }),
  };
}

/** Keys under which the server outside is asked, of each home's own. */
const ownKeys = (services: HostServices, site: string): HostServices => ({
  ...services,
  originOf: (name, version) => {
    const origin = services.originOf(name, version);
    if (origin === null) return null;
    const { fetch } = origin;
    return {
      ...origin,
      fetch: (call, key, signal) => fetch(call, key === null ? null : `${key}${site}`, signal),
    };
  },
});

/** Names under which messages to queues are stored, of each home's own. */
const ownMail = (services: HostServices, site: string): HostServices => ({
  ...services,
  sends: {
    storeOfSession: (app, message) =>
      services.sends.storeOfSession(app, { ...message, key: `${message.key}${site}` }),
  },
});

const isMessage = (event: SessionEvent): boolean => event.kind === "message";

export const VARIANTS: readonly Variant[] = [
  {
    name: "outputs leave before their commit is held",
    make: () => ({ services: homes((home) => ({ commit: atOnce(home) })) }),
    change: contested,
    caughtBy: ["WC1", "WC3", "WC5"],
    seeds: 6,
  },
  {
    name: "messages are acknowledged before they are in the log",
    make: hastyAcknowledgements,
    change: (plan) => ({
      ...owned(dying(plan), 0),
      ops: ["quiet"],
      commitMs: [100, 300],
      messages: 60,
      callers: 0,
    }),
    passes: every("isolate says", 23),
    caughtBy: ["WC2", "WC3", "WC8"],
    first: 12,
    seeds: 20,
  },
  {
    name: "an old home goes on telling",
    make: () => ({
      isDeaf: true,
      services: homes((home) => ({
        over: new Promise(() => {}),
        commit: (commit) => home.commit(commit).catch(() => {}),
      })),
    }),
    change: moving,
    caughtBy: ["WC1", "WC2", "WC3", "WC5"],
    first: 19,
    seeds: 8,
  },
  {
    name: "a standby goes on from a log that is shorter than the disk's",
    make: behind,
    change: (plan) => ({ ...dying(plan), hasStandbys: true, commitMs: [1, 4] }),
    passes: every("isolate says", 40),
    caughtBy: ["WC1", "WC2", "WC3", "WC5", "fault"],
    seeds: 8,
  },
  {
    name: "keepers say that they have what is not on their disks",
    make: () => ({ storage: hasty }),
    change: (plan) => faulty(owned(contested(plan), 0), { crash: 8 }),
    caughtBy: ["WC1", "WC2", "WC3", "WC5", "fault"],
    seeds: 8,
  },
  {
    name: "a program behind a session is sent an output again under the next number",
    make: () => ({ toOrigin: repeated }),
    change: (plan) => ({ ...dying(plan), ops: ["origin", "origin", "all"] }),
    caughtBy: ["WC1"],
    seeds: 4,
  },
  {
    name: "a message is handed to the session twice",
    make: () => {
      let count = 0;
      return { services: again((event, commit) => commit === null && isMessage(event) && ++count % 7 === 0) };
    },
    change: contested,
    caughtBy: ["WC2"],
    seeds: 4,
  },
  {
    name: "a rejected message is handed over again",
    make: () => {
      let left = 3; // one that always throws is rejected each time
      return {
        services: again((event, commit) =>
          isMessage(event) && commit?.rejected?.subject?.kind === "message" &&
          commit.rejected.attempt === 0 && left-- > 0
        ),
      };
    },
    change: throwing,
    caughtBy: ["WC2"],
    seeds: 4,
  },
  {
    name: "a request that was answered is run again",
    make: () => ({
      services: homes((home) => ({
        ask: (request, isBegun) => {
          const asked = home.ask(request, isBegun);
          return asked.kind === "known" ? { kind: "new" } : asked;
        },
      })),
    }),
    change: (plan) => ({ ...contested(plan), callers: 3, requests: 10 }),
    caughtBy: ["WC5"],
    seeds: 8,
  },
  {
    name: "what a turn wrote is applied under the version of whoever applies it",
    make: () => ({ services: ownVersions }),
    change: (plan) => ({ ...dying(plan), ops: ["put", "put", "set", "quiet"], commitMs: [1, 4] }),
    passes: every("isolate says", 17),
    caughtBy: ["WC6"],
    first: 10,
    seeds: 26,
  },
  {
    name: "what may be written late holds nothing that the store forgets",
    make: () => ({ owesNothing: true }),
    change: aging,
    // What is written anew has another version than its log says.
    caughtBy: ["integrity"],
    seeds: 12,
  },
  {
    name: "what is older than the store remembers counts as written",
    make: () => ({ owesNothing: true, services: forgotten }),
    change: aging,
    caughtBy: ["WC6", "durability", "read-your-writes", "site closure"],
    seeds: 12,
  },
  {
    name: "each home has keys of its own for the server outside",
    make: () => ({ services: ownKeys }),
    change: (plan) => ({ ...dying(plan), ops: ["post"], commitMs: [1, 4] }),
    passes: every("isolate says", 7),
    caughtBy: ["WC7"],
    seeds: 8,
  },
  {
    name: "each home has names of its own for messages to queues",
    make: () => ({ services: ownMail }),
    change: (plan) => ({ ...dying(plan), ops: ["mail"], commitMs: [1, 4] }),
    passes: every("isolate says", 7),
    caughtBy: ["WC10"],
    seeds: 8,
  },
  {
    name: "outputs that are not acknowledged are not in the checkpoint",
    make: () => checkpoints((parts) => ({ ...parts, outputs: [] })),
    change: (plan) => ({ ...moving(plan), idleMs: 100, commitMs: [0.1, 0.4] }),
    caughtBy: ["WC1", "WC8"],
    seeds: 8,
  },
  {
    name: "what a handler that is not over has sent counts as sent when its log is opened",
    make: () =>
      saying((sink) => ({
        opened: (opened) => {
          const peers = opened.isQuiescent
            ? opened.peers
            : opened.peers.map((peer) => ({ ...peer, sent: peer.sent + 1 }));
          sink.opened({ ...opened, peers });
        },
      })),
    change: (plan) => ({ ...asking(plan), ops: ["echo", "post", "all"] }),
    caughtBy: ["WC1", "WC8"],
    seeds: 8,
  },
];
