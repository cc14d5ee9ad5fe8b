/**
 * @file
 * State of the hashtable service: configuration, counters, a core, and one structure for each feature. The owner of a
 * service may read all of it.
 *
 * Each feature has a file, sky_service_<feature>.c. Its functions get the core and their own structure, and those of the features
 * that they use. These are always further up in this list:
 *
 *     core       emits packets, numbers requests, counts errors
 *     home       knows which chunks belong where by the schedule, or without one in the window
 *     letgo      forgets chunks that a migration has delivered
 *     job        chooses which chunks of a migration go next; uses home, letgo
 *     migrate    sends chunks to another satellite; uses home, letgo, job
 *     guard      hides and refuses chunks that are being given away; uses job
 *     handover   begins the migrations of the schedule; uses home, job, migrate
 *     hints      brings home what is kept here for others, where no schedule does; uses migrate
 *     arrivals   asks whether all that belongs here has arrived; uses home
 *     gossip     tells neighbours of evicted blocks
 *     survey     asks all satellites how much they have left to hand over
 *     scrub      looks for broken blocks; uses gossip, home, survey
 *     repair     rebuilds a chunk of a block with parity, and brings it home; uses home
 *     verdict    judges what a census has counted; uses repair
 *     census     asks all servers for a block with parity, and has it repaired or purged; uses gossip, home, repair, survey, verdict
 *     stats      collects the counters of `stats.kvc`; uses handover
 *     answer     answers requests; uses arrivals, guard, gossip, handover, hints, migrate, stats
 *
 * sky_service.c calls them. tests/fsw_apps/test_includes.py fails if files call each other in a circle.
 */
#ifndef SKY_SERVICE_STATE_H
#define SKY_SERVICE_STATE_H

#include "sky_schedule.h"
#include "sky_standins.h"
#include "sky_store.h"
#include "sky_torus.h"
#include "sky_transfer.h"

#define SKY_SERVICE_MIGRATIONS        4u                            /**< at a time */
#define SKY_SERVICE_TENANT_MIGRATIONS (SKY_SERVICE_MIGRATIONS - 1u) /**< of one tenant: it leaves a place to others */
#define SKY_SERVICE_JOBS              (SKY_SERVICE_MIGRATIONS + 1u) /**< and one more, which requests cannot take: the handover's */
#define SKY_SERVICE_REQUEST_LANES     16u /**< of a migration that was asked for: blocks under way at a time */
#define SKY_SERVICE_HANDOVER_LANES    64u /**< of the handover */
#define SKY_SERVICE_LANES             (SKY_SERVICE_MIGRATIONS * SKY_SERVICE_REQUEST_LANES + SKY_SERVICE_HANDOVER_LANES)
#define SKY_SERVICE_LANE_CHUNKS       64u    /**< chunk ids that one lane goes over */
#define SKY_SERVICE_MIGRATION_MS      60000u /**< how long one may take when its request has no deadline */
#define SKY_SERVICE_MIGRATION_MIN_MS \
    1000u /**< at least: a job that ended at once would leave its session with the target to the next one */
#define SKY_SERVICE_MIGRATION_MAX_MS 3600000u /**< and at most, whatever deadline its request has */
#define SKY_SERVICE_MIGRATION_TRIES  6u /**< questions in a row that the target leaves unanswered: the job ends (about 12 s) */
#define SKY_SERVICE_MIGRATION_ROUNDS 8u /**< in a row that deliver nothing: the chunks of the lane are checked */
#define SKY_SERVICE_HANDOVER_LOOK_US 1000000u  /**< after what came late, and between two looks for what a handover has left */
#define SKY_SERVICE_HANDOVER_MAX_US  16000000u /**< the latter doubles to this while nothing can be handed over */
#define SKY_SERVICE_BACK             3u        /**< rows before this one whose satellites may still owe chunks to this row */
#define SKY_SERVICE_SOURCES \
    (SKY_SERVICE_BACK + (SKY_SERVICE_BACK + 1u) * SKY_STANDINS_SPARES) /**< of each row: its server, and stand-ins */
