/** Every bound and interval of the store, with its unit and why it is what it is. */

/** How long a request waits for another site before it is told so (docs/http.md: source_unreachable after 2 s). */
export const WAIT_MS_MAX = 2_000;

/**
 * By how much the stable clock has passed the end of an incarnation when nothing of it is on its way any more: three
 * times what an answer to an ask may take until it is in, and as long again for owners to hear of the end and act.
 */
export const LEFT_MS = 10_000;

/**
 * Rows of one message; a larger batch is split into chunks that the receiver stages (message.ts, `more`). It is written, and
 * read, at one go: a few milliseconds where the rows are small.
 */
export const MESSAGE_BYTES_TARGET = 256 << 10;

/**
 * A mark with nothing new but positions goes to a child at most this often: a tenth of the 20 ms of a
 * core–cloud link would be wasted CPU, and each child costs a message, so the interval grows with the children.
 */
export const MARK_MS_MIN = 5;
export const MARK_MS_PER_CHILD = 0.1;
/** A neighbour that has nothing to say still says how far it is this often: bounds every wait on a mark. */
export const MARK_IDLE_MS = 250;
/** A child that waits on a mark gets each new one at once for so long. */
export const EAGER_MS = 2_000;

/** A clock may be persisted ahead by this much, so that idle marks need no disk write more than once a second. */
export const CLOCK_RESERVE_MS = 1_000;
/** A peer whose clock is further ahead than this is refused: its writes would win for that long. */
export const CLOCK_AHEAD_MS_MAX = 60_000;
/**
 * A wall clock that leaps further than this, up or back, is not believed by itself (wall.ts): time servers set clocks by
 * seconds. Half of what neighbours refuse, so that one that is believed is not refused by a neighbour that is as far off.
 */
export const CLOCK_LEAP_MS_MAX = CLOCK_AHEAD_MS_MAX / 2;
/**
 * A wall clock that is further behind what its site had dated is not believed at a start (wall.ts): time has passed since
 * then. Neighbours are ahead by seconds, and so is what a disk has of the clock (CLOCK_RESERVE_MS).
 */
export const CLOCK_BEHIND_MS_MAX = 5_000;
/** Ten times what quartz is off by, and what time servers correct it by: the width of a leap is believed in half a day. */
export const CLOCK_DRIFT_MAX = 0.001;
/** A clock that was set wrong is set right within less; a machine that was suspended and is alone waits so long (wall.ts B7). */
export const CLOCK_STAYS_MS = 60_000;
/** An operator is told of a doubt that is older: by then a site that starts has heard its neighbours. */
export const CLOCK_DOUBT_MS = 5_000;
/** A child whose wall clock is not believed tells its parent so this often; its word counts three times as long. */
export const CLOCK_TELL_MS = 1_000;
/** It is asked to join again this often: its operator waits for it, and a hello costs little. */
export const CLOCK_RETRY_MS = 1_000;

/** Who adopts a site asks those who have not answered again this often: they may be starting. */
export const GATHER_RETRY_MS = 1_000;
/** What an operator is to see and may take long is noted this often. */
export const NOTE_EVERY_MS = 60_000;

/** Tombstones younger than this are kept whatever the stable clock says; also how long a child may be away. */
export const HORIZON_MS = 10 * 60_000;
/** Every 30 s: a tombstone stays a twentieth longer than it has to. */
export const COLLECTIONS_PER_HORIZON = 20;

/**
 * A journal jumps at each start (gaps.ts), by between one and two of so many parts of what is left of half of all
 * positions: at first by 2^35 and more, which is a year of 1,000 writes a second between a copy of its disk and the day
 * that it is put back. A site that was started every five seconds for a month still jumps by 2^26.
 */
export const JUMP_SHARE = 2 ** -17;
/**
 * So do the numbers of sites (numbers.ts), by up to so much of what is left of the lower half: at first by 2,048 of 2^24,
 * which is many more than are given in a day. After five thousand starts in which some were given half of it is left.
 */
