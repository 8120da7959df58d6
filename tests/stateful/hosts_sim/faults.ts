/** What goes wrong in a run, drawn from its plan: with sites, with clients, and between them. */
import { encodeToHome } from "../../../functions/sessions/attach/mod.ts";
import type { SimNetwork } from "../../sim/network.ts";
import type { Draws } from "../../sim/random.ts";
import type { World } from "../../sim/world.ts";
import type { StatefulSite } from "../sim/stateful_site.ts";
import { Line } from "./channel.ts";
import type { Client } from "./client.ts";
import type { Ledger } from "./ledger.ts";
import type { HostsPlan } from "./plan.ts";
import { NAME, OWNED, SHARED, type SiteProcess } from "./session_at.ts";
import type { Unsure } from "./unsure.ts";

/** A site, and its process that serves sessions. */
export interface Place {
  readonly site: StatefulSite;
  life: number;
  process: SiteProcess | null;
  /** Its wall clock is so wrong. */
  jumpedMs: number;
}

/** How things stand. */
export interface Now {
  /** Of the app. */
  version: string;
  /** Owners beside the home. */
  f: number;
  /** An operator does not wait for who is away. */
  isForced: boolean;
  isHealed: boolean;
}

export interface FaultPorts {
  readonly plan: HostsPlan;
  readonly now: Now;
  readonly world: World;
  readonly draws: Draws;
  readonly network: SimNetwork;
  readonly places: readonly Place[];
  readonly clients: readonly Client[];
  readonly ledger: Ledger;
  /** Peers by whose word nobody can go, with why, and the client that lies. */
  readonly unsure: Unsure;
  readonly liar: string | null;
  /** Who hears that the app has another version. */
  readonly followers: ReadonlySet<() => void>;
  start(place: Place): void;
  log(text: string): void;
  probe(what: string): void;
}

const FORCED_MS = 4_000;

/** See the file's header. */
export class Faults {
  readonly #around: FaultPorts;

  constructor(around: FaultPorts) {
    this.#around = around;
  }

