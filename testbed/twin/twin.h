/**
 * @file
 * The twin: all satellites of a constellation in one process under a virtual clock. Each is a router, a service and a store of the
 * flight core, the same code that flies; the network between them delays, loses, damages, doubles and reorders packets as a seeded
 * generator says. Seed and build give the same run, byte for byte, and a digest proves it.
 *
 *     twin = SKYT_Create(&config);  SKYT_SetRows, SKYT_AddBlocks, SKYT_AddOps, SKYT_AddFaults
 *     SKYT_SetDelays, SKYT_SetLinksDown, SKYT_Run(twin, until_us)   as often as the sky is to be looked at
 *     SKYT_Finish(twin)                                             what must hold when all has come to rest
 *
 * A block's content follows from its number, so that whatever comes back can be held against it without having been kept. What must
 * always hold is checked while the twin runs; see SKYT_Invariant_t.
 *
 * Not flight code: memory is taken when a twin is created and filled, never while it runs.
 */
#ifndef TWIN_H
#define TWIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKYT_NONE            UINT32_MAX /**< no node, link, operation, block, chunk */
#define SKYT_ALL             UINT32_MAX /**< every link (SKYT_FAULT_MODEL) */
#define SKYT_LINKS           6u /**< directed links that begin at a node, or end there: north, east, south, west, down, up */
#define SKYT_LINK_DOWN       4u
#define SKYT_LINK_UP         5u
#define SKYT_VIOLATIONS_KEPT 16u
#define SKYT_TEXT_BYTES      160u

typedef struct SKYT_Twin SKYT_Twin_t;

/** How a ground host reaches a satellite. */
typedef enum
{
    SKYT_UPLINK_DIRECT  = 0, /**< each satellite of the window by itself */
    SKYT_UPLINK_CENTRE  = 1, /**< over the satellite at the centre of the window */
    SKYT_UPLINK_ENTRIES = 2  /**< over the entry (SKYT_SetEntries) with the fewest hops; without entries every operation misses */
} SKYT_Uplink_t;

typedef struct
{
    uint64_t seed;
    uint64_t start_us; /**< the schedule's epoch on the virtual clock; at least 1 */
    uint32_t planes, slots;
    uint32_t seam_cut;
    uint32_t layout;  /**< SKY_LayoutId_t */
    uint32_t servers; /**< of a block */
    uint32_t uplink;  /**< SKYT_Uplink_t */
    uint32_t hosts;   /**< ground hosts, numbers 1 .. hosts */
    uint32_t tenants; /**< block b belongs to tenant b mod tenants; the blocks of one group of tenants have the same key */
    uint32_t slot_bytes, slot_count; /**< of each store */
    uint32_t packet_bytes, credit, part_lifetime_ms;
    uint32_t chunk_bytes, block_bytes; /**< the largest */
    uint32_t handover_ms;              /**< how long after a row's time chunks may still be where they were */
    uint32_t active_max;               /**< operations at a time; more wait for their turn */
    uint32_t packets_max;              /**< on their way at a time; more is a violation */
    uint32_t isl_kbps, ground_kbps;    /**< 0: unlimited */
    uint32_t queue_ms;                 /**< how long a packet may wait for a transmitter */
    uint32_t gossip;                   /**< 1: satellites tell their neighbours of what they evict */
    uint32_t scrub_ms;                 /**< period in which satellites look for broken blocks; 0: never */
    uint32_t lazy_purge;               /**< 1: a host that misses a block forgets what is left of it, as the manager does */
    uint32_t hello_ms;                 /**< period in which satellites greet their neighbours */
    uint32_t late_put_ms;              /**< ground hosts put where the schedule had the block so long ago */
    uint32_t chunk_us;                 /**< processing time of a chunk on board, one after the other; 0: none */
    uint32_t way_chunks;               /**< on their way through one satellite to or from several; 0: as ground hosts have it */
    uint32_t violations_max;           /**< the run stops at so many; 0: it never does */
    uint32_t ask_first;                /**< of so many gets, before one all servers are asked what they hold; 0: before none */
    uint32_t look_up;                  /**< of so many gets, before one its host looks the block up by its key; 0: before none */
    uint32_t livelock_steps;           /**< at once, without an operation that begins or ends; 0: as twin_pace.c has it */
} SKYT_Config_t;

typedef struct
{
    uint32_t block_len;
    uint32_t epoch; /**< row that it is laid for, where a put says nothing else; 0: that of the moment */
} SKYT_Block_t;

typedef enum
{
    SKYT_OP_PUT   = 1,
    SKYT_OP_GET   = 2,
    SKYT_OP_PURGE = 3
} SKYT_OpKind_t;