#define SKY_SERVICE_LEAVE_US \
    60000000u /**< after a home has got what was kept for it: hosts that take it for lost ask here for 30 s */
#define SKY_SERVICE_LEAVE_LOOK_US 1000000u /**< between two Polls while there are such chunks */
#define SKY_SERVICE_EXPIRE_SLOTS  256u     /**< looked at by one Poll */
#define SKY_SERVICE_EXPIRE_US     50000u   /**< between two Polls while there are incomplete chunks */
#define SKY_SERVICE_WORDS         32u      /**< of gossip, that are known or still to be passed on: bits of a uint32_t */
#define SKY_SERVICE_CENSUS_ROWS   64u      /**< rows of a block that one census counts: bits of a uint64_t */
#define SKY_SERVICE_SCRATCH_BYTES 1024u    /**< counters with the records of most tenants; what ground hosts have room for */
#define SKY_SERVICE_PACKET_MIN    (SKY_RESPONSE_OVERHEAD + SKY_STATS_KVC_COUNT * 8u) /**< smallest packet_bytes: the counters */

/** One packet to send. Its payload is valid until the next Begin or Poll. The node encodes it. */
typedef struct
{
    SKY_Packet_t pkt;
    bool         has_crc16;     /**< payload_crc16 is known */
    uint16_t     payload_crc16; /**< CRC-16 of the payload started from zero */
} SKY_Out_t;

typedef struct
{
    SKY_Addr_t  self;
    SKY_Torus_t torus;            /**< MIGRATE targets are checked against it */
    uint32_t    packet_bytes;     /**< largest packet of the links; SKY_LIMIT_FRAGMENTS of them carry a chunk that fills a slot */
    uint32_t    credit;           /**< chunks that a PUT burst may have; largest GET burst; 1 .. SKY_LIMIT_CHUNK_SET */
    uint32_t    part_lifetime_ms; /**< lifetime of an incomplete chunk; less if its PUT has a nearer deadline */
    uint64_t    clock_offset_us;  /**< offset from now_us to satellite time, which responses carry */
    bool        migrate_all_from_ground; /**< take MIGRATE of a whole tenant (key all 0) from ground hosts too: it needs no key.
                                              false: only from satellites, this one included (schedule, bus); others REFUSED */
    bool     gossip; /**< tell neighbours of blocks that are evicted, purge what they tell of, and pass it on. false: neither */
    uint32_t scrub_period_ms; /**< period in which the scrub looks at all blocks once, if homes are known; 0: never */
    uint32_t handover_ms;     /**< time after which a handover is late; 0: only after the end of its row */
} SKY_ServiceCfg_t;

/** Counters of the service. With those of the store they make up `stats.kvc` of the ICD. */
typedef struct
{
    uint64_t requests;
    uint64_t puts;                     /**< PUT packets taken in */
    uint64_t gets;                     /**< GET requests */
    uint64_t hits, misses;             /**< chunks sent, chunks asked for and not here */
    uint64_t purges;                   /**< chunks purged */
    uint64_t migrated_out;             /**< chunks acknowledged by another satellite */
    uint64_t migrated_in;              /**< chunks put by another satellite */
    uint64_t handovers;                /**< rows of the schedule in which something had to be handed over */
    uint64_t unsolicited;              /**< responses that belong to no migration */
    uint64_t gossip_tx;                /**< words told to a neighbour */
    uint64_t gossip_purged;            /**< chunks purged at a neighbour's word */
    uint64_t scrubbed;                 /**< chunks purged because their block was found broken */
    uint64_t degraded;                 /**< times that a block was found to lack chunks which its others can give */
    uint64_t repaired;                 /**< chunks rebuilt here that their home has taken */
    uint64_t gossip_lost;              /**< words that were not told to all neighbours, because newer ones took their place */
    uint64_t errors[SKY_STATUS_COUNT]; /**< refused requests, and packets that did not decode, by status */
} SKY_ServiceCounters_t;

