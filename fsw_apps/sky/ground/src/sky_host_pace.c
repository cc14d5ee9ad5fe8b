/**
 * @file
 * Pace of PUTs: how many chunks a host has on their way to a satellite, so that they wait for no longer than a bound in queues on that way. What
 * others send to the satellite would wait behind them.
 *
 * A query follows each burst of chunks, and comes to the satellite behind them, so its round trip tells of the queue: what is above the least round trip is
 * time in queues (as in TCP Vegas). If it is above half of the bound, and two chunks, for all of some queries, the window becomes what is on its way without a queue; else it
 * grows, by itself until the first queue was seen, then by an eighth. Jitter is no queue: it is seen by how far those round trips lie apart. A burst
 * is as much as passes in the other half: so answers come often, and each lets as much go as has passed.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define BURSTS      8u /* of a window, at most: each has a query */
#define BURST_FIRST 3u /* chunks of a burst before a round trip was measured */
#define GROWTH      8u /* part of the window by which it grows once a queue was seen */
#define AGES        6u /* round trips that are looked at together */
#define WINDOW_MIN  2u
#define LEAST_US    10000000u /* after so long the least round trip is forgotten: the sky turns */

static uint32_t LessOf(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static uint32_t MoreOf(uint64_t a, uint64_t b)
{
    return (uint32_t)(a > b ? a : b);
}

/* Count the chunks of PUTs on their way to a satellite. */
static uint32_t OnWay(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    uint32_t on_way = 0;

    SKY_ASSERT(peer->active != SKY_HOST_NONE);
    for (uint32_t place = 0; place < SKY_HOST_LANES; ++place)
    {
        if ((peer->lanes_busy & 1u << place) != 0u)
        {
            on_way += SKY_HostExchange_Pushed(&host->blocks.lanes[peer->lanes[place]]);
        }
    }
    SKY_ASSERT(on_way <= peer->peer.outstanding);
    return on_way;
}

uint32_t SKY_HostPace_Room(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    const SKY_HostPace_t *pace   = &peer->pace;
    const uint32_t        window = pace->window != 0u ? pace->window : peer->peer.cfg.window_initial;

    if (host->queue_us == 0u)
    {
        return SKY_LIMIT_CHUNK_SET;
    }
    const uint32_t on_way = OnWay(host, peer);
    const uint64_t passes = pace->age_us == 0u ? BURST_FIRST : (uint64_t)window * host->queue_us / 2u / pace->age_us;
    const uint32_t burst  = MoreOf(passes, window / BURSTS) + 1u;

    SKY_ASSERT(window >= 1u);
    SKY_ASSERT(burst >= 1u);
    return on_way < window ? LessOf(window - on_way, burst) : 0u;
}

void SKY_HostPace_Asked(const SKY_Host_t *host, SKY_HostPeer_t *peer, uint64_t age_us)
{
    SKY_HostPace_t *pace = &peer->pace;

    if (host->queue_us == 0u || age_us == 0u)
    {
        return;
    }
    pace->age_us = age_us;
    if (age_us < pace->least_us || host->now_us >= pace->forget_us)
    {
        pace->least_us  = age_us;
        pace->forget_us = host->now_us + LEAST_US;
    }
    if (host->now_us < pace->round_us)
    {
        return; /* it was sent before the window changed */
    }
    pace->shortest_us = pace->ages == 0u || age_us < pace->shortest_us ? age_us : pace->shortest_us;
    pace->longest_us  = pace->ages == 0u || age_us > pace->longest_us ? age_us : pace->longest_us;
    ++pace->ages;
    if (pace->ages < AGES)
    {
        return;
    }
    const uint32_t on_way = OnWay(host, peer);
    const uint32_t window = pace->window != 0u ? pace->window : peer->peer.cfg.window_initial;
    const uint64_t least_us =
        LessOf(pace->least_us, peer->peer.least_us - 1u); /* gets measure it, too; 0 becomes the largest number */
    const uint64_t chunk_us = pace->shortest_us / MoreOf(LessOf(window, on_way), 1u); /* that a chunk takes, about */
    const uint64_t bound_us = host->queue_us / 2u > 2u * chunk_us ? host->queue_us / 2u : 2u * chunk_us;

    SKY_ASSERT(window >= 1u);
    SKY_ASSERT(pace->shortest_us <= pace->longest_us);
    pace->ages      = 0;
    pace->round_us  = host->now_us + pace->shortest_us;
    pace->is_filled = pace->is_filled || pace->longest_us > least_us + host->queue_us;
    if (pace->shortest_us > least_us + bound_us + (pace->longest_us - pace->shortest_us) / 2u)
    {
        pace->window = MoreOf(LessOf(window, on_way) * least_us / pace->shortest_us, WINDOW_MIN);
    }
    else if (2u * on_way >= window) /* else the window is not what bounds it */
    {
        pace->window = LessOf((uint64_t)window + (pace->is_filled ? window / GROWTH + 1u : window), peer->peer.cfg.window_max);
    }
}
