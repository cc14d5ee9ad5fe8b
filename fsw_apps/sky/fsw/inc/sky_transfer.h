/**
 * @file
 * Bookkeeping of both ends of a transfer, without sockets and without a clock.
 *
 * A *share* is what one satellite holds of one block: chunks base, base + stride, ... A fetch asks for a share and repeats
 * what is missing; a push offers a share and repeats what is not acknowledged. Both are selective repeat: a window of chunks
 * per satellite (grows while little is lost, halves when more is: it finds the bandwidth-delay product), a retransmission timer
 * from measured round trips (RFC 6298), and a deadline after which the share has failed.
 *
 * The window and the timer belong to the satellite and are shared by all shares that go on with it: SKY_Peer_t.
 *
 * Every request has its own number, so that a round trip is never measured against the wrong one, and so that the answer to
 * a later request tells that the burst of an earlier one is over: what of it is missing then is lost, or will come in a moment.
 */
#ifndef SKY_TRANSFER_H
#define SKY_TRANSFER_H

#include "sky_chunkset.h"
#include "sky_parts.h"

/* A share, or a question, reserves so many request ids. The low bits of an id count its requests, the others say whose it is. */
#define SKY_REQUEST_IDS        UINT64_C(0x10000)
#define SKY_REQUEST_NUMBER(id) ((uint16_t)((id) & (SKY_REQUEST_IDS - 1u)))
#define SKY_REQUEST_FIRST(id)  ((id) & ~(SKY_REQUEST_IDS - 1u))

/* ---- peer: sky_peer.c -------------------------------------------------------------------------------------------- */

typedef struct
{
    uint32_t window_initial; /**< chunks */
    uint32_t window_max;     /**< chunks, at most SKY_LIMIT_CHUNK_SET */
    uint32_t burst;          /**< chunks of one GET, chunks of PUT before a HAS asks for them; 0: window_initial */
    uint32_t rto_initial_us;
    uint32_t rto_min_us; /**< the timer is at least this much above the mean round trip */
    uint32_t rto_max_us;
} SKY_PeerCfg_t;

typedef struct
{
    SKY_PeerCfg_t cfg;
    SKY_Addr_t    addr;
    uint32_t      window;      /**< chunks that may be on their way */
    uint32_t      threshold;   /**< slow start below, one chunk a round trip above */
    uint32_t      credit;      /**< chunks that the satellite last said it takes at a time: the longest burst of a push */
    uint32_t      outstanding; /**< chunks on their way, all shares together */
    uint32_t      srtt_us, rttvar_us, rto_us; /**< srtt 0: nothing measured yet */
    uint32_t      acked_in_window;
    uint32_t      lost_in_round;
    uint32_t      grace_quarters; /**< of a round trip, how long what may only be late is waited for */
    bool          late_in_round;
    uint64_t      narrow_us;    /**< when the grace goes back to what it was first, if nothing comes late until then */
    uint64_t      round_end_us; /**< a round takes a round trip */
    uint64_t      recovered_us; /**< losses before this time belong to one halving */
} SKY_Peer_t;

/** What a ground host has: its timers, and a first window of two bursts, for one comes while the next is asked for. */
SKY_PeerCfg_t SKY_PeerCfg_OfHost(uint32_t window_max, uint32_t burst);
/** Numbers of @p cfg that are out of range are brought into it. */
void SKY_Peer_Init(SKY_Peer_t *peer, const SKY_PeerCfg_t *cfg, SKY_Addr_t addr);
void SKY_Peer_OnRtt(SKY_Peer_t *peer, uint32_t rtt_us);
void SKY_Peer_OnDelivered(SKY_Peer_t *peer, uint32_t chunks);
/** A few chunks lost in a round are bad luck; more mean that somewhere too many were waiting: the window halves. */
void SKY_Peer_OnLoss(SKY_Peer_t *peer, uint64_t now_us, uint32_t chunks);
/** A chunk came that was given up: from now on one is waited for longer, a round trip at most, until that has not happened for
 *  a while (RFC 8985, section 6.2). */
void SKY_Peer_OnLate(SKY_Peer_t *peer, uint64_t now_us);
/** How long what was overtaken may still be late. */
uint32_t SKY_Peer_GraceUs(SKY_Peer_t *peer, uint64_t now_us);
void     SKY_Peer_OnTimeout(SKY_Peer_t *peer, uint64_t now_us); /**< loss, and the timer doubles */
/** What a response to PUT or HAS says of credit. A satellite that takes nothing is asked again with one chunk. */
void SKY_Peer_OnCredit(SKY_Peer_t *peer, uint32_t credit);

/* ---- share: sky_peer.c ------------------------------------------------------------------------------------------- */

