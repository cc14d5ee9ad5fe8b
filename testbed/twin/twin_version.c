/**
 * @file
 * Values: blocks that hosts put again and again with other content, each time under a newer version. At a satellite no older version takes the place
 * of a newer one; a purge of a version removes that and older ones, and no newer one, but what it has to spare (twin_purge.c); what is held under a
 * version is of that version. What hosts get is judged in twin_register.c.
 *
 * A version is the clock of the host that puts, or one above the newest that it knows, with the host's number below. Clocks of hosts differ,
 * so a later put may have an older version; it is then refused, and repeated above the one that is held. A bit of the version says that it is
 * a deletion: its block is short, so it may have other homes than the value that it deletes.
 *
 * Satellites may hold chunks of several versions while puts and handovers go on. So it is not followed where each chunk of a value is: a miss
 * is always explained (twin_outcome.c).
 */
#include "twin_priv.h"

#define HOST_BITS 16u
#define DELETION  0x8000u /* above the host's number */
#define SKEWS     3u
#define SKEW_US   UINT64_C(2000000) /* a host's clock is behind that of the one before by so much */

bool SKYT_Version_IsValue(const SKYT_Twin_t *twin, uint32_t block)
{
    return twin->config.values > 0 && block / twin->config.tenants % twin->config.values == 0;
}

uint64_t SKYT_Version_Next(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t above)
{
    if (!SKYT_Version_IsValue(twin, active->block))
    {
        return 0;
    }
    const uint64_t known    = SKYT_Register_Known(twin, active);
    const uint64_t skew_us  = SKEW_US * (active->host % SKEWS);
    const uint64_t clock_us = twin->now_us > skew_us ? twin->now_us - skew_us : 0u;
    const uint64_t most     = (above > known ? above : known) >> HOST_BITS;

    return (clock_us > most ? clock_us : most + 1u) << HOST_BITS | (active->is_deletion ? DELETION : 0u) | active->host;
}

bool SKYT_Version_IsDeletion(uint64_t version)
{
    return (version & DELETION) != 0;
}

uint64_t SKYT_VersionAt(const SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    const SKY_Store_t *store   = &twin->nodes[node].store;
    uint64_t           version = 0;
    uint32_t           content;
    uint8_t            key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    const uint32_t entry = SKY_Store_Find(store, SKYT_Content_Tenant(twin, block), key);

    if (entry != SKY_STORE_NONE)
    {
        SKY_Store_Instance(store, entry, &version, &content);
    }
    return version;
}

uint64_t SKYT_Version_Held(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    if (twin->config.values == 0 || !pkt->is_request || (pkt->op != SKY_OP_PUT && pkt->op != SKY_OP_PURGE))
    {
        return 0;
    }
    const uint32_t block = SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key);

    return block != SKYT_NONE && SKYT_Version_IsValue(twin, block) ? SKYT_VersionAt(twin, node, block) : 0u;
}

static void fail(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const char *text)
{
    SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, node, SKYT_NONE, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key),
                    pkt->chunk_id, text);
}

void SKYT_Version_Served(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before)
{
    const SKY_ServiceCounters_t *counters = &twin->nodes[node].service.core.counters;
    const uint64_t               held     = SKYT_Version_Held(twin, node, pkt);
    const bool                   is_put   = pkt->op == SKY_OP_PUT;

    if (pkt->block_version == 0 || (before->version == 0 && held == 0))
    {
        return;
    }
    if (is_put && counters->puts != before->puts && (pkt->block_version < before->version || held != pkt->block_version))
    {
        fail(twin, node, pkt, "a satellite took in an older version of a value than the one that it held");
    }
    if (is_put && held != 0 && held < before->version)
    {
        fail(twin, node, pkt, "an older version of a value took the place of a newer one");
    }
    if (!is_put && before->version > pkt->block_version && held != before->version)
    {
        fail(twin, node, pkt, "a purge removed a newer version of a value than it named");
    }
    if (!is_put && (pkt->flags & SKY_FLAG_GOSSIP) == 0 && before->spared == 0 && held != 0 && held <= pkt->block_version)
    {
        fail(twin, node, pkt, "a purge left a version of a value that is not newer than the one that it named");
    }
}
