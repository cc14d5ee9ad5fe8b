/**
 * @file
 * Bookkeeping of both ends of a transfer, without sockets and without a clock.
 *
 * A *share* is the part of a block at one satellite: chunks base, base + stride, ... A fetch asks for a share and again for
 * missing chunks; a push sends a share and again chunks that are not acknowledged. Both are selective repeat: a window of chunks
 * per satellite, a retransmission timer from measured round trips (RFC 6298), and a deadline after which the share has failed. The
 * window grows, and halves when chunks are lost while packets wait in a queue, and so finds the bandwidth-delay product. Links also
 * lose packets without being full; such losses leave window and timer as they are.
 *
 * The window and the timer belong to the satellite and are shared by all shares that go on with it: SKY_Peer_t.
 *
 * Every request has its own number, so that a round trip is never measured against the wrong one, and so that the answer to
 * a later request tells that the burst of an earlier one is over: chunks of it that are missing then are lost, or come in a moment.
 */
#ifndef SKY_TRANSFER_H
#define SKY_TRANSFER_H

#include "sky_chunkset.h"
#include "sky_parts.h"
#include "sky_stripe.h"

/* Request ids that a share or a question reserves. The low bits of an id count its requests, the others name its owner. */
#define SKY_REQUEST_IDS        UINT64_C(0x10000)
#define SKY_REQUEST_NUMBER(id) ((uint16_t)((id) & (SKY_REQUEST_IDS - 1u)))
#define SKY_REQUEST_FIRST(id)  ((id) & ~(SKY_REQUEST_IDS - 1u))

/* ---- peer: sky_peer.c -------------------------------------------------------------------------------------------- */

typedef struct
{
    uint32_t window_initial; /**< chunks */
    uint32_t window_max;     /**< chunks, at most SKY_LIMIT_CHUNK_SET */
    uint32_t burst;          /**< chunks of one GET, or of a PUT before a HAS asks for them; 0: window_initial */
    uint32_t rto_initial_us;
    uint32_t rto_min_us; /**< least distance of the timer above the mean round trip */
    uint32_t rto_max_us;
} SKY_PeerCfg_t;

#define SKY_PEER_ALL 65536u /**< all of the last packets */

typedef struct
{
    SKY_PeerCfg_t cfg;
    SKY_Addr_t    addr;
    uint32_t      window;      /**< chunks that may be on their way */
    uint32_t      threshold;   /**< slow start below, one chunk a round trip above */
    uint32_t      credit;      /**< chunks that the satellite takes at a time by its last word: the longest burst of a push */
    uint32_t      outstanding; /**< chunks on their way, all shares together */
    uint32_t      srtt_us, rttvar_us, rto_us; /**< srtt 0: nothing measured yet */
    uint32_t      least_us;                   /**< least round trip, forgotten slowly; 0: nothing measured yet */
    uint32_t      longest_us; /**< longest time between two packets of one answer, forgotten slowly; 0: none came yet */
    uint32_t      loss_share; /**< lost ones of the last packets, of SKY_PEER_ALL */
    uint32_t      silences;   /**< time-outs since the last answer */
    uint32_t      acked_in_window;
    uint32_t      lost_in_round;
    uint32_t      grace_quarters; /**< quarters of a round trip for which chunks that may only be late are waited for */
    bool          late_in_round;
    bool          is_guess;     /**< srtt_us is of an answer of which nobody knows which sending it answers */
    uint64_t      queue_us;     /**< until then packets count as waiting in a queue */
    uint64_t      narrow_us;    /**< time at which the grace goes back to its first value, if nothing comes late until then */
    uint64_t      round_end_us; /**< end of the round, which takes a round trip */
    uint64_t      recovered_us; /**< losses before this time belong to one halving */
} SKY_Peer_t;

