/**
 * @file
 * Private to the twin: its state, and the functions that its files share.
 *
 *     twin.c          creation, the loop          twin_network.c  links, packets on their way, what faults do to them
 *     twin_node.c     one satellite               twin_fault.c    faults that have a time
 *     twin_check.c    what must always hold       twin_truth.c    what is known of each block
 *     twin_content.c  keys and chunks             twin_finish.c   where everything is in the end
 *     twin_break.c    the core, broken on purpose     twin_work.c     chunks that take time on board
 *     twin_hello.c    hellos and news of links    twin_pace.c     does it get anywhere?
 *     twin_use.c      what makes room, and what is kept where for how long
 *     twin_rows.c     which chunks of a block's rows are held
 *     twin_version.c  versions of values at satellites
 *     twin_register.c what hosts get of values
 *     twin_outcome.c  why a get may miss, and an operation may fail
 *     twin_listen.c   telemetry, for as long as somebody listens
 *
 * Ground hosts: twin_host.h. Keys and the attacker: twin_secure.h.
 */
#ifndef TWIN_PRIV_H
#define TWIN_PRIV_H

#include "sky.h"
#include "twin.h"
#include "twin_host.h"
#include "twin_queue.h"
#include "twin_secure.h"

#define SKYT_JUNK_TENANT    UINT32_MAX /**< tenant of junk, which fills a store under pressure */
#define SKYT_PURGE_ECHO_US  5000000u   /**< time after a purge for which a copy of its packets may still be on its way */
#define SKYT_TRAIL_MAX      (SKY_LIMIT_HOP_LIMIT + 1u)
#define SKYT_DELETION_BYTES 48u       /**< block of a deletion */
#define SKYT_RELAYED        16u       /**< commands that a satellite recognises when they are repeated, as in flight */
#define SKYT_LEASE_US       30000000u /**< time for which a host listens to a satellite */
#define US_PER_MS           1000u
#define PPM                 1000000u
#define SKYT_LOSS_PPM       1000u     /**< below this rate, over all hops, seconds of repeats in vain are as good as impossible */
#define SKYT_SETTLING_US    60000000u /**< time after a fault in which its traces may last: timers that have backed off, queues */
#define SKYT_BIT(cause)     ((uint16_t)(1u << (cause)))

/* ---- network --------------------------------------------------------------------------------------------------------- */

typedef struct
{
    const SKYT_Model_t *model; /**< faults of this link alone, besides those of all; NULL: none */
    uint64_t            busy_until_ns;
    uint32_t            far;      /**< satellite at the other end; SKYT_NONE: there is none */
    uint32_t            delay_us; /**< delay at the last change of delays */
    uint32_t            later_us; /**< delay at the end of that change; it moves evenly in between */
    uint64_t            down_us;  /**< time at which it was last whole, if it is not */
    uint16_t            cuts;     /**< faults that cut it now */
    bool                sky_down; /**< the link is behind the earth, or over the seam */
    bool                bad[2];   /**< state of Gilbert and Elliott: by the model of all links, and by that of this one */
} SKYT_Link_t;

typedef struct
{
    uint32_t    link; /**< link that the packet is on */
    uint32_t    len;
    uint32_t    next_free;
    uint16_t    host;
    bool        is_held;  /**< it has arrived, and waits until the satellite has time */
    uint8_t     hops;     /**< number of satellites that it has left so far */
    uint64_t    began_us; /**< time at which it left the first of them */
    uint32_t    trail[SKYT_TRAIL_MAX];
    SKYT_Mark_t mark; /**< what the attacker has to do with it */
} SKYT_Packet_t;

typedef struct
{
    const uint8_t *head, *body, *tail;
    uint32_t       head_len, body_len, tail_len;
    uint32_t       passed_on; /**< packet as which it came; SKYT_NONE: it begins here */
} SKYT_Parts_t;

/* ---- satellites ------------------------------------------------------------------------------------------------------ */

