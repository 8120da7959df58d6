/**
 * The ends of origins at the root: one for each stateful session whose class names a WebSocket or TCP server, reached by
 * homes over the links (kind `stateful-origin-way`), or from here where the root is the home.
 *
 *   head   text app · text class · text id · text version
 *   bodies frames, both ways (stateful/frame_way.ts)
 *
 * OS1  A session has one end; the next home's way takes it over.
 * OS2  The root connects only to the origin that the manifest of that version names, whoever asks. Where an agent
 *      stands for the origin the end is with the agent.
 */
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { OriginAddress } from "../../functions/origin_address.ts";
import { HostLog } from "../../functions/sessions/sealed/mod.ts";
import { Reader, Writer } from "../../store/model/codec.ts";
import type { LinkReply, LinkRequest } from "../../functions/vocabulary/site_links.ts";
import {
  channelOf,
  feed,
  type FrameWay,
  localWay,
  StreamWay,
} from "../../functions/sessions/attach/frame_way.ts";
import type { OriginAsker } from "./http_origins.ts";
import { OriginEnd } from "./origin_end.ts";
import type { OriginConnection, OriginListener } from "./plain_origin.ts";

/** Kind of these link requests. */
export const ORIGIN_WAY_KIND = "stateful-origin-way";

/** Session whose origin is wanted. */
export interface OriginWanted extends OriginAsker {
  readonly id: string;
}

/** Services of the site that the ends use. */
export interface OriginEndsServices {
  readonly originOf: (asker: OriginAsker) => Promise<OriginAddress | null>;
  readonly connect: (origin: OriginAddress, listener: OriginListener) => Promise<OriginConnection>;
  /** Hands a way to an agent that stands for the origin of a class; false: there is none. */
  readonly toAgent: (wanted: OriginWanted, way: FrameWay) => boolean;
  /** True where ends hold the logs of their sessions (origin_end.ts, OE3). */
  readonly holdsLogs: boolean;
  readonly clock: PeerClock;
  /** Draws a number from 1 to 2^53 − 1. */
  readonly draw: () => number;
  /** Writes a line to the app's log. */
  readonly log: (wanted: OriginWanted, text: string) => void;
}

/** The ends of origins at the root. */
export class OriginEnds {
  readonly #services: OriginEndsServices;
  readonly #ends = new Map<string, OriginEnd>();
  #isClosed = false;

  constructor(services: OriginEndsServices) {
    this.#services = services;
  }

  /** Number of open connections. */
  get size(): number {
    return this.#ends.size;
  }

  /** Opens a way to the end of a session's origin, within this site. */
  open(wanted: OriginWanted): FrameWay {
    const [home, end] = localWay();
    this.#taken(wanted, end);
    return home;
  }

  /** Serves a home at another site that asks for a way. @throws CodecError */
  serve({ head, body }: LinkRequest): LinkReply {
    const wanted = decodeWanted(head);
    const way = new StreamWay(this.#services.clock).read(
      body ?? new ReadableStream({ start: (at) => at.close() }),
    );
    this.#taken(wanted, way);
    return { head: new Uint8Array(), body: way.outgoing };
  }

  /** Closes the ends, as the site stops: homes that still ask for a way are to ask again when it is back. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#ends.values()]) end.close();
  }

  /** Takes a way; closes it where the origin can't be looked up: its home asks again. */
  #taken(wanted: OriginWanted, way: FrameWay): void {
    this.#take(wanted, way).catch((error) => {
      this.#services.log(wanted, `the origin of ${wanted.class} can't be looked up: ${error}`);
      way.close();
    });
  }

  /** Gives a way to its end: here, or with an agent (OS2). */
  async #take(wanted: OriginWanted, way: FrameWay): Promise<void> {
    if (this.#isClosed) return way.close();
    if (this.#services.toAgent(wanted, way)) return;
    const origin = await this.#services.originOf(wanted);
    if (this.#isClosed) return way.close();
    if (origin === null) {
      this.#services.log(
        wanted,
        `the root knows no origin of ${wanted.class} in version ${wanted.version.slice(0, 8)}`,
      );
      return way.close();
    }
    const reader = this.#end(wanted, origin).join(channelOf(way));
    await feed(way, reader, (error) => {
      this.#services.log(wanted, `the end of ${wanted.class} ${JSON.stringify(wanted.id)} failed: ${error}`);
    });
  }

  /** Returns the session's end, made where there is none (OS1). */
  #end(wanted: OriginWanted, origin: OriginAddress): OriginEnd {
    const key = JSON.stringify([wanted.app, wanted.class, wanted.id, origin.url]);
    const known = this.#ends.get(key);
    if (known !== undefined) return known;
    const { connect, clock, draw, holdsLogs, log } = this.#services;
    const end = new OriginEnd({
      ...{ clock, instance: draw(), log: holdsLogs ? new HostLog() : undefined },
      ...{ connect: (listener) => connect(origin, listener) },
      over: (why) => {
        if (this.#ends.get(key) === end) this.#ends.delete(key);
        if (why !== null) log(wanted, `the origin of ${wanted.class} ${JSON.stringify(wanted.id)}: ${why}`);
      },
    });
    this.#ends.set(key, end);
    return end;
  }
}

export const encodeWanted = ({ app, class: className, id, version }: OriginWanted): Uint8Array =>
  new Writer(128).text(app).text(className).text(id).text(version).done();

/** Decodes the session that is wanted. @throws CodecError */
export function decodeWanted(head: Uint8Array): OriginWanted {
  const reader = new Reader(head);
  const wanted = { app: reader.text(), class: reader.text(), id: reader.text(), version: reader.text() };
  reader.end();
  return wanted;
}