/** State that all features of the service use. */
typedef struct
{
    SKY_ServiceCfg_t      cfg;
    SKY_Store_t          *store;
    SKY_ServiceCounters_t counters;
    const SKY_Schedule_t *schedule; /**< NULL: nothing moves by itself */
    const SKY_Schedule_t *window;   /**< one row: where blocks lie without a schedule; NULL: not known */
    uint32_t              row;      /**< row of the schedule at the last Poll; 0: not looked at yet */
    uint64_t              started_us;
    uint64_t              next_request_id;
    uint16_t              seq_count; /**< sequence count of the next packet */
    uint8_t               word;      /**< SKY_WORD_*: what this satellite says of itself in responses */
} SKY_ServiceCore_t;

/** A part of a migration that is under way: chunks of one block. */
typedef struct
{
    bool       active;
    SKY_Push_t push;
    uint16_t   asked_by[SKY_SERVICE_LANE_CHUNKS]; /**< memory of the push */
    uint8_t    payload[SKY_CHUNKSET_MAX_BYTES];   /**< payload of its last query; stays until the next pull */
} SKY_Lane_t;

/** A migration: chunks of blocks, the block used last first, pushed to another satellite. Many blocks are under way at a time. */
typedef struct
{
    bool            active;
    bool            keep;
    bool            all_blocks;  /**< all blocks of the tenant go */
    bool            all_tenants; /**< all blocks of every tenant go; tenant is that of the next block */
    bool            hinted;      /**< only chunks that are kept for the target go */
    bool            hands_on;    /**< the target is told for whom a chunk is kept */
    bool            walked;      /**< all that is left to go is in lanes */
    bool            cutting;     /**< part of a chunk has been sent in this pull */
    uint32_t        tenant;
    uint8_t         key[SKY_KEY_BYTES]; /**< key of the next block */
    SKY_StoreWalk_t walk;               /**< walk over all blocks */
    uint32_t        from;               /**< chunks of that block below have been dealt with */
    uint32_t        lanes;              /**< number of active lanes */
    uint64_t        asked;              /**< bits of lanes that have sent a query in this pull, whose payload must stay */
    uint32_t        turn;               /**< number of the lane that sends next in this pull */
    uint32_t        budget;             /**< chunks that may still be sent in this pull */
    uint32_t        moved;              /**< chunks that the target has acknowledged or will never take */
    uint32_t     stride, server; /**< the chunks of this server of so many (sky_spread.h) go, the others stay; stride 1: all go */
    uint32_t     row;            /**< row of the schedule; blocks that wait for a later one stay */
    uint32_t     epoch;          /**< epoch that the target is told; 0: the block's own */
    SKY_Addr_t   target;
    uint64_t     deadline_us;
    SKY_Peer_t   peer;           /**< window and timers, for all lanes together */
    SKY_Packet_t request;        /**< the PUT or HAS at hand */
    SKY_ChunkView_t chunk;       /**< chunk that is being cut */
    uint32_t        part_offset; /**< offset of its next part */
} SKY_Migration_t;

/** All migrations. */
typedef struct
{
    SKY_Migration_t jobs[SKY_SERVICE_JOBS];   /**< the last is the handover's */
    SKY_Lane_t      lanes[SKY_SERVICE_LANES]; /**< of all jobs, those of the handover last */
    uint32_t        pulled;                   /**< jobs that have no more to send in this pull */
} SKY_Migrations_t;

/** A word of gossip: a block that is lost, because a share is gone, or with parity more shares than that makes up for. */
typedef struct
{
    uint32_t     tenant;
    uint8_t      key[SKY_KEY_BYTES];
    uint64_t     version;  /**< newer versions are not meant; 0: any is */
    uint32_t     content;  /**< content instance that is meant of this version; 0: without parity any is */
    uint32_t     epoch;    /**< what is kept for a later row is not meant */
    SKY_Stripe_t stripe;   /**< of a block with parity; else all 0 */
    uint16_t     credit;   /**< credit with which it is passed on */
    uint8_t      links;    /**< bit (1 << link): neighbours that are still to be told */
    uint64_t     until_us; /**< time until which it is known */
} SKY_Word_t;

