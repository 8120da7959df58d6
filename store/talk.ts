/**
 * Messages that any site may send to any other, whether or not the two share a tree edge: they concern none, and may
 * overtake what a neighbour sent.
 */
import type { Adoptions } from "./change/adoption.ts";
import type { Core } from "./core/core.ts";
import type { Handoff } from "./session/handoff.ts";
import { decodeMessage, type Message } from "./wire/message.ts";
import type { SiteOwners } from "./owners/site_owners.ts";
import type { SiteId } from "./model/ports.ts";
import { isWardTalk } from "./wire/ward_message.ts";
import type { Wards } from "./wards/wards.ts";
import type { Warming } from "./session/warming.ts";

interface Listeners {
  readonly owners: SiteOwners;
  readonly handoff: Handoff;
  readonly wards: Wards;
  readonly adoptions: Adoptions;
  readonly warming: Warming;
  fail(error: unknown): void;
}

/** Decodes a message of another site; null where it is none. */
export function siteMessageOf(core: Core, from: SiteId, bytes: Uint8Array): Message | null {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    core.refused("message_malformed", from, { error: String(error) });
    return null;
  }
}

/** Hands a message of that sort to the part that it concerns; false for one between neighbours. */
export function isTalk(from: SiteId, message: Message, to: Listeners): boolean {
  const answering = (answer: Promise<void>) => void answer.catch((error) => to.fail(error));
  to.owners.detector.heard(from);
  if (message.kind === "beat") to.owners.detector.received(from, message);
  else if (message.kind === "tuples") to.owners.received(from, message);
  else if (message.kind === "carry") to.handoff.answered(from, message);
  else if (message.kind === "ask") answering(to.handoff.asked(from, message));
  else if (isWardTalk(message)) to.wards.receive(from, message);
  else if (message.kind === "gather") answering(to.adoptions.asked(from, message));
  else if (message.kind === "gathered") to.adoptions.answered(from, message);
  else if (message.kind === "warm") to.warming.asked(from, message.session);
  else if (message.kind === "footprint") answering(to.warming.told(message.ranges));
  else return false;
  return true;
}