export const NUMBER_JUMP_SHARE = 2 ** -12;
/**
 * Of as many starts it is remembered what was left out: a year and a half of a start a day, in 50 KB as the root tells all
 * sites at each of its own. The newer half is remembered whatever happens (gaps.ts JG3).
 */
export const GAPS_MAX = 500;

/**
 * Rows that the root does not have, with their keys: hours of writing on a phone's line, and little enough to be read
 * at once when the line is back (a push is of one head, PROTOCOL I1).
 */
export const PENDING_BYTES_MAX = 256 << 20;
/** What one of them costs in memory, beside its key and value: small rows are bounded too. */
export const PENDING_ENTRY_BYTES = 256;

/** Keys remembered for a child that has not been sent them: a few megabytes, and the journal knows them all. */
export const DIRTY_KEYS_MAX = 50_000;

/** A carry above this many bytes is refused by the source and the session waits instead. */
export const CARRY_BYTES_MAX = 16 << 20;

/** Read of the disk between two turns of everything else: some milliseconds, most of them for checksums. */
export const STEP_BYTES = 1 << 20;
/** Rows looked at between two turns, by a read of many: about a millisecond. */
export const STEP_ROWS = 128;
/** How often a list begins anew where what it has passed changes meanwhile, before it is given up. */
export const LIST_TRIES = 8;
/**
 * A list that neighbours change, so that it begins anew again, takes twice as many steps at a time as before, up to so many:
 * some thousand rows, for which whoever writes at this site waits some tens of milliseconds.
 */
export const LIST_STEPS_MAX = 32;
/**
 * Of the rows that the checks and merges of one write look at: they are read while no other write of the site is made. Deno
 * KV's 100 checks of its largest values are 6 MiB.
 */
export const LOOKED_AT_BYTES_MAX = 8 << 20;

/** Read of the journal at once, where it is walked: of the largest rows (1 MiB) no more than some lie in memory. */
export const JOURNAL_BYTES = 1 << 20;

/** Rows kept in memory as the disk has them (row_cache.ts): tens of thousands of small ones. */
export const ROW_CACHE_BYTES = 16 << 20;
/** A longer row costs more to keep than to read again: 32 of them at least fit. */
export const ROW_CACHE_ROW_BYTES_MAX = ROW_CACHE_BYTES / 2 / 32;

/** Steps kept of each monotone function (steps.ts): old positions get coarser bounds, never wrong ones. */
export const STEPS_MAX = 64;

/**
 * Answers to fetches that one flush keeps for others that ask the same (flush_reads.ts): when many join together
 * they ask for the system rows and a few of their apps' ranges; more would keep large answers in memory for nothing.
 */
export const SHARED_RANGES_MAX = 8;

/**
 * Direct children of one site. A mark to each takes a parent about 35 µs over a real link, so that so many are told
 * once a second (MARK_MS_PER_CHILD) with a third of a core; of twice as many, some would wait for a mark longer
 * than a request waits (WAIT_MS_MAX). docs/scaling.md has the figures; a tier between is the way out.
 */
export const CHILDREN_MAX = 10_000;

/**
 * Fetches that one site has under way for its readers, about 1 KB each here and at each parent that has to ask on: more
 * than answers are on their way over the slowest of links. Where a parent is cut off from what lies above it they stay
 * until it is not, so that whoever reads new keys all the while has to be told at some point.
 */
export const FETCHES_MAX = 10_000;

/** Rows that one walk over the journal gathers for all children that come back together (flush_reads.ts). */
export const LOOK_BACK_BYTES_MAX = 64 << 20;

/**
 * Digests of one answer to a comparison (resync.ts), at 20 to 30 bytes each: fewer would take more round trips, more
 * would cost more than they tell where one row differs. A range of 100,000 rows takes four round trips.
 */