/** Return the configuration of a ground host: its timers, and a first window of two bursts: one comes while the next is asked for. */
SKY_PeerCfg_t SKY_PeerCfg_OfHost(uint32_t window_max, uint32_t burst);
/** Begin a peer. Numbers of @p cfg that are out of range are brought into it. */
void SKY_Peer_Init(SKY_Peer_t *peer, const SKY_PeerCfg_t *cfg, SKY_Addr_t addr);
void SKY_Peer_OnRtt(SKY_Peer_t *peer, uint32_t rtt_us);
/** Take the time from the last of several sendings to an answer for the round trip, as long as none is measured. It may be too short. */
void SKY_Peer_OnGuess(SKY_Peer_t *peer, uint32_t rtt_us);
/** Note how long after its request a packet came: much longer than the least round trip means that packets wait in a queue. */
void SKY_Peer_OnAge(SKY_Peer_t *peer, uint64_t now_us, uint64_t age_us);
/** Note the time between two packets of one answer. */
void SKY_Peer_OnGap(SKY_Peer_t *peer, uint64_t gap_us);
void SKY_Peer_OnDelivered(SKY_Peer_t *peer, uint32_t chunks);
/**
 * Count lost chunks. If there are more than a few in a round, slow start ends. The window halves if packets wait in a queue besides, or if
 * a quarter of the last packets was lost: some links drop what is too much for them without any queue.
 * @param packets  least number of lost packets that explains it: chunks of a request without any answer may be missing for one
 */
void SKY_Peer_OnLoss(SKY_Peer_t *peer, uint64_t now_us, uint32_t chunks, uint32_t packets);
/** Note that a chunk came that was given up: later ones are waited for longer, a round trip at most, until that has not happened
 *  for a while (RFC 8985, section 6.2). */
void SKY_Peer_OnLate(SKY_Peer_t *peer, uint64_t now_us);
/** Return how long an overtaken chunk may still be late. */
uint32_t SKY_Peer_GraceUs(SKY_Peer_t *peer, uint64_t now_us);
/** Return how long the next packet of an answer is waited for. */
uint32_t SKY_Peer_TailUs(SKY_Peer_t *peer, uint64_t now_us);
/** Note that no answer came in time. The first time it counts as a lost packet. The second time, or if packets wait in a queue, or an answer
 *  came late not long ago, the window halves and the timer doubles. */
void SKY_Peer_OnTimeout(SKY_Peer_t *peer, uint64_t now_us);
/** Take in the credit of a response to PUT or HAS. A satellite that takes nothing is asked again with one chunk. */
void SKY_Peer_OnCredit(SKY_Peer_t *peer, uint32_t credit);

/* ---- share: sky_peer.c ------------------------------------------------------------------------------------------- */

typedef enum
{
    SKY_SHARE_RUNNING = 0,
    SKY_SHARE_DONE,
    SKY_SHARE_MISS, /**< the satellite lacks a chunk of the share, or holds another block under this key: last_status is BAD_KEY */
    SKY_SHARE_EXPIRED, /**< the deadline has passed */
    SKY_SHARE_REFUSED  /**< the satellite refused, and said why: last_status */
} SKY_ShareState_t;

/** Facts of a share that both ends know. */
typedef struct
{
    SKY_Addr_t   self;    /**< address of the asking ground host or satellite */
    SKY_Addr_t   gateway; /**< {0,0}: the first satellite fills it in */
    SKY_Addr_t   home;    /**< PUT at a stand-in: whose share it is; {0,0}: the receiver's own */
    uint32_t     tenant;
    uint8_t      key[SKY_KEY_BYTES];
    uint32_t     epoch;
    uint8_t      track;   /**< schedule for whose window the chunks were placed; 0: the constellation's only one */
    uint32_t     content; /**< content instance of the block; 0: it has none */
    uint64_t     version; /**< version of the block under its key; 0: the key names the content */
    SKY_Stripe_t stripe;
    uint32_t     base, stride, count;
    uint32_t     packet_bytes; /**< largest packet of the path */
    uint64_t     deadline_us;  /**< UINT64_MAX: none */
    uint64_t     request_id;   /**< first of a range that the caller reserved: see SKY_REQUEST_IDS */
} SKY_ShareCfg_t;

/** @return false if the numbers contradict each other or a limit. */
bool SKY_ShareCfg_Check(const SKY_ShareCfg_t *cfg);
/** Return true if @p pkt is a response to a request of this share. */
bool SKY_ShareCfg_Owns(const SKY_ShareCfg_t *cfg, const SKY_Packet_t *pkt);
/** Return true if a chunk of a share is parity. */
bool SKY_ShareCfg_HasParity(const SKY_ShareCfg_t *cfg);
/** Return true if a GET response with status ok carries a chunk of the block of a share. */
bool SKY_ShareCfg_IsChunk(const SKY_ShareCfg_t *cfg, const SKY_Packet_t *pkt);
/** Return the state of a share after an error response: RUNNING if asking again may help. */
SKY_ShareState_t SKY_ShareState_OfError(SKY_Status_t status);
/** Make a request of this share to @p peer, without the fields of the operation and the sequence count. */
void SKY_ShareCfg_Request(const SKY_ShareCfg_t *cfg, const SKY_Peer_t *peer, uint64_t now_us, uint8_t op, uint16_t number,
                          SKY_Packet_t *req);
