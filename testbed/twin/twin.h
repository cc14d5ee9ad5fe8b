/**
 * @file
 * The twin: all satellites of a constellation in one process under a virtual clock. Each is a router, a service and a store of the
 * flight core, the same code that flies. The network between them delays, loses, damages, doubles and reorders packets as a seeded
 * generator says. Seed and build give the same run, byte for byte, and a digest proves it.
 *
 *     twin = SKYT_Create(&config);  SKYT_SetRows, SKYT_AddBlocks, SKYT_AddOps, SKYT_AddFaults
 *     SKYT_SetDelays, SKYT_SetLinksDown, SKYT_Run(twin, until_us)   as often as the sky is to be looked at
 *     SKYT_Finish(twin)                                             what must hold when all has come to rest
 *
 * A block's content follows from its number, so that blocks that come back can be checked without a copy. The twin checks its
 * invariants while it runs; see SKYT_Invariant_t.
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

/** Way of a ground host to a satellite. */
typedef enum
{
    SKYT_UPLINK_DIRECT  = 0, /**< directly to each satellite of the window */
    SKYT_UPLINK_CENTRE  = 1, /**< over the satellite at the centre of the window */
    SKYT_UPLINK_ENTRIES = 2  /**< over the entry (SKYT_SetEntries) with the fewest hops; without entries every operation misses */
} SKYT_Uplink_t;

/** Satellites that have the schedule. The others have the window of its only row, as a constellation file gives it. */
typedef enum
{
    SKYT_SCHEDULED_ALL         = 0, /**< all satellites, and none has the window */
    SKYT_SCHEDULED_NOBODY      = 1,
    SKYT_SCHEDULED_UNTIL_CRASH = 2 /**< those that have not crashed */
} SKYT_Scheduled_t;

typedef struct
{
    uint64_t seed;
    uint64_t start_us; /**< schedule's epoch on the virtual clock; at least 1 */
    uint32_t planes, slots;
    uint32_t seam_cut;
    uint32_t layout;  /**< SKY_LayoutId_t */
    uint32_t servers; /**< servers of a block */
    uint32_t parity;  /**< servers that hold parity of a row; 0: blocks have no erasure code */
    uint32_t uplink;  /**< SKYT_Uplink_t */
    uint32_t hosts;   /**< ground hosts, numbers 1 .. hosts */
    uint32_t tenants; /**< block b belongs to tenant b mod tenants; the blocks of one group of tenants have the same key */
    uint32_t slot_bytes, slot_count; /**< size of each store */
    uint32_t packet_bytes, credit, part_lifetime_ms;
    uint32_t chunk_bytes, block_bytes; /**< largest chunk and block */
    uint32_t handover_ms;              /**< time after a row's begin for which chunks may still be at their old places */
    uint32_t active_max;               /**< most operations at a time; others wait for their turn */
    uint32_t packets_max;              /**< most packets on their way; more is a violation */
    uint32_t isl_kbps, ground_kbps;    /**< 0: unlimited */
    uint32_t queue_ms;                 /**< longest time that a packet waits for a transmitter */
    uint32_t gossip;                   /**< 1: satellites tell their neighbours which blocks they evict */
    uint32_t scrub_ms;                 /**< period in which satellites look for broken blocks; 0: never */
    uint32_t lazy_purge;               /**< 1: a host that misses a block purges what is left of it, as the manager does */
    uint32_t hello_ms;                 /**< period in which satellites greet their neighbours */
    uint32_t late_put_ms;              /**< age of the schedule by which ground hosts put */
    uint32_t chunk_us;                 /**< processing time of each chunk on board, one after the other; 0: none */
    uint32_t hang_ppm, hang_us;        /**< shares of blocks before which a satellite is silent, and for how long; 0: none */
    uint32_t asks_all;                 /**< 1: hosts ask for parity at once */
    uint32_t way_chunks;     /**< chunks on their way through one satellite to or from several; 0: the default of ground hosts */
    uint32_t violations_max; /**< violations at which the run stops; 0: never */
    uint32_t ask_first;      /**< gets of which one asks all servers first what they hold; 0: none does */
    uint32_t look_up;        /**< gets of which one looks the block up by its key first; 0: none does */
    uint32_t quota_reserved; /**< share of each store that is reserved for each tenant, in percent */
    uint32_t quota_most;     /**< share that each tenant may have at most; 0: no tenant has a quota */
    uint32_t suite;          /**< SKY_SUITE_*: what satellites and hosts, which all have keys then, ask for; 0: nobody has keys */
    uint32_t scheduled;      /**< SKYT_Scheduled_t; the schedule has one row unless all satellites have it */
    uint32_t values;         /**< names of which one is that of values, which have versions; 0: none is */
    uint32_t cancel_ppm;     /**< share of the operations that their host calls back */
    uint32_t livelock_steps; /**< steps without an operation that begins or ends that are a livelock; 0: as twin_pace.c has it */
} SKYT_Config_t;

