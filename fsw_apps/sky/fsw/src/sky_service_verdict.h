/**
 * @file
 * Private to the service: what a census has counted, and what follows for each row (sky_service_verdict.c). The rows and chunks of these
 * functions are those that are counted at the moment, from 0.
 */
#ifndef SKY_SERVICE_VERDICT_H
#define SKY_SERVICE_VERDICT_H

#include "sky_assert.h"
#include "sky_service_state.h"

/** Return the bit of a row in the words of the census. */
static inline uint64_t SKY_Verdict_Bit(uint32_t row)
{
    SKY_ASSERT(row < SKY_SERVICE_CENSUS_ROWS);
    return UINT64_C(1) << row;
}

/** Return the number of chunks of a row. */
uint32_t SKY_Verdict_Places(const SKY_Census_t *census, uint32_t row);
/** Take in what a server says of its share's chunks in the first @p count rows. @param servers  number of all servers */
void SKY_Verdict_TakeWord(SKY_Census_t *census, uint32_t share, uint32_t servers, uint32_t count, const SKY_Packet_t *pkt);
/** Return true if a row has lost more chunks for sure than its parity makes up for. */
bool SKY_Verdict_IsDead(const SKY_Census_t *census);
/** Return true if a row has lost chunks that its others can give. */
bool SKY_Verdict_IsDegraded(const SKY_Census_t *census);
/** Return true if all chunks of all rows are held. */
bool SKY_Verdict_IsWhole(const SKY_Census_t *census);
/** Move `census.at` on to the next lost chunk that others of its row can give and its home may have room for, and write their places to
 * @p have. @return false if there is none */
bool SKY_Verdict_NextLost(SKY_Census_t *census, uint64_t now_us, uint32_t servers, uint8_t *have);
/** Note what came of the repair of the chunk at `census.at`, if one has ended. @return true if the chunk is home again */
bool SKY_Verdict_TakeRepair(SKY_Census_t *census, uint32_t servers);

#endif