typedef struct
{
    SKYT_Twin_t        *twin;
    SKY_Node_t          core;
    SKY_NodeService_t   served; /**< the service, as the core calls it */
    SKY_NodeListener_t  listener;
    SKY_NodeRelayed_t   relayed[SKYT_RELAYED];
    SKY_Security_t      security; /**< without keys: not used */
    uint32_t           *map_memory;
    uint64_t            digest;      /**< digest of the map at the last look */
    bool                is_greeting; /**< something is not calm */
    SKY_Service_t       service;
    const SKY_Packet_t *begun;    /**< packet that the service acts on; NULL: it was polled */
    uint64_t            ready_us; /**< time at which the service's last packet can go; 0: the packet is not the service's */
    SKY_Store_t         store;
    SKY_Schedule_t     *late;        /**< schedule of its own, if its clock is late */
    uint8_t            *memory;      /**< memory of the store */
    uint32_t            settled_row; /**< row in which it said that all has arrived, at the last look; SKYT_NONE: it did not */
    bool                is_up;
    bool                has_crashed;
    uint64_t            up_us, down_us;             /**< times of its last begin and its last crash */
    uint64_t            listened_us;                /**< time at which a host last asked for its telemetry */
    uint64_t            cleared_us;                 /**< time at which it last had nothing left to hand over when it was asked */
    uint32_t            cleared_row;                /**< row in which it was then; SKYT_NONE: it held nothing */
    uint32_t            junk;                       /**< blocks of junk put so far */
    uint64_t            migrated, evicted, expired; /**< counts before its last crash */
    uint64_t            busy_until_us;              /**< time until which it works on chunks */
    uint32_t            held;                       /**< packets that wait for that */
    uint64_t            parts_from_us;              /**< time before which no kept part expires */
    uint64_t            parts_until_us;             /**< time by which all kept parts have expired */
} SKYT_Node_t;

/* ---- what is known from above ---------------------------------------------------------------------------------------- */

/** Faults of one sort. */
typedef struct
{
    uint32_t now;     /**< faults that last now */
    uint64_t last_us; /**< time at which there was last one; 0: never */
} SKYT_Trouble_t;

/** Truth about a block, seen from above. */
typedef struct
{
    bool     is_held; /**< a put ended well */
    uint16_t taint;   /**< bits (1 << SKYT_Cause_t): causes why chunks may be gone since */
    uint16_t fresh;   /**< the same bits, since the running put began */
    uint16_t putting, purging;
    uint64_t purged_us;
    uint64_t put_us;        /**< time at which a put last began or ended; 0: never */
    uint64_t acknowledged;  /**< newest version of a value of which a put ended well, and that no purge has named; 0: none */
    uint64_t purged;        /**< newest version that a purge has named */
    uint32_t written;       /**< number of the last put of the value, from 1; 0: there is none */
    uint32_t epoch;         /**< epoch of the last put that ended well: hosts know it */
    uint32_t astray;        /**< bits as SKYT_ShareRecord_Bit: servers whose chunks a put left at stand-ins */
    bool     is_degraded;   /**< the last put that ended well left out chunks, as the erasure code bears it */
    uint32_t prefetching;   /**< prefetches that go on */
    uint64_t prefetched_us; /**< time at which the last one ended */
} SKYT_Truth_t;

/** A put of a version of a value, as it is written down. */
typedef struct
{
    uint64_t version;
    uint32_t before;  /**< number of the put of the value before, from 1; 0: there is none */
    uint32_t gone;    /**< bits as SKYT_ShareRecord_Bit: shares that crashes took since; all: a store has made room */
    uint64_t done_us; /**< time at which it has ended well; 0: it has not */
} SKYT_Write_t;

typedef struct SKYT_Use SKYT_Use_t; /**< last use of a block by a store: private to twin_use.c */

/** State of a satellite before it looked at a packet. */
typedef struct
{
    uint64_t evicted, scrubbed, puts, hits, rumoured;
    uint64_t version;       /**< of the value of a PUT or PURGE, as it was held; 0: it was not held, or is no value */
    uint32_t slots, chunks; /**< used, and held, in its store */
    uint32_t spared;        /**< chunks of the block of a PURGE, which that has to spare; 0: none */
    bool     is_known;      /**< the block of a PUT was known */
    bool     is_moving;     /**< at a PUT or MIGRATE for a row, the satellite was handing something over */
    bool     could_be_had;  /**< SKYT_Rows_CanBeHad before a satellite may have purged a block with parity */
} SKYT_Before_t;

#define SKYT_PACE_KINDS 20u /**< kinds of packets: operation and direction */

/** Pace of the run, to find a livelock. See twin_pace.c. */
typedef struct
{
    uint64_t  steps;        /**< steps since an operation last began or ended */
    uint64_t  from_us;      /**< time of that begin or end */
    uint64_t  limit;        /**< steps that were last found to be allowed; after more it is computed again */
    uint64_t  census_until; /**< steps up to which they are looked at; 0: all is well */
    uint32_t  kinds[SKYT_PACE_KINDS];
    uint32_t *nodes, *actives; /**< steps of each */
} SKYT_Pace_t;

