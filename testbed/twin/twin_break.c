/**
 * @file
 * The core, broken on purpose: a check that never fails proves nothing.
 */
#include <string.h>

#include "twin_priv.h"

#define PAYLOAD_AT (SKY_RESPONSE_OVERHEAD - SKY_PEC_BYTES)

uint32_t SKYT_Break_Packet(SKYT_Twin_t *twin, const SKY_PacketParts_t *out)
{
    const uint32_t len   = out->head_len + out->body_len + SKY_PEC_BYTES;
    uint8_t       *bytes = twin->scratch2;
    SKY_Packet_t   pkt;

    if ((twin->broken != SKYT_BREAK_FLIP && twin->broken != SKYT_BREAK_SWAP) || out->body_len == 0)
    {
        return 0;
    }
    (void)memcpy(bytes, out->head, out->head_len);
    (void)memcpy(&bytes[out->head_len], out->body, out->body_len);
    (void)memcpy(&bytes[out->head_len + out->body_len], out->tail, SKY_PEC_BYTES);
    if (SKY_Packet_Decode(bytes, len, &pkt) != SKY_STATUS_OK || pkt.is_request || pkt.op != SKY_OP_GET ||
        pkt.status != SKY_STATUS_OK || pkt.length != pkt.chunk_len)
    {
        return 0;
    }
    const uint32_t block = SKYT_Content_BlockOf(twin, pkt.tenant, pkt.key);

    if (twin->broken == SKYT_BREAK_FLIP)
    {
        bytes[PAYLOAD_AT + pkt.length - 1u] ^= 1u;
    }
    else
    {
        SKYT_Content_Chunk(block ^ 1u, pkt.chunk_id, &bytes[PAYLOAD_AT], pkt.length);
    }
    (void)memcpy(twin->scratch, &bytes[PAYLOAD_AT], pkt.length);
    pkt.payload   = twin->scratch;
    pkt.chunk_crc = SKY_Crc32c(0, twin->scratch, pkt.length);
    return (uint32_t)SKY_Packet_Encode(&pkt, bytes, twin->config.packet_bytes);
}

void SKYT_Break_Served(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt)
{
    SKY_Store_t   *store = &twin->nodes[index].store;
    SKY_ChunkSet_t asked;

    if (twin->broken == SKYT_BREAK_OVERFULL && pkt->op == SKY_OP_PUT)
    {
        /* Of what the store counts, this alone is not asserted by the core too, which would end the process. */
        store->counters.bytes = (uint64_t)store->cfg.slot_count * store->cfg.slot_bytes + 1u;
    }
    if (twin->broken == SKYT_BREAK_FORGET && pkt->is_request && pkt->op == SKY_OP_HAS && pkt->src.plane != 0 &&
        SKY_ChunkSet_Decode(pkt, &asked) == SKY_STATUS_OK)
    {
        const uint32_t first = SKY_ChunkSet_Next(&asked, 0);

        if (first < asked.count)
        {
            (void)SKY_Store_Drop(store, pkt->tenant, pkt->key, SKY_ChunkSet_ChunkId(&asked, first));
        }
    }
}
