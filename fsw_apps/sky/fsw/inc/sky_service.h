/**
 * @file
 * The hashtable service: requests in, responses out, on top of the chunk store. Sans I/O: packets, time and randomness come in
 * as arguments; what is to be sent is pulled packet by packet, as head + body + tail, where the body of a GET lies in the store
 * itself.
 *
 *     SKY_Service_Begin(svc, now_us, &pkt);           for each packet at APID kvc
 *     while (SKY_Service_Next(svc, now_us, &out))     send it, or collect it and send the whole burst
 *
 *     SKY_Service_Poll(svc, now_us, &next_us);        after each batch of packets, and at next_us
 *     while (SKY_Service_Next(svc, now_us, &out))     as above
 *
 * Work per call is bounded: Begin looks up at most SKY_LIMIT_CHUNK_SET chunks or takes in one packet (an eviction or PURGE walks
 * over the chunks of one block, a MIGRATE of all blocks over the table of blocks); Next makes one packet; a burst is at most
 * `credit` chunks, and as many again for each migration. Besides, words of gossip (sky_service_gossip.c) go out with any pull, one
 * packet each, a question of the scrub (sky_service_scrub.c), and 16 of the survey (sky_service_survey.c).
 */
#ifndef SKY_SERVICE_H
#define SKY_SERVICE_H

#include "sky_schedule.h"
#include "sky_store.h"
#include "sky_torus.h"
#include "sky_transfer.h"

#define SKY_SERVICE_MIGRATIONS       4u                            /**< at a time */
#define SKY_SERVICE_JOBS             (SKY_SERVICE_MIGRATIONS + 1u) /**< and one more, which requests cannot take: the handover's */
#define SKY_SERVICE_REQUEST_LANES    16u /**< of a migration that was asked for: blocks under way at a time */
#define SKY_SERVICE_HANDOVER_LANES   64u /**< of the handover */
#define SKY_SERVICE_LANES            (SKY_SERVICE_MIGRATIONS * SKY_SERVICE_REQUEST_LANES + SKY_SERVICE_HANDOVER_LANES)
#define SKY_SERVICE_LANE_CHUNKS      64u      /**< chunk ids that one lane goes over */
#define SKY_SERVICE_WINDOW_MAX       256u     /**< chunks on their way to one satellite, at most: 1.5 MB of 6 kB */
#define SKY_SERVICE_MIGRATION_MS     60000u   /**< how long one may take when its request has no deadline */
#define SKY_SERVICE_MIGRATION_MAX_MS 3600000u /**< and at most, whatever deadline its request has */
#define SKY_SERVICE_MIGRATION_TRIES  6u /**< questions in a row that the target leaves unanswered: the job ends (about 12 s) */
#define SKY_SERVICE_MIGRATION_ROUNDS 8u /**< in a row that deliver nothing: the chunks of the lane are checked */
#define SKY_SERVICE_HANDOVER_LOOK_US 1000000u  /**< after what came late, and between two looks for what a handover has left */
#define SKY_SERVICE_HANDOVER_MAX_US  16000000u /**< the latter doubles to this while nothing can be handed over */
#define SKY_SERVICE_EXPIRE_SLOTS     256u      /**< looked at by one Poll */
#define SKY_SERVICE_EXPIRE_US        50000u    /**< between two Polls while there are incomplete chunks */
#define SKY_SERVICE_WORDS            32u       /**< of gossip, that are known or still to be passed on: bits of a uint32_t */
#define SKY_SERVICE_SCRATCH_BYTES    512u
#define SKY_SERVICE_PACKET_MIN       (SKY_RESPONSE_OVERHEAD + SKY_CHUNKSET_MAX_BYTES) /**< smallest packet_bytes */

/** One packet to send. @c body is valid until the next Begin or Poll. */
typedef struct
{
    SKY_Addr_t     dst;     /**< of the packet; the router decides over which link */
    SKY_Addr_t     gateway; /**< when dst is a ground host */
    uint8_t        head[SKY_HEAD_MAX];
    uint32_t       head_len;
    const uint8_t *body;
    uint32_t       body_len;
    uint8_t        tail[SKY_PEC_BYTES];
} SKY_Out_t;

