/**
 * @file
 * Stripe of a block: how its bytes are cut into chunks, and which chunks are parity.
 *
 * Each chunk of a row of n is at another of n servers (sky_spread.h). Without an erasure code all chunks are data, and each is
 * needed. With one, a row has k data chunks and then m parity chunks, n = k + m: row r has the ids r n to r n + n - 1. The last row has as
 * many data chunks as are left, 1 to k, and then its m parity chunks, so there is no gap in the ids. Any k chunks of a full row give its
 * data; of the last row, as many as it has data chunks.
 *
 * All data chunks but the last have one length. A parity chunk is as long as the longest data chunk of its row.
 */
#ifndef SKY_STRIPE_H
#define SKY_STRIPE_H

#include "sky_packet.h"

#define SKY_STRIPE_ROW_MAX 255u /**< most chunks of a row with parity */
#define SKY_STRIPE_ROWS_MAX \
    (1u << 22) /**< most rows with parity: the first server has a chunk of each, and so many slots at most */

/** A stripe. The chunks of a block are known from it. */
typedef struct
{
    uint32_t block_len;   /**< bytes of the block, without parity */
    uint32_t chunk_len;   /**< bytes of a full chunk */
    uint32_t chunk_total; /**< chunks, parity included */
    uint8_t  code_k;      /**< data chunks of a full row; 0: the block has no parity */
    uint8_t  code_m;      /**< parity chunks of a row; 0 if code_k is */
} SKY_Stripe_t;

/** Row of a stripe. Without a code all chunks are one row. */
typedef struct
{
    uint32_t first;  /**< id of its first chunk */
    uint32_t data;   /**< data chunks, which come first; as many chunks give all of them */
    uint32_t parity; /**< parity chunks behind them: so many of the row may be lost */
} SKY_StripeRow_t;

/**
 * Cut a block.
 * @param code_k, code_m  data and parity chunks of a row, together at most SKY_STRIPE_ROW_MAX; both 0: no code
 * @return false if the numbers contradict each other or a limit
 */
bool SKY_Stripe_Cut(SKY_Stripe_t *stripe, uint32_t block_len, uint32_t chunk_len, uint8_t code_k, uint8_t code_m);
/** Return true if there can be a block of this stripe. No other function here is to be called before that. */
bool SKY_Stripe_Check(const SKY_Stripe_t *stripe);
/** Get the stripe that a packet declares whose chunk_len is that of a full chunk. @return false if there is none, or its code is unknown */
bool SKY_Stripe_OfPacket(SKY_Stripe_t *stripe, const SKY_Packet_t *pkt);
/** Get the stripe that a packet declares whose chunk_len is that of its own chunk. @return as SKY_Stripe_OfPacket */
bool SKY_Stripe_OfChunk(SKY_Stripe_t *stripe, const SKY_Packet_t *pkt);
/** Return true if a packet declares a chunk of this stripe: SKY_Stripe_OfChunk would get an equal one, in more steps. */
bool SKY_Stripe_IsChunk(const SKY_Stripe_t *stripe, const SKY_Packet_t *pkt);
/** Declare a stripe in a packet. Its chunk_len becomes that of a full chunk. */
void SKY_Stripe_ToPacket(const SKY_Stripe_t *stripe, SKY_Packet_t *pkt);
/** Return true if two stripes cut a block into the same chunks. */
bool SKY_Stripe_Equal(const SKY_Stripe_t *a, const SKY_Stripe_t *b);

/** Return the number of rows: at least 1. */
uint32_t SKY_Stripe_Rows(const SKY_Stripe_t *stripe);
/** Return the number of data chunks: at least 1. */
uint32_t SKY_Stripe_DataChunks(const SKY_Stripe_t *stripe);
/** Return the row of chunk @p id. */
uint32_t SKY_Stripe_RowOf(const SKY_Stripe_t *stripe, uint32_t id);
/** Describe row number @p row. */
SKY_StripeRow_t SKY_Stripe_Row(const SKY_Stripe_t *stripe, uint32_t row);
/** Return true if chunk @p id is parity. */
bool SKY_Stripe_IsParity(const SKY_Stripe_t *stripe, uint32_t id);
/** Return the bytes of chunk @p id: at least 1. */
uint32_t SKY_Stripe_ChunkBytes(const SKY_Stripe_t *stripe, uint32_t id);
/** Return where chunk @p id begins: a data chunk in the block, a parity chunk in memory of SKY_Stripe_ParityBytes. */
size_t SKY_Stripe_Offset(const SKY_Stripe_t *stripe, uint32_t id);
/** Return the bytes of memory for all parity chunks: room for a full chunk each. */
uint64_t SKY_Stripe_ParityBytes(const SKY_Stripe_t *stripe);

#endif
