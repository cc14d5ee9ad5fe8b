/**
 * @file
 * Words: what satellites have said of values. A host takes a value for absent, or for older than it is, only if each home of the first row has said
 * what it knows, or is lost to the host; and for absent only if one of them is not.
 */
#include "twin_priv.h"

bool SKYT_Words_Init(SKYT_Twin_t *twin)
{
    const size_t blocks = twin->config.values > 0u ? twin->block_count : 1u;

    twin->words = SKYT_Take(twin, (size_t)twin->config.hosts * blocks * twin->node_count, sizeof(*twin->words));
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

/* Return true if a host calls a satellite lost, or did so lately. */
static bool was_lost(const SKYT_Twin_t *twin, const SKYT_Active_t *active, SKY_Addr_t satellite)
{
    const SKY_Ground_t *ground  = &twin->grounds[active->host - 1u].core;
    const uint64_t      lost_us = ground->reach.satellites[SKYT_NodeOf(twin, satellite)].asked_us;

    return SKY_Ground_IsLost(ground, satellite) || (lost_us != 0u && lost_us + SKYT_SETTLING_US >= active->started_us);
}

void SKYT_Words_Check(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version)
{
    const uint32_t row        = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    bool           are_enough = true;
    bool           has_one    = version != 0u || twin->config.parity == 0u;

    if (version >= active->acknowledged || version >= twin->truth[active->block].acknowledged ||
        row != SKY_Schedule_RowAt(&twin->schedule, active->started_us))
    {
        return;
    }
    for (uint32_t i = 0; i <= twin->config.parity; ++i)
    {
        const uint32_t   chunk     = SKYT_Content_Asked(twin, active->block, i);
        const SKY_Addr_t home      = SKYT_Content_Home(twin, row, active->block, 0, chunk);
        const uint64_t   spoken_us = words_of(twin, active->host, active->block)[SKYT_NodeOf(twin, home)];
        const bool       has_said  = spoken_us >= active->started_us;

        has_one    = has_one || has_said;
        are_enough = are_enough && (has_said || was_lost(twin, active, home));
    }
    if (!are_enough || !has_one)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a host takes a value for absent, or for older, by the word of too few satellites");
    }
}
