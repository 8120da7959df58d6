/** Limits of queues that no app can change, with the reason for each. */
import { TUPLE_BYTES_MAX } from "../../store/model/limits.ts";

/** Bytes of what goes with a message's body: ids, a trace, a schedule of retries, a few keys. */
export const ENVELOPE_BYTES_MAX = 16_384;
/** Bytes of a message's body: with all else that goes with it, it is one tuple. */
export const QUEUE_MESSAGE_BYTES_MAX = TUPLE_BYTES_MAX - ENVELOPE_BYTES_MAX;
/** Bytes of an id that a producer gives, in UTF-8. */
export const PRODUCER_ID_BYTES_MAX = 200;
/** Bytes of the error that is kept in a message's note: with two numbers it fits a tuple's note. */
export const ERROR_BYTES_MAX = 40;
/** Messages that a function sends with one call: as many as a batch brings to an outlet. */
export const SEND_MESSAGES_MAX = 500;
/** Bytes of the bodies that a function sends with one call: half of what a frame of an isolate may have. */
export const SEND_BYTES_MAX = 4 << 20;
/** Longest lease that a consumer may ask for: what SQS allows. */
export const LEASE_MS_MAX = 12 * 3_600_000;
/** Longest delay of a message before it is due, or is tried again. */
export const DELAY_MS_MAX = 30 * 24 * 3_600_000;

/**
 * Posts to endpoints that an app may have open at one site, over all of its queues: each is a socket of the site, as
 * with the fetches of an isolate.
 */
export const WEBHOOKS_OPEN_MAX = 256;

/** Messages in one batch to an outlet. */
export const BATCH_MESSAGES_MAX = 500;
/** Bytes of messages in one batch, not counting the last message: what else is on a link waits a few milliseconds. */
export const BATCH_BYTES = 1 << 20;
/** Messages of a queue that are lent by one owner at one time: all of these are in memory. */
export const LEASED_MAX = 10_000;
/**
 * Bytes of payloads of new messages that are kept in memory for consumers that take them at once; the disk has them
 * all.
 */
export const FRESH_BYTES_MAX = 8 << 20;
/** Bytes of payloads of one queue that an outlet has, or is about to get; one message may always come. */
export const HAND_BYTES_MAX = 8 << 20;
/** Bytes of payloads of all queues that an outlet has: beyond it each queue gets one message at a time. */
export const HANDS_BYTES_MAX = 64 << 20;
/** Pulls that wait at one site for messages of a queue. */
export const PULLS_MAX = 10_000;

/**
 * Time that a site has, beyond a round trip, to want some of the messages it is offered, before the next site is
 * offered them, too.
 */
export const OFFER_PATIENCE_MS = 50;
/**
 * Time after which offers are made again, twice as long each time: a packet may be lost, and a busy outlet may be free
 * by now.
 */
export const OFFER_AGAIN_MS = 1_000;
export const OFFER_AGAIN_MS_MAX = 10_000;
/** Time for which a queue has to be empty before its owner withdraws its offers. */
export const WITHDRAW_MS = 200;
/** Time after which a batch that is not confirmed is sent again. */
export const CONFIRM_MS = 1_000;
/** Times that a batch is sent before its messages are taken back. */
export const CONFIRM_TRIES = 3;
/** Batches of an owner that an outlet remembers having had: far more than are on their way at one time. */
export const BATCHES_KNOWN = 4_096;
/** Time after which room that was promised to an owner, and is not used, is given to another. */
export const PROMISED_MS = 5_000;
/** Time for which messages for a pull that is over wait for the next pull; a client asks again at once. */
export const UNPULLED_MS = 2_000;
/** Time after which a verdict is sent to its owners again, until one of them has taken it. */
export const VERDICT_AGAIN_MS = 1_000;
/** Time after which a verdict is given up: the owners are down, and the message will come again. */
export const VERDICT_MS_MAX = 60_000;
/** Time after which the handing over of a dead message to its app is tried again. */
export const HAND_OVER_AGAIN_MS = 5_000;
/** Messages that one step handles where many are concerned: some milliseconds' work. */
export const AT_ONCE = 500;
/** Bytes of words in one packet, not counting the last word. */
export const QUEUE_PACKET_BYTES = 1 << 20;