struct SKYT_Twin
{
    SKYT_Config_t      config;
    struct SKYT_Owned *owned;    /**< memory that was taken: SKYT_Take */
    bool               is_short; /**< there was not enough */
    SKY_Schedule_t     schedule;
    SKY_Schedule_t     window; /**< of the schedule's only row, if not all satellites have the schedule */
    SKY_ScheduleRow_t *rows;
    SKYT_Queue_t       queue;
    uint64_t           now_us;
    uint64_t           random;
    SKYT_Node_t       *nodes;
    uint8_t           *stores;
    uint32_t          *maps;
    uint64_t           map_changed_us; /**< time at which a satellite last learned of a link */
    /* network */
    SKYT_Link_t        *links;                           /**< node x SKYT_LINKS + link */
    const SKYT_Model_t *model;                           /**< faults of all links */
    uint64_t            delays_from_us, delays_until_us; /**< time in which delays change */
    SKYT_Packet_t      *packets;
    uint8_t            *packet_data;
    uint32_t           *entries;
    /* ground */
    SKYT_Ground_t *grounds;
    SKYT_Active_t *active;
    uint32_t      *active_free;
    uint8_t       *buffers;
    uint8_t       *haves;
    uint8_t       *parities;  /**< operation x SKYT_Content_ParityBytes */
    SKY_HostRow_t *rows_of;   /**< operation x SKYT_Content_RowsMost */
    SKY_HeldRow_t *held_rows; /**< likewise */
    uint32_t      *asked;     /**< operation x nodes + node: servers (bit: number mod 32) for whose shares it was asked */
    uint8_t       *scratch, *scratch2, *scratch3, *scratch4; /**< a packet each */
    /* script */
    SKYT_Block_t *blocks;
    SKYT_Truth_t *truth;
    uint8_t      *seen;  /**< scratch of twin_rows.c, by chunk */
    uint64_t     *known; /**< host x block_count + block: newest version of a value that the host knows */
    uint64_t *
        words; /**< (host x block_count + block) x nodes + node: time at which the satellite last said what it holds of the value */
    SKYT_Write_t  *writes; /**< two an operation */
    SKYT_Op_t     *ops;
    SKYT_Result_t *results;
    SKYT_Fault_t  *faults;
    SKYT_Trouble_t hard;         /**< faults that can keep chunks from moving, and requests from being answered */
    SKYT_Trouble_t lossy;        /**< faults that can keep requests from being answered */
    uint64_t       pressed_us;   /**< time at which junk last filled a store, or went */
    SKYT_Trouble_t mute;         /**< those hard faults that are no crashes */
    uint64_t       row_moved_us; /**< time at which a chunk last came from another satellite; 0: never */
    uint64_t       repaired_us;  /**< time at which a rebuilt chunk last came home; 0: never */
    /* security; all NULL without keys */
    SKYT_Keys_t    *keys;
    SKYT_Mission_t *mission;
    SKYT_Attack_t  *attack;
    bool            is_served; /**< a service has acted on the packet at hand */
    /* results */
    SKYT_Counters_t  counters;
    SKYT_Violation_t violations[SKYT_VIOLATIONS_KEPT];
    uint32_t         violation_count; /**< violations that are kept */
    uint64_t         violated;        /**< violations in all */
    SKYT_Break_t     broken;
    SKYT_Stop_t      stopped;
    SKYT_Pace_t      pace;
    SKYT_Use_t      *uses; /**< node x (blocks + 1) + block; the last of each node: junk */
    uint64_t         use_count;
    uint32_t        *owners; /**< scratch of twin_use.c, by slot: tenant of its chunks */
    /* counts and heads of lists */
    SKY_Torus_t torus;
    uint16_t    seq_count;
    uint32_t    node_count;
    uint32_t    packet_free, packet_fresh;
    uint32_t    packets_queued;
    uint32_t    drop_after;     /**< packets but hellos until one is lost, itself included; 0: none is */
    uint32_t    arriving;       /**< packet that a satellite is looking at, or SKYT_NONE */
    uint32_t    sky_links_down; /**< links that the sky has down, besides those of the seam */
    uint32_t    entry_count;
    uint32_t    active_free_count;
    uint32_t    lanes; /**< last number that a host has drawn */
    uint32_t    block_count;
    uint32_t    op_count, op_next;
    uint32_t    fault_count, fault_next;
    uint32_t    row;
};

/* ---- events ---------------------------------------------------------------------------------------------------------- */

