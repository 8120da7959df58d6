/** Limits of queues that no app can change, with the reason for each. */
import { TUPLE_BYTES_MAX } from "../../store/model/limits.ts";

/** What goes with a message's body: ids, a trace, a schedule of retries, a few keys. */
export const ENVELOPE_BYTES_MAX = 16_384;
/** A message's body: with all else that goes with it, it is one tuple. */
export const QUEUE_MESSAGE_BYTES_MAX = TUPLE_BYTES_MAX - ENVELOPE_BYTES_MAX;
/** An id that a producer gives, in UTF-8. */
export const PRODUCER_ID_BYTES_MAX = 200;
/** Of an error that is kept beside a message: with two numbers it fits a tuple's note. */
export const ERROR_BYTES_MAX = 40;
/** As long as any consumer may keep a message to itself: what SQS allows. */
export const LEASE_MS_MAX = 12 * 3_600_000;
/** So far ahead a message may be sent to come due, or tried again. */
export const DELAY_MS_MAX = 30 * 24 * 3_600_000;

/** Messages that one batch brings to an outlet. */
export const BATCH_MESSAGES_MAX = 500;
/** And their bytes, but for the last one's: what else is on a link waits a few milliseconds. */
export const BATCH_BYTES = 1 << 20;
/** Messages of a queue that consumers have at one time, of one owner: all of these are in memory. */
export const LEASED_MAX = 10_000;
/** Payloads of new messages that are kept for who takes them at once; the disk has them all. */
export const FRESH_BYTES_MAX = 8 << 20;
/** Payloads of one queue that an outlet has, or is about to get; one message may always come. */
export const HAND_BYTES_MAX = 8 << 20;
/** Payloads of all queues that an outlet has: beyond it each queue gets one message at a time. */
export const HANDS_BYTES_MAX = 64 << 20;
/** Pulls that wait at one site for messages of a queue. */
export const PULLS_MAX = 10_000;

/** A site that is offered messages has this beyond a round trip to want some, before the next one is asked too. */
export const OFFER_PATIENCE_MS = 50;
/** Offers are made again after this, twice as long each time: a packet may be lost, and who was busy is not any more. */
export const OFFER_AGAIN_MS = 1_000;
export const OFFER_AGAIN_MS_MAX = 10_000;
/** A queue that is empty for less need not say so. */
export const WITHDRAW_MS = 200;
/** A batch that is not confirmed in this time goes again. */
export const CONFIRM_MS = 1_000;
/** And after so many times its messages are taken back. */
export const CONFIRM_TRIES = 3;
/** Batches of an owner that an outlet knows to have had: far more than are on their way at one time. */
export const BATCHES_KNOWN = 4_096;
/** Room that was promised to an owner, and not used, is somebody else's after this. */
export const PROMISED_MS = 5_000;
/** Messages for a pull that is over wait so long for the next one; a client asks again at once. */
export const UNPULLED_MS = 2_000;
/** What a consumer said is told its owners again after this, until one of them has taken it. */
export const VERDICT_AGAIN_MS = 1_000;
/** And given up after this: the owners are down, and the message will come again. */
export const VERDICT_MS_MAX = 60_000;
/** What could not be done with a dead message is tried again after this. */
export const HAND_OVER_AGAIN_MS = 5_000;
/** Messages that one step does something with where many are concerned: some milliseconds. */
export const AT_ONCE = 500;
/** Bytes of words that one packet has, but for the last word's. */
export const QUEUE_PACKET_BYTES = 1 << 20;