typedef struct
{
    uint32_t block_len;
    uint32_t epoch; /**< row that the block is prefetched for, unless a put names another; 0: the current row */
} SKYT_Block_t;

typedef enum
{
    SKYT_OP_PUT      = 1,
    SKYT_OP_GET      = 2,
    SKYT_OP_PURGE    = 3,
    SKYT_OP_DELETE   = 4, /**< a put over a value of a short block, which says that it is deleted; of other blocks a put */
    SKYT_OP_TOUCH    = 5, /**< a chain of blocks, this one the first, is to count as used from its end on */
    SKYT_OP_PREFETCH = 6  /**< the block is to move to where the row `epoch` has its shares; of a value a get */
} SKYT_OpKind_t;

typedef struct
{
    uint64_t time_us;
    uint32_t kind; /**< SKYT_OpKind_t */
    uint32_t block;
    uint32_t host; /**< number of the host, from 1 */
    uint32_t deadline_ms;
    uint32_t epoch; /**< row for which a put stores the block, 0: that of the block; row of a prefetch */
} SKYT_Op_t;

/** Cause of a get that did not bring its block, or of a put that failed. */
typedef enum
{
    SKYT_CAUSE_NONE        = 0, /**< the operation ended well */
    SKYT_CAUSE_ABSENT      = 1, /**< the block was not put yet, or its put failed or is still going on */
    SKYT_CAUSE_PURGED      = 2,
    SKYT_CAUSE_CRASHED     = 3,  /**< chunks were on a satellite that crashed */
    SKYT_CAUSE_EVICTED     = 4,  /**< chunks made room for others */
    SKYT_CAUSE_SCRUBBED    = 5,  /**< satellites took the block for broken while a fault kept it from moving */
    SKYT_CAUSE_EXPIRED     = 6,  /**< the deadline passed */
    SKYT_CAUSE_UNREACHABLE = 7,  /**< no link led to a satellite, or the request ran out of hops */
    SKYT_CAUSE_NOBODY      = 8,  /**< no satellite in sight to send to */
    SKYT_CAUSE_STRANDED    = 9,  /**< a fault kept chunks from moving in time: they are held where nobody looks */
    SKYT_CAUSE_PREFETCHED  = 10, /**< chunks wait for a later row, which an earlier put named; the last put named another */
    SKYT_CAUSE_UNEXPLAINED = 11, /**< no cause is known: a violation */
    SKYT_CAUSE_REPLACED    = 12, /**< another version of the value has taken its place, or was in the way of a put */
    SKYT_CAUSE_CANCELLED   = 13  /**< its host has called it back */
} SKYT_Cause_t;
#define SKYT_CAUSES 14u

typedef struct
{
    uint64_t version; /**< of a value: what was put or got; 0: nothing, or no value */
    uint32_t ended;   /**< 1: the operation has begun and ended */
    uint32_t cause;   /**< SKYT_Cause_t */
    uint32_t duration_us;
    uint32_t tries; /**< satellites asked, the servers' fallback places included */
} SKYT_Result_t;

/** Faults of a link, in parts per million of the packets. */
typedef struct
{
    uint32_t loss_ppm;
    uint32_t burst_enter_ppm, burst_leave_ppm,
        burst_loss_ppm;               /**< Gilbert-Elliott: entering and leaving the bad state, and loss in it */
    uint32_t jitter_us;               /**< uniform in 0 .. jitter_us on top */
    uint32_t reorder_ppm, reorder_us; /**< share of packets that are held back, and for how long */
    uint32_t duplicate_ppm;
    uint32_t flip_ppm;    /**< share with one to three wrong bits anywhere in the datagram */
    uint32_t corrupt_ppm; /**< share with one to three wrong bits of a chunk, and right checksums of the packet */
    uint32_t attack_ppm;  /**< share to which the attacker does something (SKYT_AttackKind_t); only with keys */
} SKYT_Model_t;

