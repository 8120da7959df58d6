/** The bounds and intervals of the store, each with its unit and the reason for its value. */

/**
 * Time for which a request waits for another site before it is told so (docs/http.md: source_unreachable after 2 s).
 */
export const WAIT_MS_MAX = 2_000;

/**
 * Time by which the stable clock has passed the end of an incarnation when nothing of it is on its way any more: three
 * times what an answer to an ask may take until it is in, and as long again for owners to hear of the end and act.
 */
export const LEFT_MS = 10_000;

/**
 * Bytes of rows in one message; a larger batch is split into chunks that the receiver stages (message.ts, `more`). A
 * chunk is written, and read, at one go: a few milliseconds where the rows are small.
 */
export const MESSAGE_BYTES_TARGET = 256 << 10;

/**
 * Least time between two marks to a child with nothing new but positions: a tenth of the 20 ms of a core–cloud link
 * would be wasted CPU, and each child costs a message, so the interval grows with the children.
 */
export const MARK_MS_MIN = 5;
export const MARK_MS_PER_CHILD = 0.1;
/** Time after which a neighbour that has nothing to say still says how far it is: bounds every wait on a mark. */
export const MARK_IDLE_MS = 250;
/** Time for which a child that waits on a mark gets each new one at once. */
export const EAGER_MS = 2_000;

/** Time by which a clock may be persisted ahead, so that idle marks need no disk write more than once a second. */
export const CLOCK_RESERVE_MS = 1_000;
/** Time by which a peer's clock may be ahead; beyond it the peer is refused: its writes would win for that long. */
export const CLOCK_AHEAD_MS_MAX = 60_000;
/**
 * Leap of a wall clock, up or back, beyond which the clock is not believed by itself (wall.ts): time servers set clocks
 * by seconds. It is half of what neighbours refuse, so that a clock that is believed is not refused by a neighbour that
 * is as far off.
 */
export const CLOCK_LEAP_MS_MAX = CLOCK_AHEAD_MS_MAX / 2;
/**
 * Time by which a wall clock may be behind what its site had dated, or what its parent's welcome says, and still be
 * believed at a start (wall.ts): time has passed since then. Neighbours are ahead by seconds, and so is what a disk has
 * of the clock (CLOCK_RESERVE_MS).
 */
export const CLOCK_BEHIND_MS_MAX = 5_000;
/**
 * Drift of a wall clock that is believed, ten times what quartz is off by, and what time servers correct it by: the
 * width of a leap is believed in half a day.
 */
export const CLOCK_DRIFT_MAX = 0.001;
/**
 * Time for which a wall clock has to stay where it is: a clock that was set wrong is set right within less; a machine
 * that was suspended and is alone waits so long (wall.ts B7).
 */
export const CLOCK_STAYS_MS = 60_000;
/** Age of a doubt of which an operator is told: by then a site that starts has heard its neighbours. */
export const CLOCK_DOUBT_MS = 5_000;
/** Interval at which a child whose wall clock is not believed tells its parent; its word counts three times as long. */
export const CLOCK_TELL_MS = 1_000;
/** Interval at which a refused child is asked to join again: its operator waits for it, and a hello costs little. */
export const CLOCK_RETRY_MS = 1_000;

/** Interval at which a site that adopts another asks those again that have not answered: they may be starting. */
export const GATHER_RETRY_MS = 1_000;
/** Interval at which an event is noted that an operator is to see and that may take long. */
export const NOTE_EVERY_MS = 60_000;

/** Age below which tombstones are kept whatever the stable clock says; also how long a child may be away. */
export const HORIZON_MS = 10 * 60_000;
/** Collections per horizon, that is one every 30 s: a tombstone stays a twentieth longer than it has to. */
export const COLLECTIONS_PER_HORIZON = 20;

/**
 * Part of what is left of half of all positions by which a journal jumps at each start (gaps.ts), once at least and
 * twice at most: at first by 2^35 and more, which is a year of 1,000 writes a second between a copy of its disk and the
 * day that it is put back. A site that was started every five seconds for a month still jumps by 2^26.
 */
export const JUMP_SHARE = 2 ** -17;
/**
 * Part of what is left of the lower half of the sites' numbers by which these jump at most (numbers.ts): at first by
 * 2,048 of 2^24, which is many more than are given in a day. After five thousand starts in which some were given half
 * of it is left.
 */
