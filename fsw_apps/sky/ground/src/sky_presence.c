/**
 * @file
 * Presence of blocks, and choice of the satellites that are asked for it: see sky_presence.h.
 */
#include "sky_presence.h"

#include <string.h>

#include "sky_assert.h"

static SKY_PresenceSatellite_t *Of(const SKY_Presence_t *presence, SKY_Addr_t satellite)
{
    SKY_ASSERT(SKY_Torus_Contains(&presence->torus, satellite));
    return &presence->satellites[(satellite.plane - 1u) * presence->torus.slots + satellite.slot - 1u];
}

void SKY_Presence_Init(SKY_Presence_t *presence, const SKY_Torus_t *torus, SKY_PresenceSatellite_t *satellites)
{
    SKY_ASSERT(torus->planes > 0u);
    SKY_ASSERT(torus->slots > 0u);
    presence->torus      = *torus;
    presence->satellites = satellites;
    presence->is_heard   = true;
    (void)memset(satellites, 0, (size_t)torus->planes * torus->slots * sizeof(*satellites));
}

bool SKY_Presence_IsAwake(const SKY_Presence_t *presence, uint64_t now_us, SKY_Addr_t satellite)
{
    return Of(presence, satellite)->until_us <= now_us;
}

bool SKY_Presence_Asks(const SKY_Presence_t *presence, uint64_t now_us, uint32_t chunk_total, uint32_t share, bool everywhere,
                       const SKY_Addr_t *places, uint32_t count)
{
    uint32_t awake = 0;

    SKY_ASSERT(chunk_total > 0u);
    SKY_ASSERT(places != NULL || count == 0u);
    for (uint32_t i = 0; i < count; ++i)
    {
        awake += SKY_Presence_IsAwake(presence, now_us, places[i]) ? 1u : 0u;
    }
    SKY_ASSERT(awake <= count);
    return share < (everywhere ? chunk_total : 1u) && awake == count;
}

void SKY_Presence_Told(SKY_Presence_t *presence, uint64_t now_us, uint64_t waited_us, const SKY_Addr_t *first,
                       uint32_t first_count, const SKY_Addr_t *silent, uint32_t silent_count)
{
    const bool was_heard = presence->is_heard;

    SKY_ASSERT(first_count > 0u); /* without first servers nobody was asked */
    SKY_ASSERT(silent != NULL || silent_count == 0u);
    presence->is_heard = false;
    for (uint32_t i = 0; i < first_count; ++i)
    {
        Of(presence, first[i])->is_silent = false;
    }
    for (uint32_t i = 0; i < silent_count; ++i)
    {
        Of(presence, silent[i])->is_silent = true;
    }
    for (uint32_t i = 0; i < first_count; ++i)
    {
        presence->is_heard = presence->is_heard || !Of(presence, first[i])->is_silent;
    }
    for (uint32_t i = 0; i < silent_count && (presence->is_heard || !was_heard); ++i)
    {
        Of(presence, silent[i])->until_us = now_us + SKY_PRESENCE_QUIET_TIMES * waited_us;
    }
    SKY_ASSERT(presence->is_heard || silent_count > 0u);
    SKY_ASSERT(silent_count == 0u || Of(presence, silent[0])->is_silent);
}