typedef enum
{
    SKYT_FAULT_MODEL    = 1, /**< from now on @c model, on one directed link or on all */
    SKYT_FAULT_CUT      = 2, /**< @c value 1: an ISL is cut, both directions; 0: it is whole again */
    SKYT_FAULT_CRASH    = 3, /**< the store is emptied, and nothing is received */
    SKYT_FAULT_RESTART  = 4,
    SKYT_FAULT_PRESSURE = 5, /**< junk fills the store until @c value slots are free */
    SKYT_FAULT_RELIEF   = 6, /**< the junk goes */
    SKYT_FAULT_CLOCK    = 7, /**< the schedule comes @c value microseconds late on board */
    SKYT_FAULT_DROP =
        8 /**< of the packets from now on that are no hellos, the one with the number @c value is lost, from 1; 0: none */
} SKYT_FaultKind_t;

typedef struct
{
    uint64_t     time_us;
    uint32_t     kind; /**< SKYT_FaultKind_t */
    uint32_t     node; /**< (plane - 1) x slots + slot - 1 */
    uint32_t     link; /**< link of the node, or of all nodes with SKYT_ALL as node */
    uint32_t     value;
    SKYT_Model_t model;
} SKYT_Fault_t;

/** Invariants: conditions that must always hold. */
typedef enum
{
    SKYT_INVARIANT_EXACT     = 0,  /**< a get returns exactly what was put, or a miss */
    SKYT_INVARIANT_FOREIGN   = 1,  /**< no data of another tenant or key arrive */
    SKYT_INVARIANT_KEPT      = 2,  /**< no chunk is lost by migration; a get misses only for a fault that explains it */
    SKYT_INVARIANT_LIMIT     = 3,  /**< no store over its limit */
    SKYT_INVARIANT_DEADLINE  = 4,  /**< every operation ends by its deadline */
    SKYT_INVARIANT_PACKETS   = 5,  /**< packets on their way are bounded, and none is forgotten */
    SKYT_INVARIANT_ROUTE     = 6,  /**< once all satellites know which links are down, no packet comes to a satellite twice */
    SKYT_INVARIANT_LIVELOCK  = 7,  /**< the number of steps between two operations is bounded */
    SKYT_INVARIANT_OLDEST    = 8,  /**< the block that makes room in a full store is the one used longest ago */
    SKYT_INVARIANT_SHORTEST  = 9,  /**< while no link is known to be down, a packet takes a shortest way */
    SKYT_INVARIANT_LIFETIME  = 10, /**< deadlines are kept: in requests as they are sent, and for parts that are kept */
    SKYT_INVARIANT_WAITS     = 11, /**< a block prefetched for a later row waits where it was put */
    SKYT_INVARIANT_WINDOW    = 12, /**< a host's count of chunks on their way to a satellite is the sum of its shares' counts */
    SKYT_INVARIANT_LOST      = 13, /**< satellites that a ground host calls lost were down or out of reach; never are all lost */
    SKYT_INVARIANT_HELD      = 14, /**< a block that counts as whole by satellites' answers is whole */
    SKYT_INVARIANT_QUOTA     = 15, /**< no tenant has more than its quota, or less than its reserve because of another's puts */
    SKYT_INVARIANT_AUTHENTIC = 16, /**< nothing is acted upon that the attacker has made, or sent again */
    SKYT_INVARIANT_NONCE     = 17, /**< no key seals two packets under one sequence number, in no boot */
    SKYT_INVARIANT_VERSION   = 18, /**< no older version takes the place of a newer one, and none are mixed */
    SKYT_INVARIANT_REPAIRED = 19 /**< a lost chunk is back at its home soon, if the others of its row suffice and there is room */
} SKYT_Invariant_t;
#define SKYT_INVARIANTS 20u

