/** Moves of stateful sessions broken on purpose: see broken.ts. */
import { decodeLogPacket, encodeLogPacket } from "../../../functions/sessions/log/packet.ts";
import type { Wrongs } from "./stateful_site.ts";

/** Whoever opens a session takes its own disk for one of its owners: it has a log, since it was to move there. */
export function guests(): Wrongs {
  const acquires = new Set<string>();
  return {
    sends: (site, _to, bytes) => {
      const packet = decodeLogPacket(bytes);
      // What may be lost by chance, too: owners that were asked, former ones that were told.
      const isDeaf = Math.floor(site.options.world.nowMs / 1_500) % 4 !== 0;
      const asks = packet.asks.filter(({ number, body: { kind } }) => {
        if (kind === "acquire") acquires.add(`${site.id} ${site.boot} ${number}`);
        return kind !== "forget" && !(kind === "promise" && isDeaf);
      });
      return encodeLogPacket({ ...packet, asks });
    },
    receives: (site, from, bytes) => {
      const packet = decodeLogPacket(bytes);
      const replies = packet.replies.map(({ number, body }) => {
        const isGrant = body.kind === "row" && body.outcome === "granted" &&
          acquires.has(`${site.id} ${site.boot} ${number}`);
        if (!isGrant || body.row === null) return { number, body };
        const { owners } = body.row, { disk = 0 } = site.homes?.status() ?? {};
        if (owners.length === 0 || owners.some((one) => one.site === site.id)) return { number, body };
        return {
          number,
          body: { ...body, row: { ...body.row, owners: [...owners, { site: site.id, disk }] } },
        };
      });
      return [from, encodeLogPacket({ ...packet, replies })];
    },
  };
}
