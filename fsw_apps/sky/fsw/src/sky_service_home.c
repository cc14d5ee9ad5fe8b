/**
 * @file
 * Home of servers by the schedule, or without one by the window: a row says which satellite a server is. Which server a chunk belongs to
 * says sky_spread.h.
 */
#include "sky_service_home.h"

#include "sky_assert.h"
#include "sky_spread.h"

const SKY_Schedule_t *SKY_Home_Schedule(const SKY_ServiceCore_t *core)
{
    SKY_ASSERT(core->window == NULL || core->window->count == 1);
    SKY_ASSERT(core->schedule == NULL || core->schedule->count >= 1);
    return core->schedule != NULL ? core->schedule : core->window;
}

bool SKY_Home_Is(const SKY_ServiceCore_t *core, uint32_t row, uint32_t server, SKY_Addr_t satellite)
{
    const SKY_Schedule_t *schedule = SKY_Home_Schedule(core);
    SKY_ASSERT(schedule != NULL);
    return SKY_Addr_Equal(SKY_Schedule_Server(schedule, row, server), satellite);
}

uint32_t SKY_Home_ServerOf(const SKY_ServiceCore_t *core, uint32_t row, SKY_Addr_t satellite)
{
    const uint32_t servers = SKY_Home_Schedule(core)->placement.servers;
    uint32_t       server  = 0;
    SKY_ASSERT(servers >= 1);
    SKY_ASSERT(servers <= SKY_PLACEMENT_SERVERS_MAX);

    while (server < servers && !SKY_Home_Is(core, row, server, satellite))
    {
        ++server;
    }
    return server;
}

void SKY_Home_Share(const SKY_ServiceCore_t *core, const SKY_Packet_t *pkt, SKY_Addr_t target, uint32_t *stride, uint32_t *server)
{
    const SKY_Schedule_t *schedule = core->schedule;
    SKY_BlockInfo_t       info;

    *stride = 1;
    *server = 0;
    if (schedule != NULL && pkt->epoch != SKY_SCHEDULE_NONE && pkt->epoch <= schedule->count)
    {
        const uint32_t servers = schedule->placement.servers;
        const uint32_t found   = SKY_Home_ServerOf(core, pkt->epoch, target);

        if (found < servers)
        {
            *stride = servers;
            *server = found;
        }
        else if (SKY_Store_Block(core->store, SKY_Store_Find(core->store, pkt->tenant, pkt->key), &info) == SKY_STATUS_OK)
        {
            *stride = servers;
            *server = SKY_Spread_Server(pkt->key, info.stripe.chunk_total, servers, pkt->chunk_id);
        }
    }
    SKY_ASSERT(*server < *stride);
    SKY_ASSERT(schedule != NULL || *stride == 1);
}

bool SKY_Home_Waits(const SKY_ServiceCore_t *core, uint32_t epoch, uint32_t server)
{
    const SKY_Schedule_t *schedule = core->schedule;
    SKY_ASSERT(schedule == NULL || core->row <= schedule->count);

    return epoch > core->row && (schedule == NULL || epoch > schedule->count || SKY_Home_Is(core, epoch, server, core->cfg.self));
}