export const NUMBER_JUMP_SHARE = 2 ** -12;
/**
 * Gaps that are remembered, one for each start: a year and a half of a start a day, in 50 KB as the root tells all
 * sites at each of its own. The newer half is remembered whatever happens (gaps.ts JG3).
 */
export const GAPS_MAX = 500;

/**
 * Bytes of rows that the root does not have, with their keys: hours of writing on a phone's line, and little enough to
 * be read at once when the line is back (a push is of one head, PROTOCOL I1).
 */
export const PENDING_BYTES_MAX = 256 << 20;
/** Bytes that a pending row costs in memory, beside its key and value: small rows are bounded too. */
export const PENDING_ENTRY_BYTES = 256;

/** Keys remembered for a child that has not been sent them: a few megabytes, and the journal knows them all. */
export const DIRTY_KEYS_MAX = 50_000;

/** Bytes beyond which a carry is refused by the source, and the session waits instead. */
export const CARRY_BYTES_MAX = 16 << 20;

/** Bytes read from the disk between two turns of everything else: some milliseconds, most of them for checksums. */
export const STEP_BYTES = 1 << 20;
/** Rows looked at between two turns, by a read of many: about a millisecond. */
export const STEP_ROWS = 128;
/** Times that a list begins anew where rows that it has passed change meanwhile, before it is given up. */
export const LIST_TRIES = 8;
/**
 * Steps at a time of a list that neighbours change, which take twice as many at each beginning anew, at most: some
 * thousand rows, for which writers at this site wait some tens of milliseconds.
 */
export const LIST_STEPS_MAX = 32;
/**
 * Bytes of the rows that the checks and merges of one write look at: they are read while no other write of the site is
 * made. Deno KV's 100 checks of its largest values are 6 MiB.
 */
export const LOOKED_AT_BYTES_MAX = 8 << 20;

/**
 * Bytes read of the journal at once, where it is walked: of the largest rows (1 MiB) no more than some lie in memory.
 */
export const JOURNAL_BYTES = 1 << 20;

/** Bytes of rows kept in memory as the disk has them (row_cache.ts): tens of thousands of small ones. */
export const ROW_CACHE_BYTES = 16 << 20;
/**
 * Bytes of a row that is kept in memory: a longer one costs more to keep than to read again; 32 of the longest fit at
 * least.
 */
export const ROW_CACHE_ROW_BYTES_MAX = ROW_CACHE_BYTES / 2 / 32;

/** Steps kept of each monotone function (steps.ts): old positions get coarser bounds, never wrong ones. */
export const STEPS_MAX = 64;

/**
 * Answers to fetches that one flush keeps for others that ask the same (flush_reads.ts): when many join together
 * they ask for the system rows and a few of their apps' ranges; more would keep large answers in memory for nothing.
 */
export const SHARED_RANGES_MAX = 8;

/**
 * Direct children of one site. A mark to each takes a parent about 35 µs over a real link, so that all of them are told
 * once a second (MARK_MS_PER_CHILD) with a third of a core; of twice as many, some would wait for a mark longer than a
 * request waits (WAIT_MS_MAX). docs/scaling.md has the figures; a tier between is the way out.
 */
export const CHILDREN_MAX = 10_000;

/**
 * Fetches that one site has under way for its readers, about 1 KB each here and at each parent that has to ask on: more
 * than answers are on their way over the slowest of links. Where a parent is cut off from what lies above it they stay
 * until it is not, so that a program that reads new keys all the while has to be told at some point.
 */
export const FETCHES_MAX = 10_000;

/** Bytes of rows that one walk over the journal gathers for all children that come back together (flush_reads.ts). */
export const LOOK_BACK_BYTES_MAX = 64 << 20;

/**
 * Digests of one answer to a comparison (resync.ts), at 20 to 30 bytes each: fewer would take more round trips, more
 * would cost more than they tell where one row differs. A range of 100,000 rows takes four round trips.
 */