typedef struct
{
    SKY_Addr_t  self;
    SKY_Torus_t torus;            /**< MIGRATE targets are checked against it */
    uint32_t    packet_bytes;     /**< largest packet of the links; SKY_LIMIT_FRAGMENTS of them carry a chunk that fills a slot */
    uint32_t    credit;           /**< chunks that a PUT burst may have; largest GET burst; 1 .. SKY_LIMIT_CHUNK_SET */
    uint32_t    part_lifetime_ms; /**< of an incomplete chunk; less if its PUT has a nearer deadline */
    uint64_t    clock_offset_us;  /**< from now_us to satellite time, which responses carry */
    bool        migrate_all_from_ground; /**< take MIGRATE of a whole tenant (key all 0) from ground hosts too: it needs no key.
                                              false: only from satellites, this one included (schedule, bus); others REFUSED */
    bool     gossip; /**< tell neighbours of blocks that are evicted, purge what they tell of, and pass it on. false: neither */
    uint32_t scrub_period_ms; /**< all blocks are looked at once in it, if there is a schedule; 0: never */
    uint32_t handover_ms;     /**< a handover that takes longer is late; 0: only one that takes longer than its row is */
} SKY_ServiceCfg_t;

/** Counters in the order of `stats.kvc` of the ICD are made from these and the store's. */
typedef struct
{
    uint64_t requests;
    uint64_t puts;                          /**< PUT packets taken in */
    uint64_t gets;                          /**< GET requests */
    uint64_t hits, misses;                  /**< chunks sent, chunks asked for and not here */
    uint64_t purges;                        /**< chunks purged */
    uint64_t migrated_out;                  /**< chunks acknowledged by another satellite */
    uint64_t migrated_in;                   /**< chunks put by another satellite */
    uint64_t handovers;                     /**< rows of the schedule in which something had to be handed over */
    uint64_t unsolicited;                   /**< responses that belong to no migration */
    uint64_t gossip_tx;                     /**< words told to a neighbour */
    uint64_t gossip_purged;                 /**< chunks purged at a neighbour's word */
    uint64_t scrubbed;                      /**< chunks purged because their block was found broken */
    uint64_t gossip_lost;                   /**< words that were not told to all, because newer ones took their place */
    uint64_t errors[SKY_STATUS_SHORT + 1u]; /**< requests refused, and packets that were none, by status */
} SKY_ServiceCounters_t;

/** A part of a migration that is under way: chunks of one block. */
typedef struct
{
    bool       active;
    SKY_Push_t push;
    uint16_t   asked_by[SKY_SERVICE_LANE_CHUNKS]; /**< of the push */
    uint8_t    payload[SKY_CHUNKSET_MAX_BYTES];   /**< of its last query; stays until the next pull */
} SKY_Lane_t;

/** A migration: chunks of blocks, the block used last first, pushed to another satellite. Many blocks are under way at a time. */
typedef struct
{
    bool            active;
    bool            keep;
    bool            all_blocks;  /**< of the tenant */
    bool            all_tenants; /**< of every tenant; tenant is that of the block that is begun next */
    bool            walked;      /**< the rest of what is to go is in lanes */
    bool            cutting;     /**< in this pull, part of a chunk has been sent */
    uint32_t        tenant;
    uint8_t         key[SKY_KEY_BYTES]; /**< of the block that is begun next */
    SKY_StoreWalk_t walk;               /**< over all blocks */
    uint32_t        from;               /**< chunks of that block below have been dealt with */
    uint32_t        lanes;              /**< active */
    uint64_t        asked;              /**< bit of a lane: in this pull it has sent a query, whose payload must stay */
    uint32_t        turn;               /**< number of the lane that sends next in this pull */
    uint32_t        budget;             /**< chunks that may still be sent in this pull */
    uint32_t        moved;              /**< chunks that the target has acknowledged or will never take */
    uint32_t        stride, server;     /**< chunks server, server + stride, ...; the others of the block stay */
    uint32_t        row;                /**< what waits for a later one stays */
    uint32_t        epoch;              /**< that the target is told; 0: the block's own */
    SKY_Addr_t      target;
    uint64_t        deadline_us;
    SKY_Peer_t      peer;        /**< window and timers, for all lanes together */
    SKY_Packet_t    request;     /**< the PUT or HAS at hand */
    SKY_ChunkView_t chunk;       /**< while cutting */
    uint32_t        part_offset; /**< while cutting: of the next part */
} SKY_Migration_t;

/** A word of gossip: a block of which a share is gone. */
typedef struct
{
    uint32_t tenant;
    uint8_t  key[SKY_KEY_BYTES];
    uint16_t credit;   /**< with which it is passed on */
    uint8_t  links;    /**< bit (1 << link): neighbours that are still to be told */
    uint64_t until_us; /**< until then it is known */
} SKY_Word_t;

