/**
 * @file
 * Parts of a chunk that are here, for links that are too narrow for whole chunks. All parts but the last have one length and begin
 * at multiples of it. No packet says that length: it follows from any part but the last. Parts come in any order, some twice.
 */
#ifndef SKY_PARTS_H
#define SKY_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sky_icd.h"

/** Parts of a chunk. All zero: nothing is here. */
typedef struct
{
    uint64_t here;        /**< bit i: the part that begins at i * part_bytes; the last part is told by tail_offset instead */
    uint32_t part_bytes;  /**< 0: not known yet */
    uint32_t tail_offset; /**< offset of the last part; 0: not here */
} SKY_Parts_t;

/** Return true if [offset, offset + length) can be a part, or the whole, of a chunk in at most SKY_LIMIT_FRAGMENTS parts. */
bool SKY_Parts_Check(uint32_t chunk_len, uint32_t offset, uint32_t length);
/** Note a part that is not the whole. @return false if it does not pass the check, or contradicts other parts */
bool SKY_Parts_Add(SKY_Parts_t *parts, uint32_t chunk_len, uint32_t offset, uint32_t length);
/** Return true if the chunk is complete. */
bool SKY_Parts_AllHere(const SKY_Parts_t *parts);

#endif