typedef struct
{
    SKY_Word_t words[SKY_SERVICE_WORDS]; /**< a ring */
    uint32_t   next;                     /**< place of the next new word */
    uint32_t   waiting;                  /**< bit (1 << index) of each word with links */
} SKY_Gossip_t;

/** The handover by the schedule. */
typedef struct
{
    uint64_t row_end_us; /**< end of core.row; 0: not looked at yet */
    uint32_t home;       /**< server whose chunks belong here in that row; the number of servers stands for none */
    uint32_t last;       /**< server whose chunks were the last to go */
    uint64_t look_us;    /**< time of the next look for chunks that belong elsewhere; UINT64_MAX: there are none */
    uint64_t pause_us;   /**< pause before the next look, if it finds any */
    uint64_t since_us;   /**< time at which the first chunk to be handed over was to go; 0: none is */
    uint32_t left;       /**< chunks to be handed over, by the last look and by puts and drops since */
    bool     begun;      /**< the handover of this row has begun */
    uint32_t late;       /**< handovers by this schedule that took longer than cfg.handover_ms or than their row; the last of them
                              may still go on */
    uint32_t late_done;  /**< late handovers that are done */
    uint64_t lasted_ms;  /**< duration of the last of those */
} SKY_Handover_t;

/** What is kept here for others. */
typedef struct
{
    SKY_Addr_t home;       /**< satellite that is asked whether it answers; then the last one that was */
    bool       to_ask;     /**< the question is to be sent */
    bool       is_asked;   /**< it was sent */
    uint64_t   request_id; /**< of the question that was sent */
    uint64_t   look_us;    /**< time of the next look */
} SKY_Hints_t;

/** The question whether all that belongs here has arrived. Sources are asked from the last to the first. */
typedef struct
{
    uint32_t   row;                               /**< row of the schedule that it is about; 1 in a window; 0: not begun */
    uint64_t   row_end_us;                        /**< end of that row */
    uint32_t   first_row;                         /**< row in which this schedule was looked at first */
    SKY_Addr_t sources[SKY_SERVICE_SOURCES];      /**< the first sources, */
    uint32_t   listed;                            /**< so many; then, */
    bool       asks_all;                          /**< if all satellites are servers, all of them, */
    SKY_Addr_t before[SKY_PLACEMENT_SERVERS_MAX]; /**< else in the first rows of a schedule the servers before it */
    uint32_t   before_count;
    uint32_t   count;    /**< number of sources */
    uint32_t   left;     /**< sources that may owe something; the last of them is asked; 0: all has arrived */
    uint32_t   turn;     /**< source that is asked when all has arrived */
    uint32_t   silent;   /**< sources one after another that did not answer since all has arrived */
    uint32_t   tries;    /**< questions to this source without an answer */
    bool       to_ask;   /**< the question is to be sent */
    bool       is_asked; /**< it was sent */
    uint64_t   request_id;
    uint64_t   until_us;                           /**< time of the next question, or at which the answer is late */
    uint64_t   pause_us;                           /**< pause before a source is asked again that owed something or was silent */
    SKY_Addr_t servers[SKY_PLACEMENT_SERVERS_MAX]; /**< servers of the row */
    uint32_t   server_count;
    SKY_Cell_t cells[SKY_PLACEMENT_SERVERS_MAX + SKY_STANDINS_SPARES]; /**< room for the search of who stands in */
} SKY_Arrivals_t;

/** State of the scrub's question to the server after this one. */
typedef enum
{
    SKY_SCRUB_IDLE = 0,
    SKY_SCRUB_ASK,   /**< the question is to be sent */
    SKY_SCRUB_ASKED, /**< the question was sent */
    SKY_SCRUB_SILENT /**< there is no way to the server */
} SKY_ScrubState_t;