typedef struct
{
    SKY_Word_t words[SKY_SERVICE_WORDS]; /**< a ring */
    uint32_t   next;                     /**< whose place the next new word takes */
    uint32_t   waiting;                  /**< bit (1 << index): words with links */
} SKY_Gossip_t;

/** Where this satellite stands in the schedule. */
typedef struct
{
    const SKY_Schedule_t *schedule;   /**< NULL: nothing moves by itself */
    uint32_t              row;        /**< that held at the last Poll */
    uint64_t              row_end_us; /**< 0: not looked at yet */
    uint32_t              home;       /**< server whose chunks belong here in that row; the number of servers: none */
    uint32_t              last;       /**< server whose chunks were the last to go */
    uint64_t              look_us;    /**< when to look for chunks that belong elsewhere; UINT64_MAX: there are none */
    uint64_t              pause_us;   /**< to the next look, if it finds any */
    uint64_t              since_us;   /**< when the first of what is to be handed over was to go; 0: nothing is */
    uint32_t              left;  /**< chunks to be handed over, as far as the last look and what has come and gone since tell */
    bool                  begun; /**< in this row */
    uint32_t              late;  /**< handovers by this schedule that took longer than cfg.handover_ms or than their row; the last
                                      of them may still go on */
    uint32_t              late_done; /**< of these, how many are done */
    uint64_t              lasted_ms; /**< how long the last of those took */
} SKY_Handover_t;

/** What the scrub does about the server after this one. */
typedef enum
{
    SKY_SCRUB_IDLE = 0,
    SKY_SCRUB_ASK,  /**< a question is to be sent */
    SKY_SCRUB_ASKED /**< and has been */
} SKY_ScrubState_t;

/** The look for incomplete blocks. */
typedef struct
{
    SKY_ScrubState_t state;
    uint32_t         cursor;   /**< of SKY_Store_NextBlock */
    uint64_t         next_us;  /**< of the next look, or when the answer is late */
    uint64_t         rest_us;  /**< no look before */
    uint32_t         row;      /**< of the schedule at the last look */
    uint64_t         look_us;  /**< when that was */
    uint64_t         since_us; /**< first look in that row: what was suspected before does not count */
    uint32_t         tenant;   /**< the block asked about */
    uint8_t          key[SKY_KEY_BYTES];
    SKY_Addr_t       server;
    uint64_t         request_id;
    uint32_t         base; /**< chunk set of the question */
    uint32_t         count;
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES];
    uint32_t         payload_len;
} SKY_Scrub_t;

/** What is known of other satellites' handovers. */
typedef struct
{
    bool     is_wanted;  /**< to be found out */
    uint32_t row;        /**< of the schedule, that it is about */
    uint32_t asked;      /**< satellites in a row, none of which has said that it has anything left */
    uint32_t first;      /**< number of the first satellite of the group that is asked */
    uint32_t next;       /**< and of the first after it */
    uint32_t to_ask;     /**< bits of the group: still to be asked */
    uint32_t waiting;    /**< bits of the group: not answered yet */
    uint64_t until_us;   /**< when answers are late; without a group, when the next one begins */
    uint64_t settled_us; /**< when all had been asked; 0: they have not */
    uint64_t request_id;
} SKY_Survey_t;

/** What Next makes of the packet that Begin was given. */
typedef enum
{
    SKY_SERVICE_IDLE = 0,
    SKY_SERVICE_REPLY,  /**< one response, ready */
    SKY_SERVICE_CHUNKS, /**< GET: chunks that are here */
    SKY_SERVICE_MISSING /**< GET: the set of those that are not */
} SKY_ServiceStage_t;

typedef struct
{
    SKY_ServiceCfg_t      cfg;
    SKY_Store_t          *store;
    SKY_ServiceCounters_t counters;
    uint64_t              started_us;
    uint64_t              next_request_id;
    uint16_t              seq_count;
    SKY_Migration_t       migrations[SKY_SERVICE_JOBS]; /**< the last is the handover's */
    SKY_Lane_t            lanes[SKY_SERVICE_LANES];     /**< of all migrations, those of the handover last */
    uint32_t              pulled;                       /**< migrations that have no more to send in this pull */
    SKY_Handover_t        handover;
    SKY_Gossip_t          gossip;
    SKY_Scrub_t           scrub;
    SKY_Survey_t          survey;
    /* the response at hand */
    SKY_ServiceStage_t stage;
    SKY_Packet_t       reply;
    uint32_t           block;     /**< GET: SKY_Store_Find, good until the next Begin or Poll */
    SKY_ChunkSet_t     set;       /**< GET: asked for */
    SKY_ChunkSet_t     missing;   /**< GET: of these, looked up and not here */
    uint32_t           set_index; /**< GET: next of the set to look up */
    uint32_t           burst_left;
    SKY_ChunkView_t    chunk;       /**< GET: next to be sent, whose id is in the reply */
    uint32_t           part_offset; /**< of its next part */
    uint8_t            scratch[SKY_SERVICE_SCRATCH_BYTES];
} SKY_Service_t;