/**
 * Cut the next part off a chunk: sets offset, length, payload and sequence flags of @p pkt, whose chunk_len says how long the
 * chunk is. The parts of a chunk are of equal length but for the last.
 * @param packet_bytes  largest packet, larger than the overhead
 * @return offset of the next part; chunk_len after the last
 */
uint32_t SKY_Packet_CutPart(SKY_Packet_t *pkt, const uint8_t *chunk, uint32_t offset, uint32_t packet_bytes);

/* ---- push: sky_push.c -------------------------------------------------------------------------------------------- */

typedef struct
{
    SKY_ShareCfg_t   cfg;
    SKY_Peer_t      *peer;
    SKY_ChunkSet_t   unacked;
    SKY_ChunkSet_t   todo;     /**< unacknowledged chunks to be sent, or sent again */
    SKY_ChunkSet_t   doubted;  /**< chunks on their way that were not there when they were first asked for */
    uint16_t        *asked_by; /**< number of the query that settles each chunk; 0: not sent yet */
    SKY_ShareState_t state;
    SKY_Status_t     last_status;
    uint64_t         held_version; /**< after OLD_VERSION and BAD_KEY: the version that the satellite holds */
    uint32_t         left;         /**< chunks not acknowledged */
    uint32_t         on_way;       /**< chunks sent and not acknowledged */
    uint32_t         since_query;  /**< chunks sent since the last HAS */
    uint32_t         cursor;
    uint32_t         sent, repeats, queries;
    uint32_t         unanswered; /**< time-outs since a response came */
    uint32_t         fruitless;  /**< responses one after another that reported losses and no delivery */
    uint16_t         number;     /**< number of the newest query */
    uint16_t         timed;      /**< query whose round trip is measured; 0: none */
    uint64_t         asked_us;   /**< time at which that left */
    uint64_t         timer_us;   /**< time of the timer; 0: not set */
    bool             query_due;  /**< a query is due now */
    bool             query_owed; /**< a query for the doubted chunks is due once no more chunks can go out before it */
} SKY_Push_t;

typedef enum
{
    SKY_PUSH_NOTHING = 0,
    SKY_PUSH_CHUNK, /**< send chunk pkt->chunk_id as one PUT or as several parts (SKY_Packet_CutPart) */
    SKY_PUSH_QUERY  /**< send the HAS request */
} SKY_PushAction_t;

/**
 * Begin a push of all chunks of the share, but for those that SKY_Push_Skip takes out.
 * @param asked_by  room for cfg->count numbers, at most SKY_LIMIT_CHUNK_SET; it stays with the push
 * @return false if cfg is wrong
 */
bool SKY_Push_Init(SKY_Push_t *push, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint16_t *asked_by);
/** Take chunk number @p index out of the push; only before the first SKY_Push_Next. */
void SKY_Push_Skip(SKY_Push_t *push, uint32_t index);
/**
 * Get the next action. For SKY_PUSH_CHUNK @p pkt is a PUT with chunk_len, but without offset, length, payload and chunk_crc, which
 * the caller knows; for SKY_PUSH_QUERY it is complete, with its payload in @p payload (SKY_CHUNKSET_MAX_BYTES).
 * @param budget  chunks that the host can send now; a query needs none
 */
SKY_PushAction_t SKY_Push_Next(SKY_Push_t *push, uint64_t now_us, uint32_t budget, SKY_Packet_t *pkt, uint8_t *payload);
/** Take in the response to HAS (acknowledged chunks), or an error response to a PUT. */
void SKY_Push_OnPacket(SKY_Push_t *push, uint64_t now_us, const SKY_Packet_t *pkt);
/** Let timers act. @return time of the next call, at the latest; UINT64_MAX once the share has ended */
uint64_t SKY_Push_OnTime(SKY_Push_t *push, uint64_t now_us);
/** End a running share. An ended share stays as it is. */
void SKY_Push_Stop(SKY_Push_t *push, SKY_ShareState_t state);

#endif
