/** What the client library reads that others wrote: lists of sites, and what an earlier page or program has kept. */
import { KeptPeer } from "../../functions/client/kept_peer.ts";
import { listedSites } from "../../functions/client/site_list.ts";
import { MemoryClientStorage } from "../../functions/client/storage.ts";
import { type Channel, HostSide } from "../../functions/sessions/attach/mod.ts";
import { mutateBytes, mutateJson, same } from "./dice.ts";
import { Finding, type Target } from "./target.ts";

const LISTS: readonly unknown[] = [
  [
    { id: "cloud", url: "https://c.example", tier: "root" },
    { id: "edge-1", url: "https://e1.example:8443/", tier: "edge" },
    { id: "edge-2", url: "http://127.0.0.1:8004", tier: "edge" },
  ],
  [{ id: "one", url: "http://h:1/shop", tier: "core" }],
];

/** Lists of sites, as a site answers them. */
export const siteLists: Target = {
  name: "site lists",
  says: "nothing, or addresses of the app, the one that the program gave first",
  reaches: ["nothing", "one", "some"],
  quick: 2_000,
  open: () => ({
    attempt: (dice) => {
      const [app, from] = [dice.pick(["shop", null]), dice.pick(["edge-1", null])];
      const own = dice.pick(["https://e1.example/shop", "http://localhost:8003"]);
      let text: string;
      try {
        text = JSON.stringify(mutateJson(dice, dice.pick(LISTS), dice.pick(LISTS))) ?? "";
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        text = "{";
      }
      const found = listedSites(text, { own, app, from });
      if (found.length > 0 && found[0]?.url !== own) throw new Finding(`${own} is not the first: ${text}`);
      for (const { url } of found) {
        if (!URL.canParse(url) || !/^https?:/.test(url)) throw new Finding(`${url} is no address: ${text}`);
        if (own.startsWith("https:") && !url.startsWith("https:")) throw new Finding(`${url} is not safe`);
      }
      return found.length > 1 ? "some" : found.length === 1 ? "one" : "nothing";
    },
  }),
};

const NAME = "ws/%2Ftable/0/";

/** Records of a session's log, as far as who holds them can read. */
const LOG = [Uint8Array.of(0, 2, ...new Uint8Array(30)), Uint8Array.of(2, ...new Uint8Array(14))];

/** What is kept of a peer. */
async function keptPeer(): Promise<[string, Uint8Array][]> {
  const storage = new MemoryClientStorage();
  const peer = await KeptPeer.open(storage, "/table");
  peer?.head({ identity: { id: "peer-1", key: new Uint8Array(32).fill(7) }, epoch: 3, received: 12 }, 5);
  for (const sequence of [5, 6, 7]) peer?.message(sequence, Uint8Array.of(0, 0x60 + sequence));
  for (const record of LOG) peer?.log.take(2, record);
  peer?.log.promise(3);
  await peer?.leave();
  return (await storage.list("")).map(([name, bytes]) => [name, bytes]);
}

/** What an earlier page has kept of a socket, and a disk has not kept well. */
export const keptPeers: Target = {
  name: "kept peers",
  says: "a host side that goes on from whole messages and a log, in order, or nothing",
  reaches: ["nothing", "as it was", "another"],
  quick: 2_000,
  open: () => {
    const original = keptPeer();
    return {
      attempt: async (dice) => {
        const kept = (await original).map(([name, bytes]): [string, Uint8Array] => [name, bytes]);
        for (let at = 0; at < kept.length; at++) {
          const [name, bytes] = kept[at] ?? ["", new Uint8Array()];
          if (dice.below(3) > 0) continue;
          const other = kept[dice.below(kept.length)]?.[1] ?? bytes;
          kept[at] = [
            dice.below(4) === 0
              ? `${NAME}${dice.pick(["m", "r"])}/${`${dice.below(20)}`.padStart(16, "0")}`
              : name,
            mutateBytes(dice, bytes, other),
          ];
        }
        if (dice.below(4) === 0) kept.splice(dice.below(kept.length), 1);
        const peer = await KeptPeer.open(new MemoryClientStorage(kept), "/table");
        const saved = peer?.saved ?? null;
        if (saved === null) return "nothing";
        const sent: Uint8Array[] = [];
        const channel: Channel = { send: (frame) => void sent.push(frame), close: () => {} };
        const side = new HostSide({
          ...{ kind: "client", instance: 1, saved, program: peer?.program ?? 0 } as const,
          clock: { nowMs: () => 0, after: () => () => {} },
          listener: { message: () => {}, lost: () => {}, closed: () => {} },
        });
        side.connected(channel);
        side.abandon();
        if (sent.length !== 1) throw new Finding(`${sent.length} hellos`);
        const held = peer?.log.promise(Number.MAX_SAFE_INTEGER) ?? [];
        const isSame = held.length === 2 &&
          held.every((record, at) => same(record, LOG[at] ?? new Uint8Array())) &&
          saved.received === 12 && saved.first === 5 && saved.messages.length === 3 &&
          saved.messages.every((each, at) => same(each, Uint8Array.of(0, 0x65 + at)));
        return isSame ? "as it was" : "another";
      },
    };
  },
};