/**
 * @param store   belongs to this service from now on: nobody else changes it between Begin or Poll and the last Next
 * @param random  where request ids start
 * @return false: cfg is out of range, or does not fit the store
 */
bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random);
/** Take a new configuration over; counters and migrations go on. @return false: cfg is out of range, or is another satellite's */
bool SKY_Service_Configure(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg);
/**
 * Act on one packet for this satellite at APID kvc (request, or response to one of our migrations). What is to be sent is then
 * pulled by SKY_Service_Next until that returns false; what is not pulled is dropped by the next call of Begin or Poll.
 * A response is never answered, nor is gossip.
 *
 * While chunks of a block are being moved away (MIGRATE without KEEP, handover), another satellite is told that they are not held
 * here, and its PUTs of them are refused: BUSY, or REFUSED if it is itself the target and has the higher address. Otherwise two
 * that move the same chunks to each other could each let go of them on the word of the other.
 */
void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** @return true: @p out is to be sent. */
bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/**
 * Work that nobody asked for just now: migrations go on, parts expire, and with a schedule the handover begins when the window
 * has left this satellite. Call Next until false, then again at *next_us, or after the next packets. Cheap when there is nothing
 * to do; *next_us is then UINT64_MAX, with a schedule too while the store is empty.
 */
void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us);
/**
 * Follow a schedule, from the next Poll on. When a row begins, every chunk held here that belongs elsewhere in its window
 * (SKY_Schedule_Server of the chunk's server, chunk id modulo the number of servers) goes there, but for what waits: chunks of a
 * block of a later epoch that this row has here.
 * What comes late, and what an interruption has left (target silent, restart of either), is found at a later look. A handover ends
 * when it is done, when its target is silent, or when the window has moved on. A look walks over all chunks held; there is none
 * while everything is where it belongs. With SKY_LAYOUT_HOP nothing moves.
 * @param schedule  stays with the service and does not change meanwhile; NULL: none
 * @return false: it is for another constellation; the one before stays
 */
bool SKY_Service_SetSchedule(SKY_Service_t *svc, const SKY_Schedule_t *schedule);
/**
 * Send all blocks of all tenants to @p target, beginning with the next Poll: a handover that is ordered instead of scheduled. It
 * takes the handover's place. Of orders the last one counts: one that is under way to another satellite ends, and with this
 * satellite for a target what is still here stays.
 * @return OK: begun, going on already, or ended; BAD_ADDRESS; NOT_FOUND: nothing is held; REFUSED: a schedule holds, which would
 *         bring everything back
 */
SKY_Status_t SKY_Service_Evacuate(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t target);
/** Chunks held here that are to be handed over, as far as is known without looking: all, while the row is not begun. */
uint32_t SKY_Service_HandoverLeft(const SKY_Service_t *svc, uint64_t now_us);
/** How long the handover that goes on has lasted, in ms; 0: none goes on. */
uint64_t SKY_Service_HandoverMs(const SKY_Service_t *svc, uint64_t now_us);
/** Does a handover go on that is late? The first call that finds it late counts it, in @c handover. */
bool SKY_Service_HandoverIsLate(SKY_Service_t *svc, uint64_t now_us);
/**
 * There is no way from here to @p dst: what was asked of it or goes to it ends, as when another satellite on the way says so. Not
 * during a pull. Poll again soon: what it waited for may be due.
 */
void SKY_Service_Unreachable(SKY_Service_t *svc, SKY_Addr_t dst);
/** Count a packet that never became a request (SKY_Packet_Decode failed). */
void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status);
/** The counters of `stats.kvc`, SKY_STATS_KVC_COUNT of them. */
void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);
/** Counters of events become 0, those of the store too; what is in the store stays. */
void SKY_Service_ResetCounters(SKY_Service_t *svc);

#endif