static inline uint32_t SKYT_EventOfGround(const SKYT_Twin_t *twin, uint32_t ground)
{
    return twin->node_count + ground;
}
static inline uint32_t SKYT_EventOfActive(const SKYT_Twin_t *twin, uint32_t active)
{
    return twin->node_count + twin->config.hosts + active;
}
/** 0: the next operation, 1: the next fault, 2: the next row of the schedule */
static inline uint32_t SKYT_EventOfScript(const SKYT_Twin_t *twin, uint32_t which)
{
    return SKYT_EventOfActive(twin, twin->config.active_max) + which;
}
static inline uint32_t SKYT_EventOfHello(const SKYT_Twin_t *twin, uint32_t node)
{
    return SKYT_EventOfScript(twin, 3) + node;
}
static inline uint32_t SKYT_EventOfPacket(const SKYT_Twin_t *twin, uint32_t packet)
{
    return SKYT_EventOfHello(twin, twin->node_count) + packet;
}
/** The host of the mission. */
static inline uint32_t SKYT_EventOfMission(const SKYT_Twin_t *twin)
{
    return SKYT_EventOfPacket(twin, twin->config.packets_max);
}
static inline uint32_t SKYT_Events(const SKYT_Twin_t *twin)
{
    return SKYT_EventOfMission(twin) + 1u;
}
static inline uint32_t SKYT_NodeOf(const SKYT_Twin_t *twin, SKY_Addr_t addr)
{
    return (addr.plane - 1u) * twin->config.slots + addr.slot - 1u;
}
static inline SKY_Addr_t SKYT_AddrOf(const SKYT_Twin_t *twin, uint32_t node)
{
    const SKY_Addr_t addr = {(uint16_t)(node / twin->config.slots + 1u), (uint16_t)(node % twin->config.slots + 1u)};

    return addr;
}

/** Return the time since which faults may have left traces in an operation. */
static inline uint64_t SKYT_SettlingSince(const SKYT_Active_t *active)
{
    return active->started_us > SKYT_SETTLING_US ? active->started_us - SKYT_SETTLING_US : 0;
}

static inline SKYT_Link_t *SKYT_LinkOf(const SKYT_Twin_t *twin, uint32_t node, uint32_t link)
{
    return &twin->links[(size_t)node * SKYT_LINKS + link];
}

/** Take memory of zeros, which lasts as long as the twin. @return NULL if there is not enough: `is_short` is set */
void *SKYT_Take(SKYT_Twin_t *twin, size_t count, size_t bytes);
/** Draw from the generator, from which all randomness comes. */
uint64_t SKYT_Random(SKYT_Twin_t *twin);
/** Return a number that follows from the seed and @p what: nothing that is drawn changes by it. */
uint64_t SKYT_DrawOf(const SKYT_Twin_t *twin, uint64_t what);
/** Fill bytes, a multiple of 4, with numbers that no host of the twin has drawn before. */
void SKYT_CountUp(SKYT_Twin_t *twin, uint8_t *bytes, size_t count);
bool SKYT_Chance(SKYT_Twin_t *twin, uint32_t ppm);
void SKYT_Digest(SKYT_Twin_t *twin, uint32_t what, const uint8_t *data, size_t len);

/* ---- twin_network.c -------------------------------------------------------------------------------------------------- */

/** Find the other end of each link. */
void SKYT_Network_Init(SKYT_Twin_t *twin);
/**
 * Send a packet over a link.
 * @param ready_us  time at which it can go, at least now
 * @param id        id of the link
 * @param host      ground host it comes from or goes to, on the links down and up
 */
void SKYT_Network_Send(SKYT_Twin_t *twin, uint64_t ready_us, uint32_t node, uint32_t id, uint16_t host,
                       const SKYT_Parts_t *parts);
void SKYT_Network_Arrive(SKYT_Twin_t *twin, uint32_t id);
/** Return the bytes of a packet on its way. */
uint8_t *SKYT_Network_DataOf(const SKYT_Twin_t *twin, uint32_t packet);
/** Put a packet of the attacker on a link, where nothing else happens to it. @return false if there is no room */
bool SKYT_Network_Inject(SKYT_Twin_t *twin, uint32_t link, uint16_t host, SKYT_Mark_t mark, const uint8_t *data, uint32_t len,
                         uint64_t due_us);
/** Return true if a link is neither cut nor down by the sky. */
bool SKYT_Network_IsWhole(const SKYT_Link_t *link);
/** Note the time at which a link was last whole, before it is cut or comes behind the earth. */
void SKYT_Network_Mark(const SKYT_Twin_t *twin, SKYT_Link_t *link);
/** Return the node at the other end of an ISL, SKYT_NONE without one. */
uint32_t SKYT_Network_Neighbour(const SKYT_Twin_t *twin, uint32_t node, uint32_t link);

/* ---- twin_node.c ----------------------------------------------------------------------------------------------------- */