export const COMPARE_PARTS_MAX = 32;
/** Bytes of rows up to which an answer has the rows themselves: the digests of its parts would take as much. */
export const COMPARE_ROWS_BYTES = 1_024;
/** Parts of ranges that are compared at one time: a round trip is filled, and neither side holds many answers. */
export const COMPARES_MAX = 64;
/**
 * Ranges that a site covers again at one time, unasked: lists are covered page by page, and one page after the other
 * would take a round trip each.
 */
export const RESYNC_RANGES_MAX = 16;
/** Tries to compare rows that change meanwhile, after which they are fetched. */
export const COMPARE_TRIES_MAX = 3;
/** Number of rows read in one go while a range is digested. */
export const DIGEST_ROWS = 1_000;

/** Share of the capacity down to which eviction goes, so that it does not run again at the next write. */
export const EVICT_TO_SHARE = 0.9;

/**
 * Time per range before a site looks again at all ranges, where children cover more than it may hold and it looks in
 * vain: at 0.6 µs a range, this keeps that to 3 % of its time, however many there are. At a hundred thousand ranges it
 * looks every two seconds.
 */
export const EVICT_AGAIN_MS_PER_RANGE = 0.02;

/** Ranges remembered of what a session touched: about a page of an app, and 2 KB to tell another site. */
export const FOOTPRINT_RANGES_MAX = 32;
/** Sessions whose footprint is remembered; at a few hundred bytes each. */
export const FOOTPRINT_SESSIONS_MAX = 10_000;
/**
 * Time after a session came at which its footprint is asked for: rows that its first request misses are on their way
 * then.
 */
export const WARM_AFTER_MS = 20;
/** Least time between two warmings of a session at one site, where it goes away and comes back again and again. */
export const WARM_EVERY_MS = 5_000;

/** Time in which a refusal of one source stands in the log once. */
export const QUIET_MS = 60_000;
/**
 * Sources of such refusals that are remembered, at about 100 bytes each: more than a cluster has that misbehave at
 * once.
 */
export const QUIET_SOURCES_MAX = 1_024;

/** Number of other owners of a tuple: each costs its bytes once more, and GeoRep's own figures end at two. */
export const F_MAX = 8;
/** Owners of one tuple: as many as it is to have, and as many that are to leave it (owners/mend.ts). */
export const OWNERS_MAX = 2 * F_MAX + 1;
/** Sites whose round trips are measured as candidates: a beat a second to each is nothing, to 10,000 it would be. */
export const CANDIDATES_MAX = 32;
/**
 * Interval at which a site is asked from which nothing was heard; it is asked less often the longer it has been silent,
 * down to once in `BEAT_MS_MAX`, since each question dials it.
 */
export const BEAT_MS = 500;
export const BEAT_MS_MAX = 10_000;
/**
 * Silence after which a site is suspected: four beats, of which one may be lost with its connection, one with the dial
 * of the next.
 */
export const SUSPECT_MS = 2_000;
/**
 * Silence after which a site is dead: a process is restarted, and a link found dead and dialled again, in less
 * (runtime/link: 5 s).
 */
export const SILENT_SITE_MS = 10_000;
/** Interval at which a site that is heard anyway is asked for its round trip: routes change rarely. */
export const MEASURE_MS = 30_000;
/**
 * Round trip below which a site is taken for one of the same failure area: 1 ms is some 100 km, 10 ms beyond one city's
 * power.
 */
export const NEAR_MS = 10;

/**
 * Bytes that one owner holds for one source at most. It is less than what may be pending at a source
 * (PENDING_BYTES_MAX), since an owner has it in memory: a site with f ≥ 1 that is cut off from the root refuses answers
 * with owners_unreachable from here on, and acknowledges up to PENDING_BYTES_MAX only where it may without owners.
 */
export const WARD_BYTES_MAX = 64 << 20;
/** Bytes that one owner holds for all sources at most: rows of wards lie in memory. */
export const WARDS_BYTES_MAX = 512 << 20;
/** Interval at which an owner that does not answer is asked again. */
export const WARD_PROBE_MS = 250;
/**
 * Time after which rows that were sent to an owner and not acknowledged are sent again: longer than the slowest round
 * trip.
 */
export const WARD_RESEND_MS = 2_000;
/**
 * Pace of a narrow line, whose time for the rows is added to that; and the bytes of such rows that lie in a link at a
 * time.
 */
