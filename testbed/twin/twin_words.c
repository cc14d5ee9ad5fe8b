/**
 * @file
 * Words: what satellites have said of values. A host may take a value for absent, or for older than it is, only if as many satellites have
 * said so as can make sure that one is among them that knows: one more than hold parity, as so many may be away.
 */
#include <stdlib.h>

#include "twin_priv.h"

bool SKYT_Words_Init(SKYT_Twin_t *twin)
{
    const size_t blocks = twin->config.values > 0u ? twin->block_count : 1u;

    twin->words = calloc((size_t)twin->config.hosts * blocks * twin->node_count, sizeof(*twin->words));
    return twin->words != NULL;
}

static uint64_t *words_of(const SKYT_Twin_t *twin, uint32_t host, uint32_t block)
{
    return &twin->words[((size_t)(host - 1u) * twin->block_count + block) * twin->node_count];
}

void SKYT_Words_Hear(SKYT_Twin_t *twin, uint16_t host, const uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;

    if (twin->config.values == 0u || SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.is_request ||
        pkt.op != SKY_OP_HAS || (pkt.status != SKY_STATUS_OK && pkt.status != SKY_STATUS_NOT_FOUND) ||
        !SKY_Torus_Contains(&twin->torus, pkt.src))
    {
        return;
    }
    const uint32_t block = SKYT_Content_BlockOf(twin, pkt.tenant, pkt.key);

    if (block != SKYT_NONE && SKYT_Version_IsValue(twin, block))
    {
        words_of(twin, host, block)[SKYT_NodeOf(twin, pkt.src)] = twin->now_us;
    }
}

void SKYT_Words_Check(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version)
{
    const uint64_t acknowledged = twin->truth[active->block].acknowledged;
    uint32_t       count        = 0;

    if (version >= active->acknowledged || version >= acknowledged)
    {
        return;
    }
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        count += words_of(twin, active->host, active->block)[node] >= active->started_us ? 1u : 0u;
    }
    if (count <= twin->config.parity)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a host takes a value for absent, or for older, by the word of too few satellites");
    }
}