bool SKYT_Node_Init(SKYT_Twin_t *twin, uint32_t index);
/** Run a node, and set the time of its next event. */
void SKYT_Node_Run(SKYT_Twin_t *twin, uint32_t index);
/** Run a node whose service has got work from elsewhere. */
void SKYT_Node_Poll(SKYT_Twin_t *twin, uint32_t index);
/** Give the service a request from nowhere; its answer is lost. */
void SKYT_Node_Serve(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt);
/** Take in a datagram. @param from  satellite that sent it; SKYT_NONE: ground host @p host */
void SKYT_Node_Receive(SKYT_Twin_t *twin, uint32_t index, uint32_t from, uint16_t host, uint8_t *data, uint32_t len);
void SKYT_Node_Crash(SKYT_Twin_t *twin, uint32_t index);
void SKYT_Node_Restart(SKYT_Twin_t *twin, uint32_t index);
/** Give the service the schedule as this satellite sees it. */
void SKYT_Node_SetSchedule(SKYT_Twin_t *twin, uint32_t index);

/* ---- twin_hello.c ---------------------------------------------------------------------------------------------------- */

/** Wake hellos of a node: an event is about to disturb a link, so that they have news. */
void SKYT_Hello_Wake(SKYT_Twin_t *twin, uint32_t node);
/** Wake hellos of both ends of a link. */
void SKYT_Hello_WakeEnds(SKYT_Twin_t *twin, uint32_t node, uint32_t link);
void SKYT_Hello_WakeAll(SKYT_Twin_t *twin);
/** Greet when it is due, unless all is calm. */
void SKYT_Hello_Run(SKYT_Twin_t *twin, uint32_t node);
/** Account for the hellos that were not sent while all was calm, before the node runs. */
void SKYT_Hello_CatchUp(SKYT_Twin_t *twin, uint32_t node);
/** Note whether the node has learned of a link, and when it greets, after it has run. */
void SKYT_Hello_Settle(SKYT_Twin_t *twin, uint32_t node);
/** Tell a node which of its links the sky has up. */
void SKYT_Hello_SetSky(SKYT_Twin_t *twin, uint32_t node);
/** Return true if all nodes that can reach each other have known the same since then. */
bool SKYT_Hello_AllKnow(const SKYT_Twin_t *twin, uint64_t since_us);

/* ---- twin_work.c ----------------------------------------------------------------------------------------------------- */

/** Add chunks to a satellite's work. @return time at which it will be done with all of them */
uint64_t SKYT_Work_Add(SKYT_Twin_t *twin, uint32_t index, uint32_t chunks);
/** Let a satellite hang, by chance, before it answers the first request for a share. */
void SKYT_Work_Hang(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt);
/** Return true if the service's next packet is the beginning of a chunk that a get has asked for. */
bool SKYT_Work_IsChunk(const SKYT_Twin_t *twin, uint32_t index);
/** Hold an arrived packet. @return true if it is for this satellite, which has no time yet; its event comes again */
bool SKYT_Work_Hold(SKYT_Twin_t *twin, uint32_t index, uint32_t id, const uint8_t *data);
/** Release a held packet. @return true if it has waited, and its time has come */
bool SKYT_Work_Release(SKYT_Twin_t *twin, uint32_t index, uint32_t id);

/* ---- twin_arrivals.c ------------------------------------------------------------------------------------------------- */

/** Check a satellite that has just said that all has arrived. */
void SKYT_Arrivals_Look(SKYT_Twin_t *twin, uint32_t index);
/** Check in the end that nobody keeps something for a satellite that is there. */
void SKYT_Arrivals_Finish(SKYT_Twin_t *twin);

/* ---- twin_fault.c ---------------------------------------------------------------------------------------------------- */

void SKYT_Fault_Next(SKYT_Twin_t *twin);
/** Return true if there was a fault since @p since_us. */
bool SKYT_Fault_Since(const SKYT_Trouble_t *trouble, uint64_t since_us);

/* ---- twin_content.c -------------------------------------------------------------------------------------------------- */

void     SKYT_Content_Key(const SKYT_Twin_t *twin, uint32_t block, uint8_t *key);
uint32_t SKYT_Content_Tenant(const SKYT_Twin_t *twin, uint32_t block);
/** Find a block by its key. @return SKYT_NONE if it is none of the twin's */
uint32_t SKYT_Content_BlockOf(const SKYT_Twin_t *twin, uint32_t tenant, const uint8_t *key);
/** Write the content of a chunk. @param version  of a value; 0: the block is none */
void SKYT_Content_Chunk(uint32_t block, uint64_t version, uint32_t chunk, uint8_t *out, uint32_t len);
/** Return the block that these bytes claim to be of; it is wrong if they are damaged. @param version  receives the version that they claim,
 *  if they are of a value */