export const WARD_LINE_BYTES_PER_MS = 64;
export const WARD_LINE_BYTES_UNDER_WAY = 4 << 20;
/** Time after which an owner that was full is tried again, each time in vain twice as long after the last. */
export const WARD_FULL_MS = 1_000;
export const WARD_FULL_MS_MAX = 60_000;
/** Interval at which an owner learns what it may drop, where nothing else is said to it. */
export const WARD_IDLE_MS = 250;
/** Interval at which a former owner is told that it is none any more, until it answers. */
export const WARD_RELEASE_MS = 5_000;
/** Time for which an answer waits for owners before its request fails (docs/http.md: owners_unreachable after 2 s). */
export const OWNERS_WAIT_MS = 2_000;
/**
 * Time for which a feed waits for owners: longer than their round trip, so short that a branch does not stand still.
 */
export const FEED_WAIT_MS = 500;
/** Time after which a site that has not answered may be gone: its owners are asked beside it. */
export const STAND_IN_AFTER_MS = 100;
/** Time after which an owner that has not answered is taken for silent, and asked again. */
export const STAND_IN_MS_MAX = 600;

/** Bytes of a tuple's payload: a message of a queue, a record of a log; rows have the same limit. */
export const TUPLE_BYTES_MAX = 1 << 20;
/** Bytes of a tuple's id in UTF-8: two UUIDs with a word between them. */
export const TUPLE_ID_BYTES_MAX = 100;
/** Bytes of a tuple's topic, under which it is put: an app's name of 40 characters, a mark, and a queue's of 64. */
export const TUPLE_TOPIC_BYTES_MAX = 128;
/**
 * Bytes of a tuple's note, in which its user may write attempts, times and a reason; it is in memory, and told with
 * each change.
 */
export const TUPLE_NOTE_BYTES_MAX = 64;
/** Tuples of one use at one site, its own and those it holds for others: a million of each. */
export const TUPLES_MAX = 2_000_000;
/** Bytes of the payloads of all these tuples, on the site's disk. */
export const TUPLES_BYTES_MAX = 16 * 1_024 ** 3;
/** Ids that are remembered though their tuples are over: 5 minutes of 1,500 a second. */
export const REMEMBERED_MAX = 500_000;
/** Bytes of payloads that wait for an owner or for the disk, at one site: 10 ms of a 1 Gbit/s link, 50 times over. */
export const TUPLES_WAITING_BYTES_MAX = 64 << 20;
/** Bytes on their way to one owner that have no receipt: 25 ms at 1 Gbit/s. */
export const OWNER_WINDOW_BYTES = 4 << 20;
/** Bytes at which the entries of one packet are cut; one payload always fits. */
export const TUPLE_PACKET_BYTES_TARGET = 1 << 20;
/** Time after which packets without a receipt go again: a link that is not down answers sooner. */
export const PACKET_RETRY_MS = 1_000;
export const PACKET_RETRY_MS_MAX = 8_000;
/** Interval at which sites that share tuples hear of each other at least: so is a lost disk found out. */
export const PROBE_MS = 1_000;
/** Time for which an owner that has no room gets nothing new. */
export const OWNER_FULL_MS = 5_000;
/** Time after which other owners tell that a tuple is gone, where the one that removed it has not settled that. */
export const GONE_MS = 30_000;

/** Interval at which owners are asked again for what this site's disk had, or has damaged: they may be starting. */
export const REGAIN_EVERY_MS = 1_000;

/** Time after a start at which a disk begins to be read for damage (scrub.ts): a start has enough to do. */
export const SCRUB_BEGIN_MS = 10_000;
/**
 * Rows that are read for damage at a time: some milliseconds of reading, in which nothing else of the site runs on
 * SQLite.
 */
export const SCRUB_ROWS = 256;
/** Least time between two such reads: a percent of a core. */
export const SCRUB_STEP_MS = 250;
/**
 * Pace of these reads, 1 MiB a second at most: a hundredth of what a disk reads; a site of 1 GiB is through in 17
 * minutes.
 */
export const SCRUB_BYTES_PER_MS = 1_024;
/** Pause before the next pass: bits rot over months, and each pass reads what the system's cache could hold instead. */
export const SCRUB_PAUSE_MS = 6 * 60 * 60 * 1_000;
