/**
 * The queues of a site: their messages on a disk of their own and at other sites, what functions and programs outside
 * send, also in one step with rows, and the handlers, endpoints and clients that work it off.
 *
 * Life: `openMessages` when the replica is ready → serves → `quiet`: handlers end, what waits for them goes back; what
 * other sites have here is kept on → `close`: the tuples are written.
 *
 * MSV1 What other sites say is heard once the tuples are open: it is said again, or is over.
 * MSV2 A message of a KV's queue is at as many other sites as rows of this one are, and at one where any is heard: what
 *     one site alone enqueues is delivered, as what it writes is written.
 */
import { MessageQueues } from "../../functions/queues/message_queues.ts";
import type { QueueStatus } from "../../functions/queues/broker.ts";
import type { QueueSettings } from "../../functions/queues/settings.ts";
import type { SoleCopies } from "../../store/api/api.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { SiteReplica } from "../../store/replica.ts";
import type { QueueAdmin } from "../admin/queue_admin.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { TokenCodec } from "../gateway/session_tokens.ts";
import type { OwnRunServices } from "../gateway/own_run.ts";
import { Consumers } from "../queues/consumers.ts";
import { DeclaredQueues, namesOf } from "../queues/declared_queues.ts";
import { QueueDoor } from "../queues/http_door.ts";
import { LeaseSeal } from "../queues/lease_seal.ts";
import type { MessageMeter } from "../queues/message_meter.ts";
import { MessageOutbox } from "../queues/outbox.ts";
import { QueueOperations } from "../queues/queue_operations.ts";
import { QueueSends } from "../queues/sends.ts";
import { tupleIdOf } from "../queues/tuple_ids.ts";
import { UndeliveredValues } from "../queues/undelivered.ts";
import { Webhooks } from "../queues/webhooks.ts";
import { EgressRules } from "../isolate/egress_rules.ts";
import type { SiteQueues } from "../isolate/mod.ts";
import type { SecretTable } from "../secrets/mod.ts";
import type { SiteConfig } from "./config.ts";
import type { DiskDamage } from "./disk_damage.ts";
import type { Faults } from "./faults.ts";
import type { SiteLog } from "./log.ts";
import { StatefulDisks } from "./stateful_disks.ts";
import type { SystemClock, SystemRandom } from "./system_ports.ts";

/** What the queues need of their site. */
export interface MessageParts {
  readonly config: SiteConfig;
  readonly log: SiteLog;
  readonly clock: SystemClock;
  readonly random: SystemRandom;
  readonly replica: SiteReplica;
  readonly apps: AppTable;
  readonly running: OwnRunServices;
  readonly prepared: (version: LiveVersion) => Prepared;
  /** Secrets of the cluster, newest first. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  readonly fatal: (error: Error) => void;
  readonly faults: Faults;
  readonly damage: DiskDamage;
  readonly meter: MessageMeter;
  /** Secrets of apps, as this site sees them. */
  readonly appSecrets: Pick<SecretTable, "values" | "onChange">;
  /** What waits of each app in memory. */
  readonly appQueues: SiteQueues;
  readonly codec: TokenCodec;
}

/** Queues of a site, served. */
export interface MessageService {
  readonly sends: QueueSends;
  /** Door for programs outside. */
  readonly door: Pick<QueueDoor, "handle">;
  readonly admin: QueueAdmin;
  readonly outbox: MessageOutbox;
  status(): readonly QueueStatus[];
  /** Ends handlers, and gives no messages out any more. The second call waits for the first. */
  quiet(): Promise<void>;
  /**
   * Ends all of it. The second call waits for the first.
   *
   * @param awayUntilMs time at which the site is back, where it says so.
   */
  close(awayUntilMs?: number): Promise<void>;
  /** Counts, by queue, the messages that are on this disk alone; after `close`, too. */
  sole(): readonly SoleCopies[];
}

/** Uses of the owners' way between sites (store/owners): of the messages, and of the words on who gets them. */
const TUPLES_USE = "queues", WORDS_USE = "queue-words";
/** Time that running handlers have when a site stops: as long as requests (site.ts). */
const CLOSE_MS = 3_000;
/** Round trip to a site that was not measured yet: some hundred kilometres. */
const RTT_MS = 10;
const BOOT_BYTES = 6;

