/**
 * @file
 * Where an operation of a host goes for the shares of its block.
 */
#include <string.h>

#include "twin_priv.h"

#define MIX UINT64_C(0x100000001b3)

SKY_Places_t SKYT_OpPlaces_Rule(const SKYT_Twin_t *twin)
{
    const SKY_Places_t places = {&twin->schedule, (uint64_t)twin->config.handover_ms * US_PER_MS};

    return places;
}

static SKYT_Ground_t *ground_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->grounds[active->host - 1u];
}

/* Let these be the places of a share. @param home  lost satellite for which others stand in; plane 0: none */
static void set_places(const SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                       uint32_t count)
{
    const uint32_t   servers = twin->config.servers;
    SKY_HostBlock_t *block   = &active->block_state;

    for (; block->rounds + 1u < count; ++block->rounds) /* round 0 is no fallback */
    {
        (void)memset(&active->places[(size_t)(block->rounds + 1u) * servers], 0, servers * sizeof(*active->places));
    }
    for (uint32_t round = 0; round <= block->rounds; ++round)
    {
        const SKY_HostPlace_t nowhere = {0};

        SKY_HostPlace_t *place = &active->places[(size_t)round * servers + share];

        *place            = round < count ? SKYT_Reach_Place(ground_of(twin, active), found[round]) : nowhere;
        place->home_plane = home.plane;
        place->home_slot  = home.slot;
    }
}

/* Find the places of all shares, around satellites that this host calls lost, and at those that are late once they are searched. */
static void find_shares(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    SKYT_Ground_t          *ground      = ground_of(twin, active);
    const uint64_t          late_us     = (uint64_t)twin->config.late_put_ms * US_PER_MS;
    const SKY_PlacesKnown_t known       = SKYT_Reach_Known(ground, active->attempts.is_searched);
    const SKY_Places_t      places      = SKYT_OpPlaces_Rule(twin);
    const uint64_t          put_late_us = late_us < twin->now_us ? late_us : 0u;

    if (active->kind == SKYT_OP_PUT)
    {
        SKY_Places_FindPut(&places, twin->now_us - put_late_us, active->epoch, &known, &ground->shares);
    }
    else
    {
        SKY_Places_Find(&places, twin->now_us, active->epoch, &known, &ground->shares);
    }
}

bool SKYT_OpPlaces_Take(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_Shares_t    *shares = &ground_of(twin, active)->shares;
    const SKY_HostBlock_t *block  = &active->block_state;

    find_shares(twin, active);
    active->astray = 0;
    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        const uint32_t server = SKY_Spread_Server(block->key, block->stripe.chunk_total, twin->config.servers, share);
        SKY_Addr_t    *found  = &shares->found[(size_t)server * SKY_PLACES_MAX];
        uint32_t       count  = shares->counts[server];

        active->astray |= shares->homes[server].plane != 0u ? SKYT_ShareRecord_Bit(twin, share) : 0u;
        if (active->kind != SKYT_OP_PUT && !active->attempts.is_searched)
        {
            count = SKYT_Break_Places(twin, found, count);
        }
        SKYT_ShareRecord_Places(twin, active, share, found, count);
        set_places(twin, active, share, shares->homes[server], found, count);
        if (active->places[share].plane == 0u)
        {
            return false;
        }
    }
    return true;
}

uint32_t SKYT_OpPlaces_Number(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const size_t count  = (size_t)(active->block_state.rounds + 1u) * twin->config.servers;
    uint64_t     number = count;

    for (size_t i = 0; i < count; ++i)
    {
        const SKY_HostPlace_t *place = &active->places[i];

        number = (number ^ ((uint64_t)place->plane << 48 | (uint64_t)place->slot << 32 | place->endpoint)) * MIX;
    }
    return (uint32_t)(number >> 32) | 1u;
}
