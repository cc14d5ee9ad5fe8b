/**
 * @file
 * BLIND: do servers follow a schedule, though this host follows none?
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

bool SKY_GroundBlind_Begin(SKY_Ground_t *ground)
{
    bool is_in_sight = true;

    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BLIND);
    SKY_ASSERT(ground->sky.is_unscheduled);
    ground->is_blind      = false;
    ground->inquiry.count = 0;
    SKY_GroundWays_Servers(ground, SKY_GroundWays_Row(ground));
    for (uint32_t server = 0; is_in_sight && server < ground->limits.servers; ++server)
    {
        is_in_sight = SKY_GroundInquiryAsk_Add(ground, ground->placed[server]);
    }
    if (is_in_sight)
    {
        SKY_GroundInquiryAsk_All(ground, SKY_OP_STATS, SKY_Host_HurryUs(&ground->host, ground->placed, ground->limits.servers));
    }
    return is_in_sight;
}

void SKY_GroundBlind_End(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_BLIND);
    SKY_ASSERT(ground->inquiry.count >= 1u);
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        const uint8_t *stats = SKY_GroundInquiryAsk_Stats(&ground->inquiry.questions[i]);

        ground->is_blind = ground->is_blind || (stats != NULL && SKY_GroundInquiryAsk_Counter(stats, SKY_STATS_KVC_ROWS) > 0u);
    }
}
