/**
 * @file
 * A fetch: one share of a block from one satellite (sky_transfer.h). Part of the ground: nothing on board fetches, and missions do not
 * compile it.
 */
#ifndef SKY_FETCH_H
#define SKY_FETCH_H

#include "sky_transfer.h"

#define SKY_FETCH_PARTIALS 32u /**< chunks in parts that one share follows at a time; older ones are asked for again */

/** A chunk of which parts came. */
typedef struct
{
    SKY_Parts_t parts; /**< parts that came; all zero: none, or the entry is free */
    uint32_t    index; /**< index of the chunk in the share */
} SKY_Partial_t;

typedef struct
{
    SKY_ShareCfg_t cfg;
    SKY_Peer_t    *peer;
    uint8_t       *block;   /**< data chunk i belongs at block + SKY_Stripe_Offset of i */
    uint8_t       *parity;  /**< and parity chunk i at parity + SKY_Stripe_Offset of i */
    SKY_ChunkSet_t missing; /**< chunks that are not here yet */
    SKY_ChunkSet_t todo;    /**< missing chunks to be asked for, or asked for again */
    SKY_ChunkSet_t denied;  /**< chunks that the satellite does not hold; after SKY_Fetch_Collect they are not missing any more */
    uint16_t       asked_by[SKY_LIMIT_CHUNK_SET]; /**< number of the last request for each chunk; 0: none */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    bool             collects;
    uint32_t         left;    /**< chunks missing */
    uint32_t         denials; /**< chunks denied */
    uint32_t         on_way;  /**< chunks asked for and not here */
    uint32_t         lost;    /**< chunks that were given up, each time that happened */
    uint32_t         requests, repeats, duplicates, corrupt;
    uint16_t         number;   /**< number of the newest request */
    uint16_t         over;     /**< newest request whose burst is over */
    uint16_t         gap;      /**< newest request whose time of grace runs */
    uint16_t         heard;    /**< newest request that was answered, at least in part; 0: none */
    uint16_t         timed;    /**< request whose round trip is measured; 0: none */
    uint16_t         clocked;  /**< request that was timed last: packets of its answer tell of queues; 0: none */
    uint16_t         late;     /**< request that was timed and given up; 0: none */
    uint64_t         asked_us; /**< time at which the timed request left */
    uint64_t         late_us;  /**< time at which `late` left */
    uint64_t         sent_us;  /**< time at which the newest request left */
    uint64_t         answers;  /**< bit i: something came of the answer to request number - i */
    uint64_t         heard_us; /**< time of the newest packet that answers `heard` */
    uint64_t         tail_us;  /**< time at which the rest of that answer counts as lost; 0: not set */
    uint64_t         timer_us; /**< time at which silence counts as loss; 0: not set */
    uint64_t         gap_us; /**< time at which chunks missing up to `gap` count as lost, as they may just be late; 0: not set */
    uint32_t         partial_next;
    SKY_Partial_t    partials[SKY_FETCH_PARTIALS];
} SKY_Fetch_t;

/**
 * Begin a fetch.
 * @param block   block_len bytes that stay in place until the share has ended
 * @param parity  likewise SKY_Stripe_ParityBytes; NULL: the share has no parity chunk
 * @return false if cfg is wrong, or there is no memory for a parity chunk of the share
 */
bool SKY_Fetch_Init(SKY_Fetch_t *fetch, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint8_t *block, uint8_t *parity);
/** Do without chunk number @p index of the share, unless it is here or on its way. */
void SKY_Fetch_Skip(SKY_Fetch_t *fetch, uint32_t index);
/** Go on after a chunk that the satellite denies, and end when each chunk is here or denied: part of a share may lie elsewhere
 *  while it moves. Only before the first SKY_Fetch_Next. */
void SKY_Fetch_Collect(SKY_Fetch_t *fetch);
/**
 * Get the next request to send, if window, timer and @p budget (chunks that the host can still take in) allow one. Call until false.
 * @param payload  SKY_CHUNKSET_MAX_BYTES, becomes req->payload
 * @return true: @p req is to be sent now; it asks for req->credit chunks
 */
bool SKY_Fetch_Next(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t budget, SKY_Packet_t *req, uint8_t *payload);
/** Take in a response to a request of this share: data, or the set of missing chunks. Checks CRC-32C before it counts. */
void SKY_Fetch_OnPacket(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt);
/** Let timers act. @return time of the next call, at the latest; UINT64_MAX once the share has ended */
uint64_t SKY_Fetch_OnTime(SKY_Fetch_t *fetch, uint64_t now_us);
/** End a running share, for instance because another share of its block failed. An ended share stays as it is. */
void SKY_Fetch_Stop(SKY_Fetch_t *fetch, SKY_ShareState_t state);

#endif