/** What the attacker does. */
typedef enum
{
    SKYT_ATTACK_DROP   = 0, /**< it takes a packet away */
    SKYT_ATTACK_HOLD   = 1, /**< it holds one back, so that others overtake it */
    SKYT_ATTACK_REPLAY = 2, /**< it sends one again that has been acted upon */
    SKYT_ATTACK_SPOOF  = 3, /**< so it does, from another address: its own, a host's, a neighbour's */
    SKYT_ATTACK_ALTER  = 4, /**< it changes one bit that the tag covers, and mends the checksums */
    SKYT_ATTACK_STRIP  = 5, /**< it sends one without its tag */
    SKYT_ATTACK_FORGE  = 6, /**< it makes a request: data, gossip, commands, hellos, handshakes */
    SKYT_ATTACK_ANSWER = 7, /**< it makes an answer: data, `unauthenticated`, `cookie`, `bad_key`, ... */
    SKYT_ATTACK_REBOOT = 8  /**< it sends to a satellite that comes back what that got after its first boot */
} SKYT_AttackKind_t;
#define SKYT_ATTACKS 9u

/** Why nothing came of the attacker's packets that have arrived. */
typedef enum
{
    SKYT_REFUSAL_UNAUTHENTICATED = 0, /**< no association, no tag, or a wrong one */
    SKYT_REFUSAL_REPLAYED        = 1, /**< its sequence number was seen */
    SKYT_REFUSAL_NO_COOKIE       = 2, /**< it is to be passed on, and has no cookie of this satellite */
    SKYT_REFUSAL_MALFORMED       = 3, /**< it does not decode */
    SKYT_REFUSAL_STALE           = 4, /**< the host does not wait for it */
    SKYT_REFUSAL_IGNORED         = 5  /**< nothing came of it for another reason; or it is passed on */
} SKYT_Refusal_t;
#define SKYT_REFUSALS 6u

/** Reason why a run stopped before its time. */
typedef enum
{
    SKYT_STOP_NOT        = 0,
    SKYT_STOP_VIOLATIONS = 1, /**< violations_max was reached */
    SKYT_STOP_LIVELOCK   = 2
} SKYT_Stop_t;

typedef struct
{
    uint64_t time_us;
    uint32_t invariant; /**< SKYT_Invariant_t */
    uint32_t node;      /**< these four are SKYT_NONE if they do not apply */
    uint32_t op;
    uint32_t block;
    uint32_t chunk;
    char     text[SKYT_TEXT_BYTES];
} SKYT_Violation_t;

/** Counters since the twin was created. */
typedef struct
{
    uint64_t now_us;
    uint64_t digest; /**< digest of all events so far: time, place, bytes of packets */
    uint64_t events;
    uint64_t packets, packet_bytes; /**< packets and bytes sent over links */
    uint64_t packets_on_way, packets_on_way_most;
    uint64_t lost, lost_burst, lost_cut, lost_queue,
        lost_dead; /**< packets lost by chance, in a burst, or at a link or satellite that is down */
    uint64_t jittered, reordered, duplicated, flipped, corrupted;
    uint64_t damaged; /**< packets that did not decode where they arrived */
    uint64_t cuts, crashes, pressures, late_clocks;
    uint64_t puts, puts_failed, gets, hits, purges;
    uint64_t touches, touched;       /**< chains, and their blocks that satellites took for used */
    uint64_t prefetches, prefetched; /**< and those that ended well */
    uint64_t mends;                  /**< blocks that were put again well, as a get lacked shares */
    uint64_t misses[SKYT_CAUSES];
    uint64_t fallback_hits; /**< gets that needed more than the first place of each server */
    uint64_t handovers;     /**< rows that have begun to hold, but for the first */
    uint64_t migrated_chunks,
        migrated_bytes; /**< chunks acknowledged by the new satellite; bytes that arrived there, repeats included */
    uint64_t handover_us,
        handover_most_us; /**< time from a row's begin until its last chunk has come: sum of all rows, and the longest */
    uint64_t evicted_chunks, expired_parts;
    uint64_t stored_chunks; /**< chunks held now, junk included */
    uint64_t violations[SKYT_INVARIANTS];
    uint64_t blocks_checked,
        blocks_misplaced; /**< held blocks that SKYT_Finish checked; blocks of which a chunk is not at its place */
    uint64_t stopped;     /**< SKYT_Stop_t */
    uint64_t attacks[SKYT_ATTACKS];
    uint64_t refusals[SKYT_REFUSALS];
    uint64_t sealed;       /**< packets that were given a tag under a session key */
    uint64_t session_keys; /**< keys that have sealed a packet */
    uint64_t commands;     /**< commands of the mission that satellites have obeyed */
} SKYT_Counters_t;

