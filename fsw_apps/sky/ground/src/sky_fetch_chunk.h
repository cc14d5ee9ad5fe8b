/**
 * @file
 * Bytes of chunks that a fetch receives.
 */
#ifndef SKY_FETCH_CHUNK_H
#define SKY_FETCH_CHUNK_H

#include "sky_fetch.h"

/**
 * Put a chunk, or a part of it, where it belongs.
 * @param pkt    data of chunk number @p index of the share, which is missing; SKY_Parts_Check has passed its numbers
 * @return true if the chunk is complete now, and its checksum is right
 */
bool SKY_FetchChunk_Take(SKY_Fetch_t *fetch, const SKY_Packet_t *pkt, uint32_t index);

#endif
