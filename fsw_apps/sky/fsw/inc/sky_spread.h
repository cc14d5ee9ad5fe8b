/**
 * @file
 * Spread of blocks: which server has which chunks.
 *
 * A *share* of a block is what one server has of it: chunks s, s + n, s + 2 n, ... of n servers. Share s is at server (s + offset) mod n.
 * The offset of a block of SKY_SPREAD_ROWS rows and more is 0: it fills all servers alike, and its first chunks are at the servers that
 * are nearest (paper, section 3.3). A smaller block would leave the last servers empty, so bits of its key say which server has its share 0.
 * Satellites and hosts compute the offset, and no packet carries it.
 *
 * Who knows the key alone does not know the block's length. The servers from SKY_Spread_OfKey on have the first shares of a small block,
 * and shares of a large one.
 */
#ifndef SKY_SPREAD_H
#define SKY_SPREAD_H

#include <stdint.h>

#define SKY_SPREAD_ROWS \
    8u /**< rows of chunks from which a block lies alike on all servers: they differ by one chunk in eight at most */

/** Return the server of share 0 of a small block. @param key  SKY_KEY_BYTES */
uint32_t SKY_Spread_OfKey(const uint8_t *key, uint32_t servers);
/** Return the server of share 0 of a block. @param chunk_total  chunks of the block, parity included */
uint32_t SKY_Spread_Offset(const uint8_t *key, uint32_t chunk_total, uint32_t servers);
/** Return the server of a chunk. The number of a share is the id of its first chunk. */
uint32_t SKY_Spread_Server(const uint8_t *key, uint32_t chunk_total, uint32_t servers, uint32_t chunk_id);
/** Return the share that a server has. */
uint32_t SKY_Spread_Share(const uint8_t *key, uint32_t chunk_total, uint32_t servers, uint32_t server);

#endif