/** Deliberate faults of the core, with which tests see each invariant fail. */
typedef enum
{
    SKYT_BREAK_NOTHING  = 0,
    SKYT_BREAK_FLIP     = 1,  /**< EXACT: a satellite damages a chunk that it sends, and makes both checksums right */
    SKYT_BREAK_SWAP     = 2,  /**< FOREIGN: a satellite sends the same chunk of another tenant instead */
    SKYT_BREAK_FORGET   = 3,  /**< KEPT: a satellite forgets a chunk from another satellite once it has acknowledged it */
    SKYT_BREAK_OVERFULL = 4,  /**< LIMIT: a satellite takes one more chunk than there are slots */
    SKYT_BREAK_DEAF     = 5,  /**< DEADLINE: the timers of ground hosts never run out */
    SKYT_BREAK_LEAK     = 6,  /**< PACKETS: the memory of arrived packets is not given back */
    SKYT_BREAK_ROUTE    = 7,  /**< ROUTE: satellites know of no links but their own */
    SKYT_BREAK_SPIN     = 8,  /**< LIVELOCK: the timers of ground hosts are always due */
    SKYT_BREAK_BABBLE   = 9,  /**< LIVELOCK: a satellite never comes to the end of an answer */
    SKYT_BREAK_NEWEST   = 10, /**< OLDEST: before it makes room, a satellite uses the block whose turn it is */
    SKYT_BREAK_DETOUR   = 11, /**< SHORTEST: answers of a satellite leave it over the wrong link */
    SKYT_BREAK_SECONDS  = 12, /**< LIFETIME: a satellite takes deadlines in a unit a thousand times too small */
    SKYT_BREAK_TRUST    = 13, /**< EXACT: a satellite makes the checksum of a chunk right instead of looking at it */
    SKYT_BREAK_RUMOUR   = 14, /**< KEPT: a satellite takes word of another's eviction for true of any block */
    SKYT_BREAK_DENY     = 15, /**< KEPT: a satellite denies chunks that it holds, of blocks that have lost others */
    SKYT_BREAK_CONSENT  = 16, /**< KEPT: a satellite that does not answer a survey counts as one with nothing left to hand over */
    SKYT_BREAK_HASTE    = 17, /**< KEPT: a satellite takes word of another's eviction for later than it is */
    SKYT_BREAK_ELSEWHERE = 18, /**< KEPT: a host asks only where a share belongs now */
    SKYT_BREAK_HURRY     = 19, /**< KEPT: a host does not look for late chunks */
    SKYT_BREAK_BLIND     = 20, /**< ROUTE: satellites use links that are silent */
    SKYT_BREAK_SEAM      = 21, /**< ROUTE: satellites send over a seam that is cut */
    SKYT_BREAK_LEAVE     = 22, /**< WAITS: a satellite ignores which row a put is for */
    SKYT_BREAK_HOARD     = 23, /**< WINDOW: a host keeps counting chunks that a share had on its way when it ended */
    SKYT_BREAK_LEASE     = 24, /**< LIFETIME: a satellite sends telemetry for ever to hosts that have once asked for it */
    SKYT_BREAK_RASH      = 25, /**< LOST: a ground host does not count every other answer when it looks around */
    SKYT_BREAK_BOAST     = 26, /**< HELD: a satellite says that it holds all chunks that a host asks about */
    SKYT_BREAK_DISOWN    = 27, /**< KEPT: a satellite says that it holds no chunk that a host asks about */
    SKYT_BREAK_CLING     = 28, /**< HELD: a satellite says that it purged a block, and keeps it */
    SKYT_BREAK_COMMON    = 29, /**< QUOTA: a satellite ignores the quotas of tenants */
    SKYT_BREAK_CREDULOUS = 30, /**< AUTHENTIC: satellites and hosts take every tag for right */
    SKYT_BREAK_OBLIVIOUS = 31, /**< AUTHENTIC: satellites forget which sequence numbers they have seen */
    SKYT_BREAK_SALT      = 32, /**< AUTHENTIC: satellites draw the same salt at each boot */
    SKYT_BREAK_STUTTER   = 33, /**< NONCE: satellites forget the last sequence number that they sent */
    SKYT_BREAK_REVERT    = 34, /**< VERSION: satellites forget a newer version of a value when an older one comes */
    SKYT_BREAK_BLEND =
        35, /**< VERSION: a satellite sends a chunk of another version of a value, and makes both checksums right */
    SKYT_BREAK_NEGLECT = 36, /**< REPAIRED: satellites never count a broken block */
    SKYT_BREAK_RUTHLESS =
        37, /**< KEPT: a host takes each satellite for settled, and each stand-in for one that holds nothing of the block */
    SKYT_BREAK_HASTY    = 38, /**< KEPT: satellites say that they are settled before they have asked anybody */
    SKYT_BREAK_MISER    = 39, /**< KEPT: satellites never ask whether who they keep chunks for is back */
    SKYT_BREAK_GULLIBLE = 40  /**< VERSION: hosts take the word of one satellite for that of as many as have to speak */
} SKYT_Break_t;