export const COMPARE_PARTS_MAX = 32;
/** So little is sent as rows: the digests of its parts would take as much. */
export const COMPARE_ROWS_BYTES = 1_024;
/** Parts of ranges that are compared at one time: a round trip is filled, and neither side holds many answers. */
export const COMPARES_MAX = 64;
/**
 * Ranges that a site covers again at one time, unasked: lists are covered page by page, and one page after the other
 * would take a round trip each.
 */
export const RESYNC_RANGES_MAX = 16;
/** Where rows change faster than they can be compared, they are fetched after so many tries. */
export const COMPARE_TRIES_MAX = 3;
/** Rows read in one go while a range is digested. */
export const DIGEST_ROWS = 1_000;

/** Eviction goes down to this share of the capacity, so that it does not run again at the next write. */
export const EVICT_TO_SHARE = 0.9;

/**
 * Where what children cover is more than a site may hold, it looks at all ranges in vain: at 0.6 µs a range, this
 * keeps that to 3 % of its time, however many there are. Of a hundred thousand it looks every two seconds.
 */
export const EVICT_AGAIN_MS_PER_RANGE = 0.02;

/** Ranges remembered of what a session touched: about a page of an app, and 2 KB to tell another site. */
export const FOOTPRINT_RANGES_MAX = 32;
/** Sessions whose footprint is remembered; at a few hundred bytes each. */
export const FOOTPRINT_SESSIONS_MAX = 10_000;
/** A session's footprint is asked for this long after it came, when what its first request misses is on its way. */
export const WARM_AFTER_MS = 20;
/** A session that goes there and back again is warmed at most this often at one site. */
export const WARM_EVERY_MS = 5_000;

/** What a source is refused for stands in the log once in so long. */
export const QUIET_MS = 60_000;
/** Sources remembered for that, at about 100 bytes each: more than a cluster has that misbehave at once. */
export const QUIET_SOURCES_MAX = 1_024;

/** Other owners of a tuple: each costs its bytes once more, and GeoRep's own figures end at two. */
export const F_MAX = 8;
/** Owners of one tuple: as many as it is to have, and as many that are to leave it (owners/mend.ts). */
export const OWNERS_MAX = 2 * F_MAX + 1;
/** Sites whose round trips are measured as candidates: a beat a second to each is nothing, to 10,000 it would be. */
export const CANDIDATES_MAX = 32;
/**
 * A site from which nothing was heard is asked this often; it is asked less often the longer it has been silent, down
 * to once in `BEAT_MS_MAX`, since each question dials it.
 */
export const BEAT_MS = 500;
export const BEAT_MS_MAX = 10_000;
/** Four beats: one may be lost with its connection, one with the dial of the next. */
export const SUSPECT_MS = 2_000;
/** A process is restarted, and a link found dead and dialled again, in less (runtime/link: 5 s). */
export const SILENT_SITE_MS = 10_000;
/** A site that is heard anyway is asked for its round trip this often: routes change rarely. */
export const MEASURE_MS = 30_000;
/** Nearer than this is taken for the same failure area: 1 ms is some 100 km, 10 ms beyond one city's power. */
export const NEAR_MS = 10;

/**
 * What one owner holds for one source at most. It is less than what may be pending at a source (PENDING_BYTES_MAX),
 * since an owner has it in memory: a site with f ≥ 1 that is cut off from the root refuses answers with
 * owners_unreachable from here on, and acknowledges up to PENDING_BYTES_MAX only where it may without owners.
 */
