/**
 * @file
 * Bookkeeping of both ends of a transfer, without sockets and without a clock.
 *
 * A *share* is what one satellite holds of one block: chunks base, base + stride, ... A fetch asks for a share and repeats
 * what is missing; a push offers a share and repeats what is not acknowledged. Both are selective repeat: a window of chunks
 * per satellite (grows while nothing is lost, halves on loss: it finds the bandwidth-delay product), a retransmission timer
 * from measured round trips (RFC 6298), and a deadline after which the share has failed.
 *
 * The window and the timer belong to the satellite and are shared by all shares that go on with it: SKY_Peer_t.
 */
#ifndef SKY_TRANSFER_H
#define SKY_TRANSFER_H

#include "sky_chunkset.h"

typedef struct
{
    uint32_t window_initial; /**< chunks */
    uint32_t window_max;     /**< chunks, at most SKY_LIMIT_CHUNK_SET */
    uint32_t rto_initial_us;
    uint32_t rto_min_us;
    uint32_t rto_max_us;
} SKY_PeerCfg_t;

typedef struct
{
    SKY_PeerCfg_t cfg;
    SKY_Addr_t    addr;
    uint32_t      window;      /**< chunks that may be on their way */
    uint32_t      threshold;   /**< slow start below, one chunk a round trip above */
    uint32_t      outstanding; /**< chunks on their way, all shares together */
    uint32_t      srtt_us, rttvar_us, rto_us; /**< srtt 0: nothing measured yet */
    uint32_t      acked_in_window;
    uint64_t      recovered_us; /**< losses before this time belong to one halving */
} SKY_Peer_t;

void SKY_Peer_Init(SKY_Peer_t *peer, const SKY_PeerCfg_t *cfg, SKY_Addr_t addr);
void SKY_Peer_OnRtt(SKY_Peer_t *peer, uint32_t rtt_us);
void SKY_Peer_OnDelivered(SKY_Peer_t *peer, uint32_t chunks);
void SKY_Peer_OnLoss(SKY_Peer_t *peer, uint64_t now_us);
void SKY_Peer_OnTimeout(SKY_Peer_t *peer, uint64_t now_us); /**< loss, and the timer doubles */

typedef enum
{
    SKY_SHARE_RUNNING = 0,
    SKY_SHARE_DONE,
    SKY_SHARE_MISS,     /**< the satellite does not hold a chunk of it */
    SKY_SHARE_EXPIRED,  /**< deadline */
    SKY_SHARE_REFUSED   /**< the satellite said why: last_status */
} SKY_ShareState_t;

/** What both ends know of a share. */
typedef struct
{
    SKY_Addr_t self;        /**< who asks: ground host or satellite */
    SKY_Addr_t gateway;     /**< {0,0}: the first satellite fills it in */
    uint32_t   tenant;
    uint8_t    key[SKY_KEY_BYTES];
    uint32_t   epoch;
    uint32_t   chunk_total;
    uint32_t   chunk_len;   /**< of a full chunk */
    uint32_t   block_len;   /**< (chunk_total - 1) * chunk_len < block_len <= chunk_total * chunk_len */
    uint32_t   base, stride, count;
    uint32_t   packet_bytes; /**< largest packet of the path */
    uint64_t   deadline_us;
    uint64_t   request_id;  /**< first of a range that the caller reserved: low 16 bits count requests of this share */
} SKY_ShareCfg_t;

/** @return false if the numbers contradict each other or a limit. */
bool SKY_ShareCfg_Check(const SKY_ShareCfg_t *cfg);
/** Bytes of chunk @p id of a block. */
uint32_t SKY_ChunkBytes(uint32_t block_len, uint32_t chunk_len, uint32_t chunk_total, uint32_t id);

/* ---- fetch ------------------------------------------------------------------------------------------------------- */

typedef struct
{
    SKY_ShareCfg_t   cfg;
    SKY_Peer_t *     peer;
    uint8_t *        block;     /**< chunk i belongs at block + i * chunk_len */
    SKY_ChunkSet_t   missing;   /**< not here yet */
    SKY_ChunkSet_t   todo;      /**< of these, not asked for, or to be asked for again */
    uint8_t          asked_by[SKY_LIMIT_CHUNK_SET]; /**< low byte of the request that asked for it last */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    uint32_t         on_way;    /**< asked for and not here */
    uint32_t         requests, repeats, duplicates, corrupt;
    uint64_t         timer_us;  /**< 0: not set */
    uint64_t         asked_us;  /**< when the newest request left, for the round trip; 0: do not measure */
    /* one chunk in parts (packets smaller than chunks): parts of the chunk at hand */
    uint64_t         parts;
    uint32_t         parts_chunk;
} SKY_Fetch_t;

/** @param block  block_len bytes that stay in place until the share has ended. @return false: cfg is wrong */
bool SKY_Fetch_Init(SKY_Fetch_t *fetch, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint8_t *block);
/**
 * The next request to send, if window, timer and @p budget (chunks that the host can still take in) allow one.
 * @param payload  SKY_CHUNKSET_MAX_BYTES, becomes req->payload
 * @return true: @p req is to be sent now
 */
bool SKY_Fetch_Next(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t budget, SKY_Packet_t *req, uint8_t *payload);
/** Take in a response to a request of this share: data, or the set of what is missing. Checks CRC-32C before it counts. */
void SKY_Fetch_OnPacket(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt);
/** Let timers act. @return when to call again, at the latest; UINT64_MAX once the share has ended */
uint64_t SKY_Fetch_OnTime(SKY_Fetch_t *fetch, uint64_t now_us);

/* ---- push -------------------------------------------------------------------------------------------------------- */

typedef struct
{
    SKY_ShareCfg_t   cfg;
    SKY_Peer_t *     peer;
    SKY_ChunkSet_t   unacked;
    SKY_ChunkSet_t   todo;       /**< to be sent, or sent again */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    uint32_t         on_way;     /**< sent and not acknowledged */
    uint32_t         since_query; /**< chunks sent since the last HAS */
    uint32_t         cursor;
    uint32_t         sent, repeats, queries;
    uint64_t         timer_us;
    uint64_t         asked_us;
    bool             query_due;
} SKY_Push_t;

typedef enum
{
    SKY_PUSH_NOTHING = 0,
    SKY_PUSH_CHUNK, /**< send chunk @c chunk_id as one PUT or as several parts */
    SKY_PUSH_QUERY  /**< send the HAS request */
} SKY_PushAction_t;

/** All chunks of the share are to be delivered; SKY_ChunkSet_Remove on todo and unacked takes out what is not to be sent. */
bool SKY_Push_Init(SKY_Push_t *push, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer);
/**
 * What to do next. For SKY_PUSH_CHUNK @p pkt is a PUT with all fields but payload, offset, length, chunk_len and chunk_crc, which
 * the caller knows; for SKY_PUSH_QUERY it is complete, with its payload in @p payload (SKY_CHUNKSET_MAX_BYTES).
 */
SKY_PushAction_t SKY_Push_Next(SKY_Push_t *push, uint64_t now_us, uint32_t budget, SKY_Packet_t *pkt, uint8_t *payload);
/** Take in the response to HAS (acknowledged chunks), or an error response to a PUT. */
void SKY_Push_OnPacket(SKY_Push_t *push, uint64_t now_us, const SKY_Packet_t *pkt);
uint64_t SKY_Push_OnTime(SKY_Push_t *push, uint64_t now_us);

#endif