/** Create a twin. @return NULL if a number is out of range (@p why says which, in SKYT_TEXT_BYTES), or there is no memory */
SKYT_Twin_t *SKYT_Create(const SKYT_Config_t *config, char *why);
void         SKYT_Destroy(SKYT_Twin_t *twin);
/** Set the schedule: times in milliseconds since its epoch, unrolled centres. Copied. Once, first of all. @return false if unsound */
bool SKYT_SetRows(SKYT_Twin_t *twin, const uint32_t *time_ms, const int32_t *plane, const int32_t *slot, uint32_t count);
/** Add blocks, once, before the first run; copied. @return false if a block is too long, or there is no memory */
bool SKYT_AddBlocks(SKYT_Twin_t *twin, const SKYT_Block_t *blocks, uint32_t count);
/** Add operations in order of time, once, after the blocks; copied. @return false: out of order, out of range, or no memory */
bool SKYT_AddOps(SKYT_Twin_t *twin, const SKYT_Op_t *ops, uint32_t count);
bool SKYT_AddFaults(SKYT_Twin_t *twin, const SKYT_Fault_t *faults, uint32_t count);
/**
 * Change delays evenly from the current ones to these.
 * @param until_us   end of the change; not later than now: at once
 * @param isl_us     planes x slots x 4
 * @param ground_us  planes x slots
 */
void SKYT_SetDelays(SKYT_Twin_t *twin, uint64_t until_us, const uint32_t *isl_us, const uint32_t *ground_us);
/** Set links down that are behind the earth or over the seam. Both ends know. @param down  planes x slots x 4, not 0: down */
void SKYT_SetLinksDown(SKYT_Twin_t *twin, const uint8_t *down);
/** Set the nodes that the ground can send to now. @return false if there are more than nodes */
bool SKYT_SetEntries(SKYT_Twin_t *twin, const uint32_t *nodes, uint32_t count);
void SKYT_Break(SKYT_Twin_t *twin, SKYT_Break_t what);
/** Let everything happen that is due until @p until_us; then it is that time. @return false if the twin has stopped, for good */
bool SKYT_Run(SKYT_Twin_t *twin, uint64_t until_us);
/** Check, once all is over and at rest, that every block that was put is still there. A stopped twin checks nothing. */
void SKYT_Finish(SKYT_Twin_t *twin);
void SKYT_Counters(const SKYT_Twin_t *twin, SKYT_Counters_t *counters);
/** Return the outcomes of all operations, in the order of SKYT_AddOps; valid as long as the twin. */
const SKYT_Result_t *SKYT_Results(const SKYT_Twin_t *twin, uint32_t *count);
/** Return the version of a value that a satellite holds; 0 if it holds none. */
uint64_t SKYT_VersionAt(const SKYT_Twin_t *twin, uint32_t node, uint32_t block);
/** Find the holders of a chunk. @param nodes  receives at most @p most of them. @return number of them */
uint32_t SKYT_Holders(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t *nodes, uint32_t most);
/** Get one of the first SKYT_VIOLATIONS_KEPT violations. @return false if there is none with this number */
bool SKYT_Violation(const SKYT_Twin_t *twin, uint32_t index, SKYT_Violation_t *violation);

#endif