uint32_t SKYT_Content_Claims(const uint8_t *data, uint32_t len, uint64_t *version);
/** Return the content instance of a value; 0 for a block without versions. */
uint32_t SKYT_Content_Instance(uint32_t block, uint64_t version);
/** Return the chunks of a block; of a value as long as it is not deleted, which are no fewer. */
uint32_t SKYT_Content_Total(const SKYT_Twin_t *twin, uint32_t block);
/** Return the server of a chunk. @param version  as below */
uint32_t SKYT_Content_Server(const SKYT_Twin_t *twin, uint32_t block, uint64_t version, uint32_t chunk);
/** Return the satellite at which a row of the schedule has a chunk. @param version  of a value; 0: as long as it is not deleted */
SKY_Addr_t SKYT_Content_Home(const SKYT_Twin_t *twin, uint32_t row, uint32_t block, uint64_t version, uint32_t chunk);
/** Return the first chunk at the server that a look-up by the key alone asks: at the first of them with index 0, and so on. */
uint32_t SKYT_Content_Asked(const SKYT_Twin_t *twin, uint32_t block, uint32_t index);
/** Return the stripe of a block. @param version  as above */
SKY_Stripe_t SKYT_Content_Stripe(const SKYT_Twin_t *twin, uint32_t block, uint64_t version);
/** Write what a chunk must be, be it data or parity. */
void SKYT_Content_Expect(const SKYT_Twin_t *twin, uint32_t block, uint64_t version, uint32_t chunk, uint8_t *out, uint32_t len);
/** Return the most rows of a block, and the bytes of their parity. Both are at least 1. */
uint32_t SKYT_Content_RowsMost(const SKYT_Config_t *config);
size_t   SKYT_Content_ParityBytes(const SKYT_Config_t *config);

/* ---- twin_rows.c ----------------------------------------------------------------------------------------------------- */