/** The scrub: the look for incomplete blocks. */
typedef struct
{
    SKY_ScrubState_t state;
    uint32_t         cursor;   /**< cursor of SKY_Store_NextBlock */
    uint64_t         next_us;  /**< time of the next look, or after which the answer is late */
    uint64_t         rest_us;  /**< time before which there is no look */
    uint32_t         blocks;   /**< blocks that the store held when that time was set */
    uint32_t         row;      /**< row of the schedule at the last look */
    uint64_t         look_us;  /**< time of the last look */
    uint64_t         since_us; /**< first look in that row: earlier suspicions do not count */
    uint32_t         tenant;   /**< tenant of the block asked about */
    uint8_t          key[SKY_KEY_BYTES];
    SKY_Addr_t       server;
    uint64_t         request_id;
    uint32_t         base; /**< chunk set of the question */
    uint32_t         count;
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES];
    uint32_t         payload_len;
    bool             has_ripe; /**< a block with parity was found broken twice; the census looks for the one used last */
} SKY_Scrub_t;

/** State of the repair of a chunk. */
typedef enum
{
    SKY_REPAIR_IDLE = 0,
    SKY_REPAIR_ASK,       /**< a source is to be asked for its chunk */
    SKY_REPAIR_ASKED,     /**< it was asked */
    SKY_REPAIR_DELIVER,   /**< the chunk is rebuilt and on its way home */
    SKY_REPAIR_DONE,      /**< its home has it */
    SKY_REPAIR_NO_SOURCE, /**< a source does not answer */
    SKY_REPAIR_NO_CHUNK,  /**< a source does not give its chunk, or a damaged one */
    SKY_REPAIR_NO_HOME,   /**< the home does not answer, or does not take the chunk */
    SKY_REPAIR_FULL       /**< the home has no room */
} SKY_RepairState_t;

/** The repair of one chunk: those of its row that suffice are added up one by one in the store's spare memory. */
typedef struct
{
    SKY_RepairState_t state;
    SKY_ShareCfg_t    share;                    /**< the lost chunk */
    uint32_t          row;                      /**< row of the schedule that says where chunks are */
    uint32_t          len;                      /**< bytes of the lost chunk */
    uint32_t          first;                    /**< first chunk of its row */
    uint32_t          needed, added;            /**< sources: how many suffice, and those that have been added */
    uint8_t           have[SKY_STRIPE_ROW_MAX]; /**< places of the sources in the row */
    uint8_t           weights[SKY_STRIPE_ROW_MAX];
    SKY_Addr_t        at;       /**< satellite of the source at hand */
    uint32_t          asked;    /**< questions to it */
    uint64_t          until_us; /**< time at which its answer is late */
    uint64_t          request_id;
    SKY_Parts_t       parts; /**< parts of its chunk that have come */
    uint8_t           payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Peer_t        peer; /**< the home */
    SKY_Push_t        push;
    uint16_t          asked_by[1]; /**< memory of the push */
    SKY_Packet_t      request;     /**< the PUT that is being cut */
    bool              cutting;
    uint32_t          part_offset;
    uint32_t          crc32c; /**< of the rebuilt chunk */
} SKY_Repair_t;

/** State of a census. */
typedef enum
{
    SKY_CENSUS_IDLE = 0,
    SKY_CENSUS_ASKING, /**< servers are asked what they hold */
    SKY_CENSUS_MENDING /**< what is lost is rebuilt */
} SKY_CensusState_t;