  #say(text: string, probe: string): void {
    this.#around.log(text);
    this.#around.probe(probe);
  }

  /** Those of the plan, from now on. */
  begin(): void {
    const { plan, now, world, clients, places, unsure } = this.#around,
      draws = this.#around.draws.fork("faults");
    const { wipes } = plan;
    const times = (count: number, run: (i: number) => void) => {
      for (let i = 0; i < count; i++) {
        world.after(draws.between(0, plan.safetyMs), () => now.isHealed ? undefined : run(i));
      }
    };
    const client = () => draws.pick(clients);
    times(plan.crashes, (i) => this.#crash(draws, i < wipes));
    times(plan.partitions, () => this.#part(draws));
    times(plan.breaks, () => draws.chance(0.5) ? client().drop() : client().roam());
    times(plan.kills, () => {
      this.#say("isolates are lost", "fault: isolate");
      for (const { process } of places) process?.isolate.lose(draws.chance(0.5));
    });
    times(plan.moves, () => this.#move(draws));
    const does = (what: string, run: (client: Client) => void) => () => {
      const one = client();
      this.#say(`${one.id} ${what}`, `client ${what}`);
      run(one);
    };
    times(plan.restarts, does("begins again", (one) => one.restart(true)));
    times(
      plan.forgets,
      does("loses its log", (one) => {
        if (one.peer !== null) unsure.add(one.peer, "lost its log");
        one.restart(false);
      }),
    );
    times(plan.leaves, does("leaves", (one) => one.leave()));
    times(plan.aways, does("is away", (one) => one.away(draws.between(200, 3_000))));
    times(
      plan.absences,
      does("is away for long", (one) => one.away(draws.between(0.5, 3) * plan.safetyMs)),
    );
    times(plan.relapses, () => this.#relapse(draws));
    times(plan.refits, () => this.#refit());
    times(plan.jumps, () => this.#jump(draws));
    times(plan.deploys, () => this.#deploy());
    times(plan.forces, () => this.#force(draws));
    times(plan.strangers, () => this.#stranger(draws));
  }

  get #home(): Place | undefined {
    return this.#around.places.find(({ process }) => (process?.isolate.states.length ?? 0) > 0);
  }

  /** Mostly the home: the others lose nothing. */
  #crash(draws: Draws, wipe: boolean): void {
    const { places, plan, world } = this.#around;
    const home = this.#home;
    const place = home !== undefined && draws.chance(0.8) ? home : draws.pick(places);
    if (place.process === null) return;
    const mayLose = (plan.f > 0 && plan.refits === 0) || this.#isHeldBy(place.process);
    const isWiped = wipe && mayLose;
    this.#say(
      `${place.site.id} ${isWiped ? "is wiped" : "crashes"}`,
      isWiped ? "fault: wipe" : "fault: crash",
    );
    place.life++;
    if (draws.chance(0.8)) place.process.dies();
    place.process = null;
    place.site.crash(isWiped);
    world.after(draws.pick([0, 50, 600, 2_500]) * draws.between(0.5, 1.5), () => this.#around.start(place));
  }

  /** The disk may go where a client on record that is honest has all that anybody was told. */
  #isHeldBy({ home }: SiteProcess): boolean {
    const { ledger: { row }, clients, liar, unsure: others, plan } = this.#around;
    if (home === null || row?.epoch !== home.epoch) return false;
    if (row.owners.filter(({ disk }) => disk !== 0).length !== 1) return false;
    const unsure = [liar, plan.relapses > 0 ? clients.at(-1)?.id : null];
    return clients.some(({ id, peer }) =>
      peer !== null && home.hosts.isAhead(peer) && !unsure.includes(id) && !others.has(peer)
    );
  }

  /** One site hears no other, and clients hear it. */
  #part(draws: Draws): void {
    const { places, world, network } = this.#around;
    const { site: one } = draws.pick(places), ms = draws.pick([100, 800, 2_500]);
    this.#say(`${one.id} is cut off for ${ms}`, "fault: partition");
    const untilMs = world.nowMs + ms;
    for (const { site } of places) if (site !== one) network.partition(one.id, site.id, untilMs);
  }

  #move(draws: Draws): void {
    const { places, log, probe } = this.#around, home = this.#home;
    if (home?.process == null) return;
    const to = draws.pick(places.filter((place) => place !== home)).site.id;
    log(`${home.site.id} is to move it to ${to}`);
    home.process.host.move(NAME, to, 500).then(
      () => probe("moved"),
      (error) => probe(`not moved: ${error.code}`),
    );
  }

  #deploy(): void {
    const { now, followers } = this.#around;
    now.version = now.version === SHARED ? OWNED : SHARED;
    this.#say(`the app is at ${now.version}`, `deployed ${now.version}`);
    for (const followed of [...followers]) followed();
  }

  /** A client stores what it has, and goes on; much later its program begins again with that. */
  #relapse(draws: Draws): void {
    const { clients, world, now, unsure } = this.#around, one = clients.at(-1), begin = one?.stored();
    world.after(draws.between(100, 2_000), () => {
      if (one === undefined || one.peer === null || now.isHealed) return;
      this.#say(`${one.id} begins again with what it had`, "client relapses");
      unsure.add(one.peer, "went back");
      begin?.();
    });
  }

  /** So many disks are to have the log. */
  #refit(): void {
    const { now } = this.#around;
    now.f = 1 - now.f;
    this.#say(`f is ${now.f}`, `f is ${now.f}`);
  }

  #jump(draws: Draws): void {
    const place = draws.pick(this.#around.places), ms = draws.integer(-60_000, 60_000);
    this.#say(`the clock of ${place.site.id} is set by ${ms}`, "fault: clock");
    place.jumpedMs += ms;
    place.site.jump(Math.abs(ms)); // what homes go by never goes back: for them the process stood still
  }

  /** The home dies together with a client, and an operator does not wait. */
  #force(draws: Draws): void {
    const { now, clients, world } = this.#around;
    now.isForced = true;
    this.#say("openings are forced", "forced");
    draws.pick(clients).away(draws.between(3_000, 12_000)); // hosts are waited for 6 s
    this.#crash(draws, false);
    world.after(FORCED_MS, () => now.isForced = false);
  }

  /** Knows the id of a peer, and not its key. */
  #stranger(draws: Draws): void {
    const { places, clients, world, probe } = this.#around;
    const { process } = draws.pick(places), peer = draws.pick(clients).peer;
    if (process === null || peer === null) return;
    probe("stranger");
    const line = new Line(world, draws, 0);
    process.accept(line);
    line.down.read({ frame: () => {}, broken: () => {} });
    line.end(line.up).send(encodeToHome({
      ...{ kind: "hello", peer: "client", instance: draws.integer(1, 2 ** 40), attempt: 1 },
      identity: { id: peer, key: draws.bytes(32) },
      ...{ epoch: 1, received: 0, first: 1, log: null },
    }));
    world.after(2_500, () => line.break());
  }
}