/** Opens the queues of a site. */
export async function openMessages(parts: MessageParts): Promise<MessageService> {
  const { config, log, clock, random, replica, apps, running, prepared, faults, meter, codec } = parts;
  const { owners } = replica, { detector } = owners;
  const declared = new DeclaredQueues(apps, config.limits.wallMs);
  const disks = await StatefulDisks.open(parts, ["queues"]);
  const opened: { queues?: MessageQueues } = {};
  // Where no handler is, any site may have a client that pulls.
  const outlets = (topic: string): SiteId[] =>
    declared.get(topic) === undefined ? [] : [config.id, ...owners.nearest()];
  const othersOf = (f: number): number => Math.max(Math.min(f, owners.nearest().length), owners.settings.f);
  // These are asked for with each message, and `f` only where one is stored.
  const ofKv = new WeakMap<QueueSettings, QueueSettings>();
  const settings = (topic: string): QueueSettings | undefined => {
    const found = declared.get(topic);
    if (found?.isOfKv !== true || found.settings.f === 0) return found?.settings;
    let own = ofKv.get(found.settings);
    if (own === undefined) {
      const f = { enumerable: true, get: () => othersOf(found.settings.f) }; // MSV2
      ofKv.set(found.settings, own = Object.defineProperty({ ...found.settings }, "f", f));
    }
    return own;
  };
  const undelivered = new UndeliveredValues(await replica.attach(null));
  const fail = (error: unknown) => faults.contained("queues", error, {});
  const say = owners.channel(WORDS_USE, (from, packet) => opened.queues?.received(from, packet)); // MSV1
  const queues = new MessageQueues({
    site: config.id,
    boot: 1 + random.bytes(BOOT_BYTES).reduce((number, byte) => number * 256 + byte, 0),
    clock: {
      nowMs: () => replica.nowMs(),
      steadyMs: () => clock.steadyMs(),
      after: (ms, callback) => clock.after(ms, callback),
      turn: () => clock.turn(),
    },
    wallMs: () => replica.nowMs(),
    random: () => random.bytes(4).reduce((sum, byte) => (sum + byte) / 256, 0),
    settings,
    outlets,
    rttMs: (site) => detector.rttMs(site) ?? RTT_MS,
    // Who lent a message need not be watched here.
    isHeard: (site) => site === config.id || (owners.isKnown(site) && !isSilent(detector.standing(site))),
    tupleIdOf,
    undelivered: (topic, message) => undelivered.write(topic, message),
    note: (event, detail) => log.line("warn", event, detail),
    fail,
    // What is lost with a link is said again, or is over.
    send: (to, packet) => say(to, packet).catch(() => {}),
  });
  const { allow, private: privateHosts } = config.egress;
  const webhooks = new Webhooks({
    ...{ declared, secrets: parts.appSecrets, running, queues: parts.appQueues, meter },
    rulesOf: (fetchHosts) => new EgressRules({ allow, privateHosts, fetchHosts }),
    after: (ms, run) => clock.after(ms, run),
    rested: (topic) => consumers.configured(topic),
  });
  const consumers: Consumers = new Consumers({
    ...{ outlet: queues.outlet, declared, running, prepared, meter, webhooks },
    opened: (text) => {
      const found = codec.open(text);
      return found.ok ? found.token : null;
    },
  });
  const sends = new QueueSends(queues.broker, meter);
  const leases = new LeaseSeal(parts.secrets);
  const door = new QueueDoor({ outlet: queues.outlet, declared, sends, leases, meter });
  const tuples = await disks.loaded(() =>
    owners.open(TUPLES_USE, { storage: disks.queues, user: queues.broker, f: () => declared.others })
  );
  queues.begin(tuples);
  opened.queues = queues;
  const outbox = new MessageOutbox({
    ...{ site: config.id, boot: random.bytes(BOOT_BYTES).toHex(), isRoot: config.parent === null, sends },
    store: await replica.attach(null),
    tokenOf: async (key) => {
      const session = await replica.attach(null);
      await session.get([key]);
      return codec.seal(session.token(false));
    },
    isLost: (site) => !owners.isKnown(site) || detector.standing(site) === "dead",
    nowMs: () => replica.nowMs(),
    after: (ms, run) => clock.after(ms, run),
    note: (event, detail) => log.line("warn", event, detail),
  });
  outbox.begin();
  const unheard = detector.onChange((site, standing) => {
    if (isSilent(standing)) queues.suspects(site);
    queues.broker.rerouted();
  });
  const configured = (topic: string) => {
    consumers.configured(topic);
    queues.configured(topic).catch(fail);
    const { app } = namesOf(topic);
    // Its app is gone with all that it had.
    if (!declared.hasApp(app)) queues.broker.remove(topic, ["ready", "delayed", "dead"]).catch(fail);
  };
  const deployed = () => {
    const before = declared.others;
    const changed = declared.refresh();
    if (declared.others !== before) owners.usesChanged();
    changed.forEach(configured);
  };
  for (const topic of declared.topics) consumers.configured(topic);
  const unwatched = apps.onChange(deployed);
  const unkeyed = parts.appSecrets.onChange((app) => {
    for (const topic of declared.topics) if (namesOf(topic).app === app) consumers.configured(topic);
  });
  deployed(); // what came while the disk was read
  let quieting: Promise<void> | undefined, closing: Promise<void> | undefined;
  const quiet = () =>
    quieting ??= (async () => {
      unwatched();
      unkeyed();
      door.close();
      await consumers.stop(CLOSE_MS);
      unheard();
      queues.close();
      await clock.turn(); // what goes back leaves
    })();
  return {
    ...{ sends, outbox },
    door,
    admin: new QueueOperations({ broker: queues.broker, declared, webhooks, tupleIdOf }),
    status: () => queues.broker.status(),
    quiet,
    close: (awayUntilMs) =>
      closing ??= (async () => {
        await quiet();
        outbox.close();
        await tuples.close(awayUntilMs);
        await disks.close();
      })(),
    sole: () =>
      [...tuples.sole()].map(([topic, count]) => {
        const { app, queue } = namesOf(topic);
        return { what: `messages of the queue ${queue} of ${app}`, count };
      }),
  };
}

const isSilent = (standing: string): boolean => standing === "suspected" || standing === "dead";