/** The census: who holds which chunks of a block with parity. */
typedef struct
{
    SKY_CensusState_t state;
    uint32_t          row; /**< row of the schedule */
    uint64_t          begun_us;
    uint64_t          rest_us; /**< time before which no census and no repair begins */
    SKY_BlockInfo_t   block;
    uint32_t          first;                      /**< first row of the block that is counted */
    uint32_t          rows;                       /**< rows that are counted */
    uint32_t          self;                       /**< number of this satellite's share of the block */
    uint64_t          held[SKY_STRIPE_ROW_MAX];   /**< of each share, bit (1 << row): its server holds its chunk of that row */
    uint64_t          lost[SKY_STRIPE_ROW_MAX];   /**< its chunk of that row is gone, by the server's own word */
    bool              unsure[SKY_STRIPE_ROW_MAX]; /**< what the server lacks may be on its way from there */
    bool              to_ask[SKY_STRIPE_ROW_MAX], waiting[SKY_STRIPE_ROW_MAX];
    uint64_t     quiet_until_us[SKY_STRIPE_ROW_MAX]; /**< of each server: until then it is not asked, because it was silent */
    uint64_t     full_until_us[SKY_STRIPE_ROW_MAX];  /**< until then nothing is rebuilt for it, because it had no room */
    uint32_t     full_tenant[SKY_STRIPE_ROW_MAX];    /**< for this tenant: others may have room there by their quotas */
    uint32_t     waiting_count;
    uint32_t     rounds;   /**< rounds of questions */
    uint64_t     until_us; /**< time at which answers are late */
    uint64_t     request_id;
    uint8_t      payloads[2][SKY_CHUNKSET_MAX_BYTES]; /**< of questions to servers without and with a chunk in the last row */
    uint32_t     at;                                  /**< chunk at which the repair is, counted from the first */
    bool         is_whole;                            /**< so far the block is whole, or is again */
    bool         is_degraded;                         /**< the block is counted as degraded */
    bool         may_purge;                           /**< the block was found broken twice in this row of a schedule */
    bool         is_ahead; /**< a home keeps the block for a later row, so that chunks may be elsewhere */
    SKY_Repair_t repair;
} SKY_Census_t;

/** The survey of other satellites' handovers. */
typedef struct
{
    bool     is_wanted;  /**< the survey is wanted */
    uint32_t row;        /**< row of the schedule that it is about */
    uint32_t asked;      /**< satellites asked one after another, none of which has anything left */
    uint32_t first;      /**< number of the first satellite of the group that is asked */
    uint32_t next;       /**< number of the first satellite after the group */
    uint32_t to_ask;     /**< bits of the group's satellites that are still to be asked */
    uint32_t waiting;    /**< bits of the group's satellites that have not answered yet */
    uint64_t until_us;   /**< time at which answers are late, or, without a group, at which the next one begins */
    uint64_t settled_us; /**< time at which all had been asked; 0: they have not */
    uint64_t request_id;
} SKY_Survey_t;

/** Answer that Next makes to the packet of Begin. */
typedef enum
{
    SKY_ANSWER_IDLE = 0, /**< nothing */
    SKY_ANSWER_REPLY,    /**< one response, ready */
    SKY_ANSWER_CHUNKS,   /**< GET: chunks that are here */
    SKY_ANSWER_MISSING   /**< GET: the set of chunks that are not here */
} SKY_AnswerStage_t;

/** The answer to the request at hand. */
typedef struct
{
    SKY_AnswerStage_t stage;
    SKY_Packet_t      reply;
    uint32_t          block;     /**< GET: result of SKY_Store_Find, valid until the next Begin or Poll */
    SKY_ChunkSet_t    set;       /**< GET: chunks asked for */
    SKY_ChunkSet_t    missing;   /**< GET: chunks of the set that were looked up and are not here */
    uint32_t          set_index; /**< GET: index in the set of the next chunk to look up */
    uint32_t          burst_left;
    SKY_ChunkView_t   chunk;       /**< GET: next chunk to send, whose id is in the reply */
    uint32_t          part_offset; /**< GET: offset of its next part */
    uint8_t           scratch[SKY_SERVICE_SCRATCH_BYTES];
} SKY_Answer_t;

typedef struct
{
    SKY_ServiceCore_t core;
    SKY_Answer_t      answer;
    SKY_Migrations_t  migrations;
    SKY_Handover_t    handover;
    SKY_Hints_t       hints;
    SKY_Arrivals_t    arrivals;
    SKY_Gossip_t      gossip;
    SKY_Survey_t      survey;
    SKY_Scrub_t       scrub;
    SKY_Census_t      census;
} SKY_Service_t;

#endif
