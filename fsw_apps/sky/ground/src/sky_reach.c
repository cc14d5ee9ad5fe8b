/**
 * @file
 * Satellites that do not answer: see sky_reach.h.
 */
#include "sky_reach.h"

#include <string.h>

#include "sky_assert.h"

static uint32_t Count(const SKY_Reach_t *reach)
{
    SKY_ASSERT(reach->torus.planes > 0u);
    SKY_ASSERT(reach->torus.slots > 0u);
    return (uint32_t)reach->torus.planes * reach->torus.slots;
}

static SKY_ReachSatellite_t *Of(const SKY_Reach_t *reach, SKY_Addr_t satellite)
{
    SKY_ASSERT(SKY_Torus_Contains(&reach->torus, satellite));
    return &reach->satellites[(satellite.plane - 1u) * reach->torus.slots + satellite.slot - 1u];
}

void SKY_Reach_Init(SKY_Reach_t *reach, const SKY_ReachCfg_t *cfg, const SKY_Torus_t *torus, SKY_ReachSatellite_t *satellites,
                    SKY_Addr_t *lost)
{
    SKY_ASSERT(cfg->pause_first_us > 0u);
    SKY_ASSERT(cfg->pause_max_us > 0u);
    (void)memset(reach, 0, sizeof(*reach));
    reach->cfg        = *cfg;
    reach->torus      = *torus;
    reach->satellites = satellites;
    reach->lost       = lost;
    (void)memset(satellites, 0, Count(reach) * sizeof(*satellites));
}

/* ---- who is lost ----------------------------------------------------------------------------------------------------- */

static bool IsBefore(SKY_Addr_t one, SKY_Addr_t other)
{
    return one.plane != other.plane ? one.plane < other.plane : one.slot < other.slot;
}

/* End a suspicion: more is known. */
static void Clear(SKY_Reach_t *reach, SKY_ReachSatellite_t *record)
{
    SKY_ASSERT(!record->is_suspect || !record->is_lost);
    SKY_ASSERT(!record->is_suspect || reach->suspects > 0u);
    reach->suspects -= record->is_suspect ? 1u : 0u;
    record->is_suspect = false;
}

bool SKY_Reach_Suspect(SKY_Reach_t *reach, SKY_Addr_t satellite)
{
    SKY_ReachSatellite_t *record = Of(reach, satellite);

    if (record->is_lost || record->is_suspect)
    {
        return false;
    }
    record->is_suspect = true;
    ++reach->suspects;
    SKY_ASSERT(reach->suspects <= Count(reach));
    return true;
}

void SKY_Reach_Trust(SKY_Reach_t *reach)
{
    for (uint32_t i = 0; i < Count(reach); ++i)
    {
        Clear(reach, &reach->satellites[i]);
    }
    SKY_ASSERT(reach->suspects == 0u);
}

uint32_t SKY_Reach_Away(const SKY_Reach_t *reach, SKY_Addr_t *found)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < Count(reach); ++i)
    {
        const SKY_Addr_t satellite = {(uint16_t)(i / reach->torus.slots + 1u), (uint16_t)(i % reach->torus.slots + 1u)};

        if (reach->satellites[i].is_lost || reach->satellites[i].is_suspect)
        {
            found[count] = satellite;
            ++count;
        }
    }
    SKY_ASSERT(count == reach->lost_count + reach->suspects);
    return count;
}

/* Note that a satellite is lost. @return true if it was not lost before */
static bool Lose(SKY_Reach_t *reach, uint64_t now_us, SKY_Addr_t satellite)
{
    SKY_ReachSatellite_t *record = Of(reach, satellite);
    uint32_t              at     = reach->lost_count;

    record->asked_us = now_us;
    Clear(reach, record);
    if (record->is_lost)
    {
        return false;
    }
    SKY_ASSERT(reach->lost_count < Count(reach));
    for (; at > 0u && IsBefore(satellite, reach->lost[at - 1u]); --at)
    {
        reach->lost[at] = reach->lost[at - 1u];
    }
    SKY_ASSERT(at == 0u || IsBefore(reach->lost[at - 1u], satellite));
    reach->lost[at]  = satellite;
    record->is_lost  = true;
    record->doubt_us = reach->cfg.doubt_us;
    ++reach->lost_count;
    ++reach->losses;
    return true;
}

void SKY_Reach_Heard(SKY_Reach_t *reach, SKY_Addr_t satellite)
{
    SKY_ReachSatellite_t *record = Of(reach, satellite);
    uint32_t              kept   = 0;

    reach->pause_us = 0;
    Clear(reach, record);
    if (!record->is_lost)
    {
        return;
    }
    SKY_ASSERT(reach->lost_count > 0u);
    for (uint32_t i = 0; i < reach->lost_count; ++i)
    {
        reach->lost[kept] = reach->lost[i];
        kept += SKY_Addr_Equal(reach->lost[i], satellite) ? 0u : 1u;
    }
    SKY_ASSERT(kept + 1u == reach->lost_count);
    reach->lost_count = kept;
    record->is_lost   = false;
}

