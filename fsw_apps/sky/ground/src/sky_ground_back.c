/**
 * @file
 * BACK: are lost satellites back?
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Return true if a satellite is one of the servers of now, whoever stands in for it. */
static bool IsServer(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const uint32_t row    = SKY_GroundWays_Row(ground);
    uint32_t       server = 0;

    SKY_ASSERT(row >= 1u);
    while (server < ground->limits.servers && !SKY_Addr_Equal(SKY_Schedule_Server(ground->sky.schedule, row, server), satellite))
    {
        ++server;
    }
    SKY_ASSERT(server <= ground->limits.servers);
    return server < ground->limits.servers;
}

/* Return true if a satellite is one of the first that are in sight. */
static bool IsSeen(const SKY_Ground_t *ground, SKY_Addr_t satellite, uint32_t count)
{
    uint32_t at = 0;

    SKY_ASSERT(count <= ground->sky.seen_count);
    while (at < count && !SKY_Addr_Equal(ground->sky.seen[at], satellite))
    {
        ++at;
    }
    SKY_ASSERT(at <= count);
    return at < count;
}

/* Return true if packets to a satellite may enter the sky there, were it not lost. */
static bool IsEntry(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const uint32_t seen = ground->sky.seen_count;

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(ground->sky.uplink <= (uint32_t)SKY_UPLINK_ABOARD);
    switch (ground->sky.uplink)
    {
        case SKY_UPLINK_CENTRE:
        case SKY_UPLINK_ABOARD:
            return SKY_Addr_Equal(satellite, SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground)));
        case SKY_UPLINK_SEEN:
            return IsSeen(ground, satellite, seen);
        case SKY_UPLINK_FIRST:
            return IsSeen(ground, satellite, seen < 1u ? seen : 1u);
        case SKY_UPLINK_SERVERS:
            return IsServer(ground, satellite);
        default:
            return false; /* all are reached directly in any case */
    }
}

bool SKY_GroundBack_Begin(SKY_Ground_t *ground, bool doubted)
{
    SKY_GroundInquiry_t *inquiry  = &ground->inquiry;
    const uint32_t       count    = SKY_Reach_AskLost(&ground->reach, ground->now_us, doubted, inquiry->addrs);
    const uint64_t       hurry_us = SKY_Host_HurryUs(&ground->host, inquiry->addrs, count);

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_BACK);
    SKY_ASSERT(hurry_us > 0u || count == 0u);
    inquiry->count = 0;
    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_ASSERT(SKY_Ground_IsLost(ground, inquiry->addrs[i]));
        if (IsEntry(ground, inquiry->addrs[i]))
        {
            SKY_GroundInquiryAsk_AddOver(ground, inquiry->addrs[i],
                                         inquiry->addrs[i]); /* directly, for it may be the only one in sight */
        }
        else
        {
            (void)SKY_GroundInquiryAsk_Add(ground, inquiry->addrs[i]);
        }
    }
    SKY_ASSERT(inquiry->count <= count);
    if (inquiry->count == 0u)
    {
        return false;
    }
    SKY_GroundInquiryAsk_All(ground, SKY_OP_PING, hurry_us > SKY_HOST_PROBE_US ? hurry_us : SKY_HOST_PROBE_US);
    return true;
}

void SKY_GroundBack_End(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BACK);
    SKY_ASSERT(ground->inquiry.count >= 1u);
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        if (SKY_GroundInquiryAsk_IsOk(&ground->inquiry.questions[i]))
        {
            SKY_Reach_Heard(&ground->reach, ground->inquiry.asks[i].satellite);
        }
    }
}
