/**
 * @file
 * What must always hold: see SKYT_Invariant_t.
 */
#include <stdio.h>
#include <string.h>

#include "twin_priv.h"

void SKYT_Check_Fail(SKYT_Twin_t *twin, SKYT_Invariant_t invariant, uint32_t node, uint32_t op, uint32_t block, uint32_t chunk,
                     const char *text)
{
    if (twin->stopped != SKYT_STOP_NOT)
    {
        return;
    }
    ++twin->counters.violations[invariant];
    if (twin->violation_count < SKYT_VIOLATIONS_KEPT || invariant == SKYT_INVARIANT_LIVELOCK) /* which is the last in any case */
    {
        twin->violation_count += twin->violation_count < SKYT_VIOLATIONS_KEPT ? 1u : 0u;
        SKYT_Violation_t *violation = &twin->violations[twin->violation_count - 1u];

        violation->time_us   = twin->now_us;
        violation->invariant = (uint32_t)invariant;
        violation->node      = node;
        violation->op        = op;
        violation->block     = block;
        violation->chunk     = chunk;
        (void)snprintf(violation->text, sizeof(violation->text), "%s", text);
    }
    if (++twin->violated == twin->config.violations_max)
    {
        twin->stopped = SKYT_STOP_VIOLATIONS;
    }
}

/* What is wrong with the bytes of a chunk, if anything is. */
void SKYT_Check_Bytes(SKYT_Twin_t *twin, const uint8_t *data, uint32_t len, uint32_t node, uint32_t op, uint32_t block,
                      uint32_t chunk)
{
    uint32_t claimed_chunk;

    SKYT_Content_Chunk(block, chunk, twin->scratch, len);
    if (memcmp(twin->scratch, data, len) == 0)
    {
        return;
    }
    const uint32_t claimed = SKYT_Content_Claims(data, len, &claimed_chunk);

    if (claimed < twin->block_count && claimed != block)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_FOREIGN, node, op, block, chunk, "a chunk of another block came");
    }
    else
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_EXACT, node, op, block, chunk, "a chunk is not what was put");
    }
}

void SKYT_Check_Chunk(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    SKYT_Check_Bytes(twin, active->buffer + (size_t)chunk * twin->config.chunk_bytes,
                     SKYT_Content_ChunkBytes(twin, active->block, chunk), SKYT_NONE, active->op, active->block, chunk);
}

void SKYT_Check_Store(SKYT_Twin_t *twin, uint32_t node)
{
    const SKY_Store_t         *store = &twin->nodes[node].store;
    const SKY_StoreCounters_t *held  = &store->counters;

    if (held->slots_used > store->cfg.slot_count || held->blocks > store->cfg.block_count || held->partial > held->slots_used ||
        held->bytes > (uint64_t)(held->slots_used - held->partial) * store->cfg.slot_bytes)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIMIT, node, SKYT_NONE, SKYT_NONE, SKYT_NONE, "a store holds more than it may");
    }
}

void SKYT_Check_Route(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node)
{
    for (uint32_t i = 0; i < packet->hops; ++i)
    {
        if (packet->trail[i] == node && SKYT_Hello_AllKnow(twin, packet->began_us))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_ROUTE, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                            "a packet came to this satellite twice, although all know which links are down");
            return;
        }
    }
}

void SKYT_Check_Packets(SKYT_Twin_t *twin)
{
    if (twin->packets_queued != twin->counters.packets_on_way)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_PACKETS, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "packets were taken and not given back");
    }
}