uint32_t SKY_Reach_AskLost(SKY_Reach_t *reach, uint64_t now_us, bool doubted, SKY_Addr_t *found)
{
    const uint64_t lost_us = reach->cfg.lost_us;
    uint32_t       count   = 0;

    for (uint32_t i = 0; i < reach->lost_count; ++i)
    {
        SKY_ReachSatellite_t *record  = Of(reach, reach->lost[i]);
        const uint64_t        wait_us = doubted && record->doubt_us < lost_us ? record->doubt_us : lost_us;

        SKY_ASSERT(record->is_lost);
        if (now_us - record->asked_us >= wait_us)
        {
            record->asked_us = now_us; /* other callers do not wait for this one's question */
            record->doubt_us = doubted ? 2u * wait_us : record->doubt_us;
            found[count]     = reach->lost[i];
            ++count;
        }
    }
    SKY_ASSERT(count <= reach->lost_count);
    return count;
}

/* ---- silence --------------------------------------------------------------------------------------------------------- */

SKY_ReachMay_t SKY_Reach_May(SKY_Reach_t *reach, uint64_t now_us)
{
    if (reach->pause_us == 0u)
    {
        return SKY_REACH_OPEN;
    }
    if (now_us < reach->again_us)
    {
        return SKY_REACH_SILENT;
    }
    reach->again_us = now_us + reach->pause_us;
    return SKY_REACH_LOOK;
}

static void FallSilent(SKY_Reach_t *reach, uint64_t now_us)
{
    const uint64_t most_us = reach->cfg.pause_max_us;

    if (reach->pause_us == 0u)
    {
        reach->pause_us = reach->cfg.pause_first_us;
    }
    else
    {
        reach->pause_us = 2u * reach->pause_us < most_us ? 2u * reach->pause_us : most_us;
    }
    reach->again_us = now_us + reach->pause_us;
    SKY_Reach_Trust(reach); /* silence of all tells nothing of one */
    SKY_ASSERT(reach->pause_us > 0u);
}

/* ---- a look ---------------------------------------------------------------------------------------------------------- */

uint32_t SKY_Reach_Around(SKY_Reach_t *reach, SKY_ReachAsk_t *asks, uint32_t about, const SKY_ReachAsk_t *others,
                          uint32_t other_count)
{
    const uint32_t most  = 2u * about + SKY_HOST_OTHERS;
    uint32_t       count = about;
    uint32_t       added = 0;

    for (uint32_t i = 0; i < about; ++i)
    {
        Of(reach, asks[i].satellite)->is_noted = false;
        Of(reach, asks[i].entry)->is_noted     = false;
    }
    for (uint32_t i = 0; i < other_count; ++i)
    {
        Of(reach, others[i].satellite)->is_noted = false;
    }
    for (uint32_t i = 0; i < about; ++i)
    {
        Of(reach, asks[i].satellite)->is_noted = true;
    }
    for (uint32_t i = 0; i < about; ++i)
    {
        const SKY_ReachAsk_t way_in = {asks[i].entry, asks[i].entry, false};

        if (!Of(reach, way_in.satellite)->is_noted)
        {
            Of(reach, way_in.satellite)->is_noted = true;
            asks[count]                           = way_in;
            ++count;
        }
    }
    for (uint32_t i = 0; i < other_count && added < SKY_HOST_OTHERS; ++i)
    {
        const SKY_ReachSatellite_t *record = Of(reach, others[i].satellite);

        if (!record->is_noted && !record->is_lost)
        {
            asks[count] = others[i];
            ++count;
            ++added;
        }
    }
    SKY_ASSERT(count <= most);
    SKY_ASSERT(added <= SKY_HOST_OTHERS);
    return count;
}

/* Note who answered. @return false if nobody did */
static bool Note(SKY_Reach_t *reach, const SKY_ReachAsk_t *asks, uint32_t count)
{
    bool any = false;

    for (uint32_t i = 0; i < count; ++i)
    {
        Of(reach, asks[i].satellite)->is_noted = false;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        if (asks[i].answered)
        {
            Of(reach, asks[i].satellite)->is_noted = true;
            any                                    = true;
        }
    }
    return any;
}

/* Count the ways in that did not answer as lost, or else the satellites. @return the number of those not lost before */
static uint32_t LoseSilent(SKY_Reach_t *reach, uint64_t now_us, const SKY_ReachAsk_t *asks, uint32_t about, bool entries,
                           bool *any)
{
    uint32_t fresh = 0;

    *any = false;
    for (uint32_t i = 0; i < about; ++i)
    {
        const SKY_Addr_t one = entries ? asks[i].entry : asks[i].satellite;

        if (!Of(reach, one)->is_noted)
        {
            fresh += Lose(reach, now_us, one) ? 1u : 0u;
            *any = true;
        }
    }
    SKY_ASSERT(fresh <= about);
    SKY_ASSERT(fresh == 0u || *any);
    return fresh;
}

SKY_ReachFound_t SKY_Reach_Found(SKY_Reach_t *reach, uint64_t now_us, uint32_t round, const SKY_ReachAsk_t *asks, uint32_t about,
                                 uint32_t count)
{
    bool     any;
    uint32_t fresh;

    SKY_ASSERT(round > 0u);
    SKY_ASSERT(about <= count);
    if (!Note(reach, asks, count))
    {
        FallSilent(reach, now_us);
        return SKY_REACH_NOBODY;
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        if (asks[i].answered)
        {
            SKY_Reach_Heard(reach, asks[i].satellite);
        }
    }
    fresh = LoseSilent(reach, now_us, asks, about, true, &any);
    if (!any) /* nothing is known of satellites behind a silent way in */
    {
        fresh = LoseSilent(reach, now_us, asks, about, false, &any);
    }
    SKY_ASSERT(reach->lost_count < Count(reach));
    return fresh > 0u && round < SKY_HOST_LOOKS ? SKY_REACH_AGAIN : SKY_REACH_FOUND;
}
