/**
 * @file
 * The loop of a call: whatever comes, and whatever is late, is told to the lane it belongs to, and every lane with room in its
 * window sends.
 */
#define _GNU_SOURCE
#include "skyc_transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sky_crc.h"

#define BACKLOG_MAX_US 100000u
#define REDRAWS_MAX    8u /* of the host number in one call: so many collisions in a row are no accident */

uint64_t SKYC_NowUs(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* What has come but was not read yet is not late: timers wait until the socket is empty, though not for ever. */
static bool timers_may_act(const SKYC_Engine_t *engine)
{
    return engine->empty_us == engine->now_us || engine->now_us - engine->empty_us >= BACKLOG_MAX_US;
}

/* Begin what can begin, let timers act. @return when something is due at the latest */
static uint64_t engine_on_time(SKYC_Engine_t *engine)
{
    const bool may_act = timers_may_act(engine);
    uint64_t   due_us  = UINT64_MAX;

    for (uint32_t at = 0; at < engine->active_count; ++at)
    {
        const SKYC_Peer_t *peer = &engine->peers[engine->active[at]];

        if (SKYC_Lanes_Begin(engine, at))
        {
            due_us = engine->now_us; /* it has something to send */
        }
        for (uint32_t i = at * SKYC_LANES; may_act && i < (at + 1) * SKYC_LANES; ++i)
        {
            if ((peer->lanes_busy & 1u << i % SKYC_LANES) == 0) /* not by the lane: those that are idle stay out of the cache */
            {
                continue;
            }
            const uint64_t next_us = SKYC_Lane_OnTime(engine, i);

            due_us = next_us < due_us ? next_us : due_us;
            if (SKYC_Lane_Reap(engine, i))
            {
                due_us = engine->now_us; /* another can begin */
            }
        }
    }
    return due_us;
}

static void send_packet(SKYC_Engine_t *engine, const SKYC_Peer_t *peer, SKY_Packet_t *pkt)
{
    pkt->seq_count    = engine->seq_count;
    engine->seq_count = (uint16_t)((engine->seq_count + 1u) & 0x3FFFu);
    SKYC_Socket_Add(engine->sock, peer->endpoint, pkt);
}

/* @param room  chunks that may still be on their way. @return how many of them were asked for */
static uint32_t lane_ask(SKYC_Engine_t *engine, const SKYC_Peer_t *peer, SKYC_Lane_t *lane, uint32_t room)
{
    uint32_t     asked = 0;
    SKY_Packet_t pkt;

    while (SKY_Fetch_Next(&lane->u.fetch, engine->now_us, room - asked, &pkt, SKYC_Socket_Payload(engine->sock)))
    {
        asked += pkt.credit;
        send_packet(engine, peer, &pkt);
    }
    lane->asked_us = lane->asked_us == 0 && asked > 0 ? engine->now_us : lane->asked_us;
    return asked;
}

static void send_chunk(SKYC_Engine_t *engine, const SKYC_Peer_t *peer, const SKYC_Lane_t *lane, SKY_Packet_t *pkt)
{
    const SKYC_Block_t *block = engine->work[engine->jobs[lane->job].block].block;
    const uint8_t      *chunk = block->data + (size_t)pkt->chunk_id * block->chunk_len;
    uint32_t            at    = 0;

    pkt->chunk_crc = SKY_Crc32c(0, chunk, pkt->chunk_len);
    do
    {
        at = SKY_Packet_CutPart(pkt, chunk, at, engine->config.packet_bytes);
        send_packet(engine, peer, pkt);
    } while (at < pkt->chunk_len);
}

/* One burst and its query at a time, so that all satellites get their turn and answers are read in between.
 * @param room  chunks that may still be on their way. @return how many of them were sent; @p more: others could be at once */
static uint32_t lane_offer(SKYC_Engine_t *engine, const SKYC_Peer_t *peer, SKYC_Lane_t *lane, uint32_t room, bool *more)
{
    uint32_t         sent   = 0;
    SKY_PushAction_t action = SKY_PUSH_CHUNK;
    SKY_Packet_t     pkt;

    while (action == SKY_PUSH_CHUNK)
    {
        action = SKY_Push_Next(&lane->u.push, engine->now_us, room - sent, &pkt, SKYC_Socket_Payload(engine->sock));
        if (action == SKY_PUSH_CHUNK)
        {
            send_chunk(engine, peer, lane, &pkt);
            ++sent;
        }
        else if (action == SKY_PUSH_QUERY)
        {
            send_packet(engine, peer, &pkt);
        }
    }
    *more = *more || action == SKY_PUSH_QUERY;
    return sent;
}

/* The lane to which a request id belongs. @return SKYC_LANES_MAX if there is none any more */
static uint32_t lane_of(const SKYC_Engine_t *engine, uint64_t request_id)
{
    const uint32_t index = (uint32_t)(request_id >> 16) & (SKYC_LANES_MAX - 1u);

    if (index >= engine->active_count * SKYC_LANES || engine->lanes[index].request_id == 0 ||
        engine->lanes[index].request_id != (request_id & ~(uint64_t)0xFFFFu))
    {
        return SKYC_LANES_MAX;
    }
    return index;
}

/* What the system says of a packet that no path here takes is said of its block, as if a satellite had refused it. */
static void engine_refuse_too_large(SKYC_Engine_t *engine)
{
    uint64_t request_id = 0;

    while (SKYC_Socket_NextTooLarge(engine->sock, &request_id))
    {
        const uint32_t index = lane_of(engine, request_id);

        if (index == SKYC_LANES_MAX)
        {
            continue; /* an earlier packet has ended it */
        }
        if (engine->is_put)
        {
            engine->lanes[index].u.push.last_status = SKY_STATUS_TOO_LARGE;
            SKY_Push_Stop(&engine->lanes[index].u.push, SKY_SHARE_REFUSED);
        }
        else
        {
            engine->lanes[index].u.fetch.last_status = SKY_STATUS_TOO_LARGE;
            SKY_Fetch_Stop(&engine->lanes[index].u.fetch, SKY_SHARE_REFUSED);
        }
        (void)SKYC_Lane_Reap(engine, index);
    }
}

/* What @p peer may have on its way of @p all, which it shares with others: twice an even share. One that is silent must not keep the
 * others waiting, one that is fast may have more. */
static uint32_t fair_room(const SKYC_Peer_t *peer, uint32_t all, uint32_t peers)
{
    const uint32_t fair = 2 * all / (peers + 1) + 1;

    return fair > peer->peer.outstanding ? fair - peer->peer.outstanding : 0;
}

/* Chunks that may go to, or be asked of, a satellite now. @param budget  that the receive buffer has room for; a PUT needs none */
static uint32_t peer_room(const SKYC_Engine_t *engine, const SKYC_Peer_t *peer, uint32_t budget)
{
    const SKYC_Way_t *way  = &engine->ways[peer->way];
    uint32_t          room = SKY_LIMIT_CHUNK_SET;

    if (!engine->is_put)
    {
        room = fair_room(peer, engine->budget, engine->busy_count);
        room = room < budget ? room : budget;
    }
    if (way->peers > 1)
    {
        const uint32_t fair = fair_room(peer, SKYC_WAY_CHUNKS, way->peers);

        room = room < fair ? room : fair;
        room = room < way->room ? room : way->room;
    }
    return room;
}

static uint32_t less(uint32_t from, uint32_t by)
{
    return by < from ? from - by : 0;
}

/* @return true: more could be sent at once */
static bool engine_send(SKYC_Engine_t *engine)
{
    bool     more   = false;
    uint32_t budget = engine->budget;

    for (uint32_t i = 0; i < engine->way_count; ++i)
    {
        engine->ways[i].room  = SKYC_WAY_CHUNKS;
        engine->ways[i].peers = 0;
    }
    engine->busy_count = 0;
    for (uint32_t i = 0; i < engine->active_count; ++i)
    {
        const SKYC_Peer_t *peer = &engine->peers[engine->active[i]];
        SKYC_Way_t        *way  = &engine->ways[peer->way];

        budget    = less(budget, peer->peer.outstanding);
        way->room = less(way->room, peer->peer.outstanding);
        way->peers += peer->lanes_busy != 0 ? 1u : 0u;
        engine->busy_count += peer->lanes_busy != 0 ? 1u : 0u;
    }
    for (uint32_t n = 0; n < engine->active_count; ++n)
    {
        const uint32_t at   = (engine->turn + n) % engine->active_count;
        SKYC_Peer_t   *peer = &engine->peers[engine->active[at]];
        SKYC_Way_t    *way  = &engine->ways[peer->way];

        for (uint32_t i = at * SKYC_LANES; i < (at + 1) * SKYC_LANES; ++i)
        {
            if ((peer->lanes_busy & 1u << i % SKYC_LANES) != 0)
            {
                SKYC_Lane_t   *lane = &engine->lanes[i];
                const uint32_t room = peer_room(engine, peer, budget);
                const uint32_t used =
                    engine->is_put ? lane_offer(engine, peer, lane, room, &more) : lane_ask(engine, peer, lane, room);

                budget    = less(budget, used);
                way->room = less(way->room, used);
                if (used > 0 && peer->served.asked_us == 0)
                {
                    peer->served.asked_us = engine->now_us;
                }
            }
        }
    }
    ++engine->turn;
    SKYC_Socket_Flush(engine->sock);
    engine_refuse_too_large(engine);
    return more;
}

/* Another host has our number at a gateway: take a new one, and ask again what was asked there. */
static void engine_redraw(SKYC_Engine_t *engine, SKY_Addr_t gateway)
{
    ++engine->redraws;
    engine->self.slot            = (uint16_t)(SKYC_RandomWord(engine) % UINT16_MAX + 1);
    engine->counters.host_number = engine->self.slot;
    for (uint32_t i = 0; i < engine->active_count * SKYC_LANES; ++i)
    {
        SKYC_Lane_t    *lane  = &engine->lanes[i];
        SKY_ShareCfg_t *cfg   = engine->is_put ? &lane->u.push.cfg : &lane->u.fetch.cfg;
        uint64_t       *timer = engine->is_put ? &lane->u.push.timer_us : &lane->u.fetch.timer_us;

        if (lane->request_id == 0)
        {
            continue;
        }
        cfg->self = engine->self;
        if (*timer != 0 && SKY_Addr_Equal(cfg->gateway, gateway))
        {
            *timer = engine->now_us;
        }
    }
}

/* Is this a gateway's word that another host has our number? @return true: it has been acted upon */
static bool engine_number_taken(SKYC_Engine_t *engine, const SKYC_Peer_t *peer, const SKY_Packet_t *pkt)
{
    if (pkt->status != SKY_STATUS_REFUSED || engine->config.host_number != 0 || !SKY_Addr_Equal(pkt->src, peer->entry))
    {
        return false;
    }
    if (pkt->dst.slot == engine->self.slot)
    {
        if (engine->redraws == REDRAWS_MAX)
        {
            return false;
        }
        engine_redraw(engine, peer->entry);
    }
    return true; /* also if it is about a number of before */
}

/* What a satellite holds, it says itself; why a packet did not get there may be said by any satellite on the way. */
static bool is_from(const SKYC_Peer_t *peer, SKYC_Endpoint_t from, const SKY_Packet_t *pkt)
{
    return from.ipv4 == peer->endpoint.ipv4 && from.port == peer->endpoint.port &&
           ((pkt->status != SKY_STATUS_OK && pkt->status != SKY_STATUS_NOT_FOUND) || SKY_Addr_Equal(pkt->src, peer->peer.addr));
}

static void on_datagram(void *context, SKYC_Endpoint_t from, const uint8_t *data, size_t len)
{
    SKYC_Engine_t *engine = context;
    SKY_Packet_t   pkt;

    if (SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK)
    {
        ++engine->counters.rx_bad;
        return;
    }
    const uint32_t index = lane_of(engine, pkt.request_id);

    if (index == SKYC_LANES_MAX || !is_from(&engine->peers[engine->active[index / SKYC_LANES]], from, &pkt))
    {
        ++engine->counters.rx_stale;
        return;
    }
    if (engine_number_taken(engine, &engine->peers[engine->active[index / SKYC_LANES]], &pkt))
    {
        return;
    }
    SKYC_Lane_OnPacket(engine, index, &pkt);
    (void)SKYC_Lane_Reap(engine, index);
}

static void engine_loop(SKYC_Engine_t *engine)
{
    while (engine->blocks_left > 0)
    {
        engine->now_us = SKYC_NowUs();
        if (__atomic_load_n(&engine->cancel, __ATOMIC_RELAXED) == engine->progress.calls) /* only this thread writes the latter */
        {
            for (uint32_t b = 0; b < engine->work_count; ++b)
            {
                if (engine->work[b].block->status == SKY_STATUS_RUNNING)
                {
                    SKYC_Block_Stop(engine, b, SKY_STATUS_CANCELLED);
                }
            }
            return;
        }
        if (SKYC_Socket_Receive(engine->sock, on_datagram, engine))
        {
            engine->now_us = SKYC_NowUs(); /* taking it in has taken time */
        }
        else
        {
            engine->empty_us = engine->now_us;
        }
        (void)engine_on_time(engine);
        if (engine_send(engine) || engine->empty_us != engine->now_us)
        {
            continue;
        }
        /* What was sent has set timers. The clock stood still since the first look at them: nothing else is due. */
        const uint64_t due_us = engine_on_time(engine);

        engine->now_us = SKYC_NowUs();
        if (engine->blocks_left > 0 && due_us > engine->now_us) /* the timers may have ended the last block */
        {
            SKYC_Socket_Wait(engine->sock, due_us - engine->now_us);
        }
    }
}

int SKYC_Engine_Run(SKYC_Engine_t *engine, bool is_put, SKYC_Block_t *blocks, uint32_t count)
{
    engine->is_put   = is_put;
    engine->redraws  = 0;
    engine->empty_us = SKYC_NowUs();
    const int error  = SKYC_Engine_Prepare(engine, blocks, count);

    if (error == 0)
    {
        engine_loop(engine);
    }
    free(engine->work);
    free(engine->jobs);
    free(engine->active);
    free(engine->ways);
    free(engine->have);
    engine->have         = NULL;
    engine->ways         = NULL;
    engine->work         = NULL;
    engine->jobs         = NULL;
    engine->active       = NULL;
    engine->active_count = 0;
    (void)__atomic_fetch_add(&engine->progress.calls, 1, __ATOMIC_RELAXED);
    return error;
}

/* A time of the clock as one of the call; 0 stays what it is. */
static uint64_t since_start(const SKYC_Engine_t *engine, uint64_t at_us)
{
    return at_us == 0 ? 0 : at_us - engine->started_us;
}

uint32_t SKYC_Engine_Served(const SKYC_Engine_t *engine, SKYC_Served_t *served, uint32_t room)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < engine->peer_count; ++i)
    {
        const SKYC_Peer_t *peer = &engine->peers[i];

        if (peer->call != engine->call)
        {
            continue;
        }
        if (count < room)
        {
            SKYC_Served_t *one = &served[count];

            *one             = peer->served;
            one->plane       = peer->peer.addr.plane;
            one->slot        = peer->peer.addr.slot;
            one->entry_plane = peer->entry.plane;
            one->entry_slot  = peer->entry.slot;
            one->srtt_us     = peer->peer.srtt_us;
            one->asked_us    = since_start(engine, one->asked_us);
            one->last_us     = one->first_us == 0 ? 0 : since_start(engine, peer->heard_us);
            one->first_us    = since_start(engine, one->first_us);
        }
        ++count;
    }
    return count;
}

void SKYC_Engine_Free(SKYC_Engine_t *engine)
{
    free(engine->peers);
    free(engine->lanes);
}
