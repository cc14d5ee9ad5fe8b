/**
 * @file
 * Values: blocks that hosts put again and again with other content, each time under a newer version. Of them must hold
 *
 *     at a satellite  no older version takes the place of a newer one; a purge of a version removes that and older ones, and no newer one,
 *                     but what it has to spare (twin_purge.c); what is held under a version is of that version
 *     at a host       what a get brings is of one version, and none older than the newest that the host knew when it began: by a put or a
 *                     get of its own. A look-up finds none older than the newest that was acknowledged to any host before, if all homes but
 *                     as many as hold parity had that or a newer one all the time, and answer. None says that it is absent, or older, without
 *                     the word of one more than hold parity (twin_words.c)
 *
 * A version is the clock of the host that puts, or one above the newest that it knows, with the host's number below. Clocks of hosts differ,
 * so a later put may have an older version; it is then refused, and repeated above the one that is held. A bit of the version says that it is
 * a deletion: its block is short, so it may have other homes than the value that it deletes.
 *
 * Satellites may hold chunks of several versions while puts and handovers go on. So it is not followed where each chunk of a value is: a miss
 * is always explained (twin_outcome.c).
 */
#include <stdlib.h>

#include "twin_priv.h"

#define HOST_BITS 16u
#define DELETION  0x8000u /* above the host's number */
#define SKEWS     3u
#define SKEW_US   UINT64_C(2000000) /* a host's clock is behind that of the one before by so much */

bool SKYT_Version_Init(SKYT_Twin_t *twin)
{
    twin->known = calloc((size_t)twin->config.hosts * twin->block_count, sizeof(*twin->known));
    return twin->known != NULL;
}

bool SKYT_Version_IsValue(const SKYT_Twin_t *twin, uint32_t block)
{
    return twin->config.values > 0 && block / twin->config.tenants % twin->config.values == 0;
}

static uint64_t *known_by(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->known[(size_t)(active->host - 1u) * twin->block_count + active->block];
}

uint64_t SKYT_Version_Known(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return SKYT_Version_IsValue(twin, active->block) ? *known_by(twin, active) : 0u;
}

uint64_t SKYT_Version_Next(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t above)
{
    if (!SKYT_Version_IsValue(twin, active->block))
    {
        return 0;
    }
    const uint64_t known    = *known_by(twin, active);
    const uint64_t skew_us  = SKEW_US * (active->host % SKEWS);
    const uint64_t clock_us = twin->now_us > skew_us ? twin->now_us - skew_us : 0u;
    const uint64_t most     = (above > known ? above : known) >> HOST_BITS;

    return (clock_us > most ? clock_us : most + 1u) << HOST_BITS | (active->is_deletion ? DELETION : 0u) | active->host;
}

bool SKYT_Version_IsDeletion(uint64_t version)
{
    return (version & DELETION) != 0;
}

bool SKYT_Version_Take(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_BlockFacts_t *facts = &active->core.facts;

    SKYT_Version_Found(twin, active, facts->version);
    if (facts->version < *known_by(twin, active))
    {
        return false;
    }
    if (facts->stripe.block_len != SKYT_Content_Stripe(twin, active->block, facts->version).block_len)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "satellites tell another length of a value than its version has, so they mistake whether it is deleted");
    }
    active->version = facts->version;
    active->epoch   = facts->epoch;
    return true;
}

/* Count the homes that do not say the newest acknowledged version: they do not hold it, nor a newer one, or are not there. @p active  operation of
 * a host, to which some may be lost, and have been silent while it looked */
static uint32_t count_away(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint64_t        version = twin->truth[active->block].acknowledged;
    const SKY_Stripe_t    stripe  = SKYT_Content_Stripe(twin, active->block, version);
    const SKY_StripeRow_t first   = SKY_Stripe_Row(&stripe, 0);
    const uint32_t        row     = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    uint32_t              away    = active->silences;

    for (uint32_t chunk = 0; chunk < first.data + first.parity; ++chunk)
    {
        const SKY_Addr_t home = SKYT_Content_Home(twin, row, active->block, version, chunk);
        const uint32_t   node = SKYT_NodeOf(twin, home);

        away +=
            SKYT_VersionAt(twin, node, active->block) < version || SKY_Ground_IsLost(&twin->grounds[active->host - 1u].core, home)
                ? 1u
                : 0u;
    }
    return away;
}

void SKYT_Version_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const bool is_value = SKYT_Version_IsValue(twin, active->block);

    active->known        = SKYT_Version_Known(twin, active);
    active->acknowledged = is_value ? twin->truth[active->block].acknowledged : 0u;
    active->promised     = is_value && count_away(twin, active) <= twin->config.parity ? active->acknowledged : 0u;
}

void SKYT_Version_Found(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version)
{
    SKYT_Words_Check(twin, active, version);
    if (version < active->promised && version < twin->truth[active->block].acknowledged &&
        count_away(twin, active) <= twin->config.parity)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a look-up found an older version of a value than was acknowledged before, or none");
    }
}

void SKYT_Version_Ended(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    if (active->version == 0)
    {
        return;
    }
    uint64_t *known = known_by(twin, active);

    if (active->kind == SKYT_OP_PUT && active->version > twin->truth[active->block].acknowledged)
    {
        twin->truth[active->block].acknowledged = active->version;
    }

    if (active->kind == SKYT_OP_GET && active->version < active->known) /* a put of the host may have ended since */
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a get brought an older version of a value than the host knows");
    }
    *known = active->version > *known ? active->version : *known;
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