typedef enum
{
    SKY_SHARE_RUNNING = 0,
    SKY_SHARE_DONE,
    SKY_SHARE_MISS,    /**< the satellite does not hold a chunk of it, or holds another block under this key */
    SKY_SHARE_EXPIRED, /**< deadline */
    SKY_SHARE_REFUSED  /**< the satellite said why: last_status */
} SKY_ShareState_t;

/** What both ends know of a share. */
typedef struct
{
    SKY_Addr_t self;    /**< who asks: ground host or satellite */
    SKY_Addr_t gateway; /**< {0,0}: the first satellite fills it in */
    uint32_t   tenant;
    uint8_t    key[SKY_KEY_BYTES];
    uint32_t   epoch;
    uint32_t   chunk_total;
    uint32_t   chunk_len; /**< of a full chunk */
    uint32_t   block_len; /**< (chunk_total - 1) * chunk_len < block_len <= chunk_total * chunk_len */
    uint32_t   base, stride, count;
    uint32_t   packet_bytes; /**< largest packet of the path */
    uint64_t   deadline_us;  /**< UINT64_MAX: none */
    uint64_t   request_id;   /**< first of a range that the caller reserved: see SKY_REQUEST_IDS */
} SKY_ShareCfg_t;

/** @return false if the numbers contradict each other or a limit. */
bool SKY_ShareCfg_Check(const SKY_ShareCfg_t *cfg);
/** Is @p pkt a response to a request of this share? */
bool SKY_ShareCfg_Owns(const SKY_ShareCfg_t *cfg, const SKY_Packet_t *pkt);
/** What an error response makes of a share: RUNNING if asking again may help. */
SKY_ShareState_t SKY_ShareState_OfError(SKY_Status_t status);
/** Bytes of chunk @p id of a block. */
uint32_t SKY_ChunkBytes(uint32_t block_len, uint32_t chunk_len, uint32_t chunk_total, uint32_t id);
/** A request of this share to @p peer; what belongs to the operation is still empty, and so is the sequence count. */
void SKY_ShareCfg_Request(const SKY_ShareCfg_t *cfg, const SKY_Peer_t *peer, uint64_t now_us, uint8_t op, uint16_t number,
                          SKY_Packet_t *req);
/**
 * Cut the next part off a chunk: sets offset, length, payload and sequence flags of @p pkt, whose chunk_len says how long the
 * chunk is. The parts of a chunk are of equal length but for the last.
 * @param packet_bytes  largest packet, larger than the overhead
 * @return offset of the next part; chunk_len after the last
 */
uint32_t SKY_Packet_CutPart(SKY_Packet_t *pkt, const uint8_t *chunk, uint32_t offset, uint32_t packet_bytes);

/* ---- fetch: sky_fetch.c ------------------------------------------------------------------------------------------ */

#define SKY_FETCH_PARTIALS 32u /**< chunks in parts that one share follows at a time; older ones are asked for again */

/** A chunk of which parts came. */
typedef struct
{
    SKY_Parts_t parts; /**< all zero: nothing, or free */
    uint32_t    index; /**< in the share */
} SKY_Partial_t;

typedef struct
{
    SKY_ShareCfg_t   cfg;
    SKY_Peer_t      *peer;
    uint8_t         *block;   /**< chunk i belongs at block + i * chunk_len */
    SKY_ChunkSet_t   missing; /**< not here yet */
    SKY_ChunkSet_t   todo;    /**< of these, not asked for, or to be asked for again */
    SKY_ChunkSet_t   denied;  /**< the satellite does not hold them; not missing any more after SKY_Fetch_Collect */
    uint16_t         asked_by[SKY_LIMIT_CHUNK_SET]; /**< number of the request that asked for it last; 0: none */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    bool             collects;
    uint32_t         left;    /**< chunks missing */
    uint32_t         denials; /**< chunks denied */
    uint32_t         on_way;  /**< asked for and not here */
    uint32_t         requests, repeats, duplicates, corrupt;
    uint16_t         number;   /**< of the newest request */
    uint16_t         over;     /**< the newest request whose burst is over */
    uint16_t         gap;      /**< the newest of those whose time of grace runs */
    uint16_t         timed;    /**< request whose round trip is measured; 0: none */
    uint64_t         asked_us; /**< when that left */
    uint64_t         timer_us; /**< 0: not set */
    uint64_t         gap_us;   /**< when what is missing up to `gap` counts as lost (it may just be late); 0: not set */
    uint32_t         partial_next;
    SKY_Partial_t    partials[SKY_FETCH_PARTIALS];
} SKY_Fetch_t;