typedef struct
{
    uint64_t time_us;
    uint32_t kind; /**< SKYT_OpKind_t */
    uint32_t block;
    uint32_t host; /**< from 1 */
    uint32_t deadline_ms;
    uint32_t epoch; /**< of a put: row that it lays the block for; 0: as the block says */
} SKYT_Op_t;

/** Why a get did not bring its block, or a put did not end well. */
typedef enum
{
    SKYT_CAUSE_NONE        = 0, /**< it did */
    SKYT_CAUSE_ABSENT      = 1, /**< not put yet, or the put failed or is still going on */
    SKYT_CAUSE_PURGED      = 2,
    SKYT_CAUSE_CRASHED     = 3,  /**< chunks were on a satellite that crashed */
    SKYT_CAUSE_EVICTED     = 4,  /**< chunks made room for others */
    SKYT_CAUSE_SCRUBBED    = 5,  /**< satellites took the block for broken while a fault kept it from moving */
    SKYT_CAUSE_EXPIRED     = 6,  /**< the deadline passed */
    SKYT_CAUSE_UNREACHABLE = 7,  /**< no link led to a satellite, or the request ran out of hops */
    SKYT_CAUSE_NOBODY      = 8,  /**< no satellite in sight to send to */
    SKYT_CAUSE_STRANDED    = 9,  /**< a fault kept chunks from moving in time: they are held, where nobody looks */
    SKYT_CAUSE_LAID        = 10, /**< chunks wait for a later row, as an earlier put has said; the last one said another */
    SKYT_CAUSE_UNEXPLAINED = 11  /**< a violation */
} SKYT_Cause_t;
#define SKYT_CAUSES 12u

typedef struct
{
    uint32_t ended; /**< 1: the operation has begun and ended */
    uint32_t cause; /**< SKYT_Cause_t */
    uint32_t duration_us;
    uint32_t tries; /**< satellites asked, the servers' fallback places included */
} SKYT_Result_t;

/** What a link does to packets. Parts in a million. */
typedef struct
{
    uint32_t loss_ppm;
    uint32_t burst_enter_ppm, burst_leave_ppm, burst_loss_ppm; /**< Gilbert-Elliott: a packet in the bad state is lost so often */
    uint32_t jitter_us;                                        /**< uniform in 0 .. jitter_us on top */
    uint32_t reorder_ppm, reorder_us;                          /**< so many packets are held back for so long */
    uint32_t duplicate_ppm;
    uint32_t flip_ppm;    /**< one to three bits anywhere in the datagram */
    uint32_t corrupt_ppm; /**< one to three bits of a chunk, and the packet's own checksums are right again */
} SKYT_Model_t;

typedef enum
{
    SKYT_FAULT_MODEL    = 1, /**< from now on @c model, on one directed link or on all */
    SKYT_FAULT_CUT      = 2, /**< @c value 1: an ISL is cut, both directions; 0: it is whole again */
    SKYT_FAULT_CRASH    = 3, /**< the store is empty, nothing is received */
    SKYT_FAULT_RESTART  = 4,
    SKYT_FAULT_PRESSURE = 5, /**< junk fills the store until @c value slots are free */
    SKYT_FAULT_RELIEF   = 6, /**< the junk goes */
    SKYT_FAULT_CLOCK    = 7  /**< the schedule comes @c value microseconds late on board */
} SKYT_FaultKind_t;
#define SKYT_FAULT_KINDS 8u

typedef struct
{
    uint64_t     time_us;
    uint32_t     kind; /**< SKYT_FaultKind_t */
    uint32_t     node; /**< (plane - 1) x slots + slot - 1 */
    uint32_t     link; /**< of the node; with SKYT_ALL as node: of all */
    uint32_t     value;
    SKYT_Model_t model;
} SKYT_Fault_t;

/** What must always hold. */
typedef enum
{
    SKYT_INVARIANT_EXACT    = 0,  /**< a get returns exactly what was put, or a miss */
    SKYT_INVARIANT_FOREIGN  = 1,  /**< nothing of another tenant or key arrives as data */
    SKYT_INVARIANT_KEPT     = 2,  /**< no chunk is lost by migration; a get misses only for a fault that explains it */
    SKYT_INVARIANT_LIMIT    = 3,  /**< no store over its limit */
    SKYT_INVARIANT_DEADLINE = 4,  /**< every operation ends by its deadline */
    SKYT_INVARIANT_PACKETS  = 5,  /**< packets on their way are bounded, and none is forgotten */
    SKYT_INVARIANT_ROUTE    = 6,  /**< once all know which links are down, no packet comes to a satellite twice */
    SKYT_INVARIANT_LIVELOCK = 7,  /**< what happens between two operations is bounded */
    SKYT_INVARIANT_OLDEST   = 8,  /**< what makes room in a full store is the block that was used longest ago */
    SKYT_INVARIANT_SHORTEST = 9,  /**< where no link is known to be down, a packet takes a shortest way */
    SKYT_INVARIANT_LIFETIME = 10, /**< deadlines mean what they say: in requests as they are sent, and for parts that are kept */
    SKYT_INVARIANT_WAITS    = 11, /**< what is laid for a later row waits for it where it was put */
    SKYT_INVARIANT_WINDOW   = 12, /**< what a host counts as on its way to a satellite is what its shares have on their way */
    SKYT_INVARIANT_LOST     = 13, /**< what a ground host calls lost was down or could not be reached; never are all */
    SKYT_INVARIANT_HELD     = 14  /**< what satellites' answers make whole for a ground host is whole */
} SKYT_Invariant_t;
#define SKYT_INVARIANTS 15u

