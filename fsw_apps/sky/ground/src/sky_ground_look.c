/**
 * @file
 * LOOK: which satellites do not answer at all? It goes on in rounds until that is plain (sky_reach.h).
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Most satellites that a look is about: the servers, and the one on which an operation failed. */
static uint32_t AboutMost(const SKY_Ground_t *ground)
{
    return ground->limits.servers + 1u;
}

/* Find others that may be asked, the best first. @return number of them */
static uint32_t FindOthers(SKY_Ground_t *ground)
{
    const uint32_t  satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;
    const uint32_t  near       = 2u * AboutMost(ground) + SKY_HOST_OTHERS + ground->reach.lost_count;
    const uint32_t  uplink     = ground->sky.uplink;
    const bool      is_seen    = uplink == (uint32_t)SKY_UPLINK_SEEN || uplink == (uint32_t)SKY_UPLINK_FIRST;
    const bool      is_aboard  = uplink == (uint32_t)SKY_UPLINK_ABOARD;
    uint32_t        count      = near < satellites ? near : satellites;
    SKY_ReachAsk_t *others     = ground->inquiry.others;

    SKY_ASSERT(near > ground->reach.lost_count);
    const SKY_Addr_t centre = SKY_Schedule_Centre(ground->sky.schedule, SKY_GroundWays_Row(ground));

    if (is_seen)
    {
        count = ground->sky.seen_count < count ? ground->sky.seen_count : count;
    }
    else
    {
        SKY_StandIns_Nearest(&ground->limits.torus, centre, count, ground->cells);
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_Addr_t near_one = {(uint16_t)ground->cells[i].plane, (uint16_t)ground->cells[i].slot};

        others[i].satellite = is_seen ? ground->sky.seen[i] : near_one;
        others[i].entry     = is_aboard ? centre : others[i].satellite;
        others[i].answered  = false;
        SKY_ASSERT(SKY_Torus_Contains(&ground->limits.torus, others[i].satellite));
    }
    return count;
}

bool SKY_GroundLook_Begin(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_LOOK);
    SKY_ASSERT(inquiry->round < SKY_HOST_LOOKS);
    inquiry->count = 0;
    SKY_GroundWays_Servers(ground, SKY_GroundWays_Row(ground));
    for (uint32_t server = 0; server < ground->limits.servers; ++server)
    {
        if (!SKY_GroundInquiryAsk_Add(ground, ground->placed[server]))
        {
            return false;
        }
    }
    if (inquiry->failed.plane != 0u && !SKY_Ground_IsLost(ground, inquiry->failed))
    {
        (void)SKY_GroundInquiryAsk_Add(ground, inquiry->failed);
    }
    ++inquiry->round;
    inquiry->about = inquiry->count;
    SKY_ASSERT(inquiry->about <= AboutMost(ground));
    inquiry->count = SKY_Reach_Around(&ground->reach, inquiry->asks, inquiry->about, inquiry->others, FindOthers(ground));
    SKY_ASSERT(inquiry->count >= inquiry->about);
    SKY_GroundInquiryAsk_All(ground, SKY_OP_PING, 0);
    return true;
}

bool SKY_GroundLook_End(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t     *inquiry = &ground->inquiry;
    const SKY_GroundWatch_t *watch   = &ground->shell.watch;
    const uint32_t           losses  = ground->reach.losses;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(inquiry->about >= 1u);
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->asks[i].answered = SKY_GroundInquiryAsk_IsOk(&inquiry->questions[i]);
    }
    const SKY_ReachFound_t found =
        SKY_Reach_Found(&ground->reach, ground->now_us, inquiry->round, inquiry->asks, inquiry->about, inquiry->count);

    SKY_ASSERT(ground->reach.losses >= losses);
    if (found == SKY_REACH_FOUND)
    {
        SKY_Reach_Trust(&ground->reach);
    }
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        if (SKY_Ground_IsLost(ground, inquiry->asks[i].satellite))
        {
            SKY_Host_GiveUp(&ground->host, ground->now_us, inquiry->asks[i].satellite, inquiry->began_us);
        }
    }
    if (watch->Lost != NULL && (found == SKY_REACH_NOBODY || ground->reach.losses != losses))
    {
        watch->Lost(watch->context);
    }
    return found != SKY_REACH_AGAIN || !SKY_GroundLook_Begin(ground);
}