/** @param block  block_len bytes that stay in place until the share has ended. @return false: cfg is wrong */
bool SKY_Fetch_Init(SKY_Fetch_t *fetch, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint8_t *block);
/** Chunk number @p index of the share is here already; only before the first SKY_Fetch_Next. */
void SKY_Fetch_Skip(SKY_Fetch_t *fetch, uint32_t index);
/** A chunk that the satellite denies does not end the share at once, but when each chunk is here or denied: part of a share may lie
 *  elsewhere while it moves. Only before the first SKY_Fetch_Next. */
void SKY_Fetch_Collect(SKY_Fetch_t *fetch);
/**
 * The next request to send, if window, timer and @p budget (chunks that the host can still take in) allow one. Call until false.
 * @param payload  SKY_CHUNKSET_MAX_BYTES, becomes req->payload
 * @return true: @p req is to be sent now; it asks for req->credit chunks
 */
bool SKY_Fetch_Next(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t budget, SKY_Packet_t *req, uint8_t *payload);
/** Take in a response to a request of this share: data, or the set of what is missing. Checks CRC-32C before it counts. */
void SKY_Fetch_OnPacket(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt);
/** Let timers act. @return when to call again, at the latest; UINT64_MAX once the share has ended */
uint64_t SKY_Fetch_OnTime(SKY_Fetch_t *fetch, uint64_t now_us);
/** End a running share, for instance because another share of its block failed; nothing happens to one that has ended. */
void SKY_Fetch_Stop(SKY_Fetch_t *fetch, SKY_ShareState_t state);

/* ---- push: sky_push.c -------------------------------------------------------------------------------------------- */

typedef struct
{
    SKY_ShareCfg_t   cfg;
    SKY_Peer_t      *peer;
    SKY_ChunkSet_t   unacked;
    SKY_ChunkSet_t   todo;     /**< of these, to be sent, or sent again */
    SKY_ChunkSet_t   doubted;  /**< of those on their way, not there when they were first asked for */
    uint16_t        *asked_by; /**< of each chunk, the number of the query that settles it; 0: not sent yet */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    uint32_t         left;        /**< chunks not acknowledged */
    uint32_t         on_way;      /**< sent and not acknowledged */
    uint32_t         since_query; /**< chunks sent since the last HAS */
    uint32_t         cursor;
    uint32_t         sent, repeats, queries;
    uint32_t         unanswered; /**< time-outs since a response came */
    uint32_t         fruitless;  /**< responses in a row by which chunks were lost and none was delivered */
    uint16_t         number;     /**< of the newest query */
    uint16_t         timed;      /**< query whose round trip is measured; 0: none */
    uint64_t         asked_us;   /**< when that left */
    uint64_t         timer_us;   /**< 0: not set */
    bool             query_due;  /**< now */
    bool             query_owed; /**< for what is doubted, when no more chunks can go out before it */
} SKY_Push_t;

typedef enum
{
    SKY_PUSH_NOTHING = 0,
    SKY_PUSH_CHUNK, /**< send chunk pkt->chunk_id as one PUT or as several parts (SKY_Packet_CutPart) */
    SKY_PUSH_QUERY  /**< send the HAS request */
} SKY_PushAction_t;

/**
 * All chunks of the share are to be delivered, but for those that SKY_Push_Skip takes out.
 * @param asked_by  room for cfg->count numbers, at most SKY_LIMIT_CHUNK_SET; it stays with the push
 * @return false: cfg is wrong
 */
bool SKY_Push_Init(SKY_Push_t *push, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint16_t *asked_by);
/** Chunk number @p index of the share is not to be sent; only before the first SKY_Push_Next. */
void SKY_Push_Skip(SKY_Push_t *push, uint32_t index);
/**
 * What to do next. For SKY_PUSH_CHUNK @p pkt is a PUT with chunk_len, but without offset, length, payload and chunk_crc, which
 * the caller knows; for SKY_PUSH_QUERY it is complete, with its payload in @p payload (SKY_CHUNKSET_MAX_BYTES).
 * @param budget  chunks that the host can send now; a query needs none
 */
SKY_PushAction_t SKY_Push_Next(SKY_Push_t *push, uint64_t now_us, uint32_t budget, SKY_Packet_t *pkt, uint8_t *payload);
/** Take in the response to HAS (acknowledged chunks), or an error response to a PUT. */
void SKY_Push_OnPacket(SKY_Push_t *push, uint64_t now_us, const SKY_Packet_t *pkt);
/** Let timers act. @return when to call again, at the latest; UINT64_MAX once the share has ended */
uint64_t SKY_Push_OnTime(SKY_Push_t *push, uint64_t now_us);
/** End a running share; nothing happens to one that has ended. */
void SKY_Push_Stop(SKY_Push_t *push, SKY_ShareState_t state);

#endif