/** Why a run stopped before its time. */
typedef enum
{
    SKYT_STOP_NOT        = 0,
    SKYT_STOP_VIOLATIONS = 1, /**< there were as many as it was to stop at */
    SKYT_STOP_LIVELOCK   = 2
} SKYT_Stop_t;

typedef struct
{
    uint64_t time_us;
    uint32_t invariant; /**< SKYT_Invariant_t */
    uint32_t node;      /**< these four SKYT_NONE where they do not apply */
    uint32_t op;
    uint32_t block;
    uint32_t chunk;
    char     text[SKYT_TEXT_BYTES];
} SKYT_Violation_t;

/** Since the twin was created. */
typedef struct
{
    uint64_t now_us;
    uint64_t digest; /**< of every event so far: time, place, bytes of packets */
    uint64_t events;
    uint64_t packets, packet_bytes; /**< sent over a link */
    uint64_t packets_on_way, packets_on_way_most;
    uint64_t lost, lost_burst, lost_cut, lost_queue,
        lost_dead; /**< packets: by chance, in a burst, on a link or to a satellite that is down */
    uint64_t jittered, reordered, duplicated, flipped, corrupted;
    uint64_t damaged; /**< packets that did not decode where they arrived */
    uint64_t cuts, crashes, pressures, late_clocks;
    uint64_t puts, puts_failed, gets, hits, purges;
    uint64_t misses[SKYT_CAUSES];
    uint64_t fallback_hits; /**< gets that needed more than the first place of each server */
    uint64_t handovers;     /**< rows that have begun to hold, but for the first */
    uint64_t migrated_chunks,
        migrated_bytes; /**< acknowledged by the new satellite; bytes that arrived there, repeats included */
    uint64_t handover_us,
        handover_most_us; /**< from a row's time until the last chunk has come: all rows together, the longest */
    uint64_t evicted_chunks, expired_parts;
    uint64_t stored_chunks; /**< held now, junk included */
    uint64_t violations[SKYT_INVARIANTS];
    uint64_t blocks_checked,
        blocks_misplaced; /**< by SKYT_Finish: held blocks; of these, some chunk not where the schedule has it */
    uint64_t stopped;     /**< SKYT_Stop_t */
} SKYT_Counters_t;