/** Return true if a chunk counts. */
typedef bool SKYT_ChunkRule_t(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Begin, once the blocks are known. @return false if there is no memory */
bool SKYT_Rows_Init(SKYT_Twin_t *twin);
/** Return true if satellites hold enough chunks of each row of a block, where hosts look in this row of the schedule or an earlier one. */
bool SKYT_Rows_CanBeHad(const SKYT_Twin_t *twin, uint32_t block);
/** Return true if more chunks of a row of the operation's block count than its code bears: without a code, if any does. */
bool SKYT_Rows_AreTooMany(const SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_ChunkRule_t *counts);
/**
 * Judge a miss of a block with parity.
 * @param why       what may have taken chunks of it; NONE: nothing has
 * @param may_miss  a put or a purge explains that chunks were missed which are held
 * @param is_hard   a hard fault within the last minute may keep chunks from moving
 */
SKYT_Cause_t SKYT_Rows_JudgeMiss(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t why, bool may_miss, bool is_hard);
/** Return true if too many chunks of a row are held nowhere, or only where stand-ins have kept them. */
bool SKYT_Rows_AreStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Return true if enough chunks of each row are where the operation's host asks, and were when it began. */
bool SKYT_Rows_AreReachable(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Return true if a purge has left too few chunks of a row, but for satellites that the host calls lost. */
bool SKYT_Rows_ArePurged(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Return how long the repair of what a fault has taken may last. */
uint64_t SKYT_Rows_RepairUs(const SKYT_Twin_t *twin);
/** Check in the end that what was lost is rebuilt. */
void SKYT_Rows_CheckRepaired(SKYT_Twin_t *twin);
/** Return true if enough chunks of each row were held, or are: those that were nowhere have bits in `have`. */
bool SKYT_Rows_WereHeld(const SKYT_Twin_t *twin, const SKYT_Active_t *active);

/* ---- twin_check.c ---------------------------------------------------------------------------------------------------- */

/** Name @p twin in assertions that fail from now on. */
void SKYT_Assert_Watch(const SKYT_Twin_t *twin);

void SKYT_Check_Fail(SKYT_Twin_t *twin, SKYT_Invariant_t invariant, uint32_t node, uint32_t op, uint32_t block, uint32_t chunk,
                     const char *text);
/** Check chunk @p chunk of a get, which has arrived. */
void SKYT_Check_Chunk(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Check the hops of a packet that has come to its last satellite. */
void SKYT_Check_Hops(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node);
/** Check a request that a ground host sends. */
void SKYT_Check_Request(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt);
/** Check a chunk, or a part of one, that a satellite has taken in. */
void SKYT_Check_Taken(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt);
void SKYT_Check_Store(SKYT_Twin_t *twin, uint32_t node);
/* Check that each satellite that passed a packet on has lowered its hop limit. */
void SKYT_Check_HopLimit(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node, const SKY_Packet_t *pkt);
void SKYT_Check_Packets(SKYT_Twin_t *twin);
/** Check a packet that cannot arrive. @param since_us  time since which its link is down; 0: there is no such link */
void SKYT_Check_Dead(SKYT_Twin_t *twin, uint32_t node, uint64_t since_us, const uint8_t *data, uint32_t len);
/** Check the windows of a host, of which an operation has ended. */
void SKYT_Check_Window(SKYT_Twin_t *twin, uint32_t ground);
/** Check the route of a packet that has come to a satellite over an ISL. */
void SKYT_Check_Route(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node);
/** Check the bytes of a chunk against its content. */
void SKYT_Check_Bytes(SKYT_Twin_t *twin, const uint8_t *data, uint32_t len, uint32_t node, uint32_t op, uint32_t block,
                      uint64_t version, uint32_t chunk);

/* ---- twin_pace.c ----------------------------------------------------------------------------------------------------- */

bool SKYT_Pace_Init(SKYT_Twin_t *twin);
/** Begin to count steps anew: an operation has begun or ended. */
void SKYT_Pace_Restart(SKYT_Twin_t *twin);
/** Return an operation of a ground host, once there were too many steps; SKYT_NONE before, or if none runs. */
uint32_t SKYT_Pace_OpOf(const SKYT_Twin_t *twin, uint32_t ground);
/** Judge the steps: there were more than were last known to be allowed. */
void SKYT_Pace_TooMany(SKYT_Twin_t *twin, uint32_t node, uint32_t active, const uint8_t *data, uint32_t len);

/** Count a step. @param node, active  its owner, or SKYT_NONE. @param data  a packet; NULL: none */
static inline void SKYT_Pace_Step(SKYT_Twin_t *twin, uint32_t node, uint32_t active, const uint8_t *data, uint32_t len)
{
    if (++twin->pace.steps > twin->pace.limit)
    {
        SKYT_Pace_TooMany(twin, node, active, data, len);
    }
}

/* ---- twin_use.c ------------------------------------------------------------------------------------------------------ */

/** Begin, once the blocks are known. @return false if there is no memory */
bool SKYT_Use_Init(SKYT_Twin_t *twin);
/** Note a PUT that a satellite has looked at. */
void SKYT_Use_Put(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before);
/** Note a host's word that a block is used. */
void SKYT_Use_Word(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt);
/** Note that a satellite has found a chunk for a GET. */
void SKYT_Use_Get(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt);
/** Return the number of the use of which a touch since then told a satellite that has the block; 0: none has. */
uint64_t SKYT_Use_Touched(const SKYT_Twin_t *twin, uint32_t node, uint32_t block, uint64_t since_us);
/** Note that a satellite has obeyed a prefetch: chunks of a block stay there for a later row, or go elsewhere. */
void SKYT_Use_Prefetched(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before);
/** Note that a service was polled. @param expired_before  chunks of which it had forgotten parts until then */
void SKYT_Use_Polled(SKYT_Twin_t *twin, uint32_t node, uint64_t expired_before);
/** Note a PUT from another satellite, which is about to be looked at. */
void SKYT_Use_Moved(SKYT_Twin_t *twin, const SKY_Packet_t *pkt);
/** Return the row for which a satellite keeps a block. */
uint32_t SKYT_Use_Epoch(const SKYT_Twin_t *twin, uint32_t node, uint32_t block);
/** Return the time until which a put of the block to this satellite may still go on. */
uint64_t SKYT_Use_PutUntil(const SKYT_Twin_t *twin, uint32_t node, uint32_t block);
/** Return the time at which it last took in a chunk of the block, or a part of one. */
uint64_t SKYT_Use_TakenUs(const SKYT_Twin_t *twin, uint32_t node, uint32_t block);

/* ---- twin_purge.c ---------------------------------------------------------------------------------------------------- */

/** Return the chunks that a satellite holds of the block of a PURGE that has to spare it; 0 for other packets. */
uint32_t SKYT_Purge_Spared(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt);
/** Check that a PURGE has spared what it had to. */
void SKYT_Purge_Served(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before);

/* ---- twin_version.c -------------------------------------------------------------------------------------------------- */

/** Return true if a block is a value, which has versions. */
bool SKYT_Version_IsValue(const SKYT_Twin_t *twin, uint32_t block);
/** Return the version under which a host puts a value, or purges it, now; 0 for other blocks. @param above  a version that it is to be above */
uint64_t SKYT_Version_Next(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t above);
/** Return true if a version is that of a deletion. */
bool SKYT_Version_IsDeletion(uint64_t version);
/** Return the version of the value of a PUT or PURGE that a satellite holds; 0: it holds none, or it is no value. */
uint64_t SKYT_Version_Held(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt);
/** Check what a satellite has made of a PUT or PURGE of a value. */
void SKYT_Version_Served(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before);

/* ---- twin_register.c ------------------------------------------------------------------------------------------------- */

/** Begin, once blocks and operations are known. @return false if there is no memory */
bool SKYT_Register_Init(SKYT_Twin_t *twin, uint32_t ops);
/** Return the newest version of the operation's value that its host knows; 0 for other blocks, or if it knows none. */
uint64_t SKYT_Register_Known(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note that a host begins to put a version of a value. */
void SKYT_Register_Put(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note that shares of a block are gone: bits as SKYT_ShareRecord_Bit; or that a store has made room for others. */
void SKYT_Register_Gone(SKYT_Twin_t *twin, uint32_t block, uint32_t shares);
void SKYT_Register_MadeRoom(SKYT_Twin_t *twin, uint32_t block);
/** Note that a host begins to purge what is not newer than a version. */
void SKYT_Register_Purged(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note what a get of a value has to find. */
void SKYT_Register_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Check what a look-up or a get has found. @param version  0: it takes the value for absent */
void SKYT_Register_Got(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version);
/** Let a get go on with the version that satellites have named. @return false if the host knows a newer one */
bool SKYT_Register_Take(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Note that an operation with a version has ended well. */
void SKYT_Register_Ended(SKYT_Twin_t *twin, const SKYT_Active_t *active);

/* ---- twin_listen.c --------------------------------------------------------------------------------------------------- */

/** Let satellites send telemetry, and a host begin to listen to one of them, when a row has begun. */
void SKYT_Listen_Row(SKYT_Twin_t *twin);

/* ---- twin_truth.c ---------------------------------------------------------------------------------------------------- */

/** Note that chunks of a block may be gone from now on, for this cause. */
void SKYT_Truth_Taint(SKYT_Twin_t *twin, uint32_t block, SKYT_Cause_t cause);
/** Return true if a satellite holds a chunk. */
bool SKYT_Truth_Holds(const SKYT_Twin_t *twin, uint32_t node, uint32_t block, uint32_t chunk);
/** Note that the contents of a store are about to go. */
void SKYT_Truth_Crash(SKYT_Twin_t *twin, uint32_t node);
/** Note that a store has taken in a packet of a put. @param evicted_before  blocks that it had evicted until then */
void SKYT_Truth_Put(SKYT_Twin_t *twin, uint32_t node, uint64_t evicted_before);
/** Note that a satellite has no room for a chunk: a put of it fails, or a satellite that hands it over lets it go. */
void SKYT_Truth_NoRoom(SKYT_Twin_t *twin, const SKY_Packet_t *pkt);
/** Return the block that the scrub of a satellite looks at next, or with parity its census counts; SKYT_NONE if it does not look now. */
uint32_t SKYT_Truth_Scrutinized(const SKYT_Twin_t *twin, uint32_t node);
/** Note that the scrub of a satellite has purged a block. @param could_be_had  with parity: it could be decoded before */
void SKYT_Truth_Scrubbed(SKYT_Twin_t *twin, uint32_t node, uint32_t block, bool could_be_had);
/** Return true if a satellite keeps the block for a row that hosts do not know: an earlier put named it, and the last one another. */
bool SKYT_Truth_IsAside(const SKYT_Twin_t *twin, uint32_t block, uint32_t node);
/** Note that another satellite asks this one what it has left to hand over. */
void SKYT_Truth_Surveyed(SKYT_Twin_t *twin, uint32_t node);
/** Check a look of a ground host that has found satellites lost, or no answer at all. */
void SKYT_Truth_Lost(SKYT_Twin_t *twin, const SKYT_Ground_t *ground);
/** Check that a block is whole, as servers say. @param began_us  time since which its bits in `have` say what was nowhere */
void SKYT_Truth_Held(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t began_us);
/** Find a holder of a chunk that the purge of its block was to reach: not one that the host calls lost, nor in the layout hop a former
 *  stand-in, which nobody asks and which keeps its chunks. @return SKYT_NONE if there is none */
uint32_t SKYT_Truth_Unpurged(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Check that the operation's block is purged, as satellites say. */
void SKYT_Truth_Cleared(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note that a satellite has purged a block on a neighbour's word. @param could_be_had  as SKYT_Truth_Scrubbed */
void SKYT_Truth_Rumoured(SKYT_Twin_t *twin, uint32_t node, uint32_t block, bool could_be_had);
/** Find a holder of a chunk. @param aside  true: one that keeps it for a row unknown to hosts. @return SKYT_NONE if there is none */
uint32_t SKYT_Truth_Holder(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, bool aside);

/* ---- twin_outcome.c -------------------------------------------------------------------------------------------------- */

void SKYT_Outcome_Begin(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** End an operation. @param cause  NONE: it ended well; else that of its shares. @return the cause in the light of the truth */
SKYT_Cause_t SKYT_Outcome_End(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause);
/** Judge a look-up that has not found its block. @return the cause in the light of the truth */
SKYT_Cause_t SKYT_Outcome_Missed(SKYT_Twin_t *twin, const SKYT_Active_t *active);

#endif