export const WARD_BYTES_MAX = 64 << 20;
/** And for all of them: rows of wards lie in memory. */
export const WARDS_BYTES_MAX = 512 << 20;
/** An owner that does not answer is asked again this often. */
export const WARD_PROBE_MS = 250;
/** What was sent to an owner and not acknowledged is sent again after this: longer than the slowest round trip. */
export const WARD_RESEND_MS = 2_000;
/** That, and the time that rows take over so narrow a line; no more of them than so many lie in a link at a time. */
export const WARD_LINE_BYTES_PER_MS = 64;
export const WARD_LINE_BYTES_UNDER_WAY = 4 << 20;
/** An owner that was full is tried again after so long, each time in vain twice as long after the last. */
export const WARD_FULL_MS = 1_000;
export const WARD_FULL_MS_MAX = 60_000;
/** An owner learns this often what it may drop, where nothing else is said to it. */
export const WARD_IDLE_MS = 250;
/** An owner that is none any more is told so this often, until it answers. */
export const WARD_RELEASE_MS = 5_000;
/** How long an answer waits for owners before its request fails (docs/http.md: owners_unreachable after 2 s). */
export const OWNERS_WAIT_MS = 2_000;
/** How long a feed waits for owners: longer than their round trip, so short that a branch does not stand still. */
export const FEED_WAIT_MS = 500;
/** A site that has not answered by then may be gone: its owners are asked beside it. */
export const STAND_IN_AFTER_MS = 100;
/** An owner that has not answered by then is taken for silent, and asked again. */
export const STAND_IN_MS_MAX = 600;

/** A tuple's payload: a message of a queue, a record of a log; rows have the same limit. */
export const TUPLE_BYTES_MAX = 1 << 20;
/** A tuple's id in UTF-8: two UUIDs with a word between them. */
export const TUPLE_ID_BYTES_MAX = 100;
/** What a tuple is put under: an app's name and a queue's, of 40 characters each. */
export const TUPLE_TOPIC_BYTES_MAX = 100;
/** What a user may write beside a tuple: attempts, times and a reason; it is in memory, and told with each change. */
export const TUPLE_NOTE_BYTES_MAX = 64;
/** Tuples of one use at one site, its own and those it holds for others: a million of each. */
export const TUPLES_MAX = 2_000_000;
/** And all their payloads, on its disk. */
export const TUPLES_BYTES_MAX = 16 * 1_024 ** 3;
/** Ids that are remembered though what had them is over: 5 minutes of 1,500 a second. */
export const REMEMBERED_MAX = 500_000;
/** Payloads that wait for an owner or for the disk, at one site: 10 ms of a 1 Gbit/s link, 50 times over. */
export const TUPLES_WAITING_BYTES_MAX = 64 << 20;
/** Bytes on their way to one owner that have no receipt: 25 ms at 1 Gbit/s. */
export const OWNER_WINDOW_BYTES = 4 << 20;
/** Entries of one packet are cut there; one payload always fits. */
export const TUPLE_PACKET_BYTES_TARGET = 1 << 20;
/** Packets without a receipt go again after this long: a link that is not down answers sooner. */
export const PACKET_RETRY_MS = 1_000;
export const PACKET_RETRY_MS_MAX = 8_000;
/** Sites that share tuples hear of each other at least this often: so is a lost disk found out. */
export const PROBE_MS = 1_000;
/** An owner that has no room gets nothing new for so long. */
export const OWNER_FULL_MS = 5_000;
/** What is gone is told by others when who removed it has not settled it for so long. */
export const GONE_MS = 30_000;

/** Owners are asked again this often for what this site's disk had, or has damaged: they may be starting. */
export const REGAIN_EVERY_MS = 1_000;

/** A disk is read for damage (scrub.ts) some seconds after a start, which has enough to do, */
export const SCRUB_BEGIN_MS = 10_000;
/** so many rows at a time: some milliseconds of reading, in which nothing else of the site runs on SQLite, */
export const SCRUB_ROWS = 256;
/** at most this often, a percent of a core, */
export const SCRUB_STEP_MS = 250;
/** and no faster than 1 MiB a second: a hundredth of what a disk reads; a site of 1 GiB is through in 17 minutes. */
export const SCRUB_BYTES_PER_MS = 1_024;
/** Then not for so long: bits rot over months, and each pass reads what the system's cache could hold instead. */
export const SCRUB_PAUSE_MS = 6 * 60 * 60 * 1_000;