/** Ways to break the core on purpose, so that tests see each invariant fail. */
typedef enum
{
    SKYT_BREAK_NOTHING   = 0,
    SKYT_BREAK_FLIP      = 1,  /**< EXACT: a satellite damages a chunk that it sends, and makes both checksums right */
    SKYT_BREAK_SWAP      = 2,  /**< FOREIGN: it sends the same chunk of another tenant instead */
    SKYT_BREAK_FORGET    = 3,  /**< KEPT: it forgets a chunk that came from another satellite once it has acknowledged it */
    SKYT_BREAK_OVERFULL  = 4,  /**< LIMIT: it takes one more chunk than there are slots */
    SKYT_BREAK_DEAF      = 5,  /**< DEADLINE: the timers of ground hosts never run out */
    SKYT_BREAK_LEAK      = 6,  /**< PACKETS: what has arrived is not given back */
    SKYT_BREAK_ROUTE     = 7,  /**< ROUTE: satellites know of no links but their own */
    SKYT_BREAK_SPIN      = 8,  /**< LIVELOCK: the timers of ground hosts are always due */
    SKYT_BREAK_BABBLE    = 9,  /**< LIVELOCK: a satellite never comes to the end of an answer */
    SKYT_BREAK_NEWEST    = 10, /**< OLDEST: before it makes room, a satellite looks at the block whose turn it is */
    SKYT_BREAK_DETOUR    = 11, /**< SHORTEST: what a satellite answers leaves it over the wrong link */
    SKYT_BREAK_SECONDS   = 12, /**< LIFETIME: a satellite takes deadlines in a unit a thousand times too small */
    SKYT_BREAK_TRUST     = 13, /**< EXACT: a satellite makes the checksum of a chunk right instead of looking at it */
    SKYT_BREAK_RUMOUR    = 14, /**< KEPT: a satellite takes word of another's eviction for true of any block */
    SKYT_BREAK_DENY      = 15, /**< KEPT: a satellite denies chunks that it holds, of blocks that have lost others */
    SKYT_BREAK_CONSENT   = 16, /**< KEPT: who does not answer a survey counts as one that has nothing left to hand over */
    SKYT_BREAK_HASTE     = 17, /**< KEPT: a satellite takes word of another's eviction for later than it is */
    SKYT_BREAK_ELSEWHERE = 18, /**< KEPT: a host asks only where a share belongs now */
    SKYT_BREAK_HURRY     = 19, /**< KEPT: a host looks for nothing that is late */
    SKYT_BREAK_BLIND     = 20, /**< ROUTE: satellites use links that are silent */
    SKYT_BREAK_SEAM      = 21, /**< ROUTE: they send over a seam that is cut */
    SKYT_BREAK_LEAVE     = 22, /**< WAITS: a satellite does not hear which row a put is for */
    SKYT_BREAK_HOARD     = 23, /**< WINDOW: a host does not give back what a share had on its way when it ended */
    SKYT_BREAK_LEASE     = 24, /**< LIFETIME: a satellite sends telemetry to who has once asked for it, for ever */
    SKYT_BREAK_RASH      = 25, /**< LOST: a ground host does not count every other answer when it looks around */
    SKYT_BREAK_BOAST     = 26, /**< HELD: a satellite says that it holds all chunks that a host asks about */
    SKYT_BREAK_DISOWN    = 27, /**< KEPT: a satellite says that it holds nothing of what a host asks about */
    SKYT_BREAK_CLING     = 28  /**< HELD: a satellite says that it purged a block, and keeps it */
} SKYT_Break_t;

/** @return NULL: a number is out of range (@p why says which, in SKYT_TEXT_BYTES), or no memory */
SKYT_Twin_t *SKYT_Create(const SKYT_Config_t *config, char *why);
void         SKYT_Destroy(SKYT_Twin_t *twin);
/** The schedule: times in milliseconds since its epoch, unrolled centres. Copied. Once, before anything else. @return false: not sound */
bool SKYT_SetRows(SKYT_Twin_t *twin, const uint32_t *time_ms, const int32_t *plane, const int32_t *slot, uint32_t count);
/** Once, before the first run; copied. @return false: a block is too long, or no memory */
bool SKYT_AddBlocks(SKYT_Twin_t *twin, const SKYT_Block_t *blocks, uint32_t count);
/** In order of time, once, after the blocks; copied. @return false: out of order, out of range, or no memory */
bool SKYT_AddOps(SKYT_Twin_t *twin, const SKYT_Op_t *ops, uint32_t count);
bool SKYT_AddFaults(SKYT_Twin_t *twin, const SKYT_Fault_t *faults, uint32_t count);
/**
 * Delays change from what they are now to these, evenly.
 * @param until_us   when they are there; not later than now: at once
 * @param isl_us     planes x slots x 4
 * @param ground_us  planes x slots
 */
void SKYT_SetDelays(SKYT_Twin_t *twin, uint64_t until_us, const uint32_t *isl_us, const uint32_t *ground_us);
/** Links that the sky does not give: behind the earth, over the seam. Both ends know. @param down  planes x slots x 4, not 0: down */
void SKYT_SetLinksDown(SKYT_Twin_t *twin, const uint8_t *down);
/** Nodes that the ground can send to now. @return false: more than there are nodes */
bool SKYT_SetEntries(SKYT_Twin_t *twin, const uint32_t *nodes, uint32_t count);
void SKYT_Break(SKYT_Twin_t *twin, SKYT_Break_t what);
/** Let everything happen that is due until @p until_us; then it is that time. @return false: it has stopped, for good */
bool SKYT_Run(SKYT_Twin_t *twin, uint64_t until_us);
/** All operations and faults are over and the twin has come to rest: is every block that was put still there? Nothing, if it stopped. */
void SKYT_Finish(SKYT_Twin_t *twin);
void SKYT_Counters(const SKYT_Twin_t *twin, SKYT_Counters_t *counters);
/** One for each operation, in the order of SKYT_AddOps; valid as long as the twin. */
const SKYT_Result_t *SKYT_Results(const SKYT_Twin_t *twin, uint32_t *count);
/** Who holds a chunk now. @param nodes  receives at most @p most of them. @return how many */
uint32_t SKYT_Holders(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t *nodes, uint32_t most);
/** The first SKYT_VIOLATIONS_KEPT. @return false: there is none with this number */
bool SKYT_Violation(const SKYT_Twin_t *twin, uint32_t index, SKYT_Violation_t *violation);

#endif
