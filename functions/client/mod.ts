/**
 * The client library: a `fetch` and a `WebSocket` for an app that go on when a site dies.
 *
 * A client knows the sites of the cluster, measures them by the requests that it makes there, and moves to another site
 * when its own is slow, dead or about to stop. Its session goes along: what the client was told at one site it finds at
 * the next. A WebSocket to a stateful session goes on exactly where it stood, whatever dies (docs/guides/client.md).
 *
 * ```ts ignore
 * import { connect } from "sojourn/client";
 *
 * const { fetch, WebSocket } = await connect({ sites: "https://edge-1.example/shop" });
 * const orders = await (await fetch("/orders/ann")).json();
 * const socket = new WebSocket("/table/7");
 * ```
 *
 * @module
 */
import { type Client, type ConnectOptions, connectWith } from "./client.ts";
import { platformHost } from "./host.ts";

export { Client, type ClientStatus, type ConnectOptions, type Move } from "./client.ts";
export { ClientError, type ClientErrorCode } from "./client_error.ts";
export { fileStorage, indexedDbStorage } from "./host.ts";
export type { ClientStorage, StorageChange } from "./ports.ts";
export type { KnownSite, ListedSite, MoveReason } from "./site_choice.ts";

/**
 * Connects to an app. Resolves when the sites are known.
 *
 * @throws ClientError `site_invalid` for a text that is no address; `sites_unreachable` where no site gives the list of
 *   sites for `giveUpMs`, and none is kept in the storage.
 */
export function connect(options: ConnectOptions): Promise<Client> {
  return connectWith(platformHost(), options);
}
