/**
 * @file
 * The exchange with one satellite that runs in a lane: the push of a PUT, or the fetch of a GET. No other file of the host looks
 * into these.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

/* ---- what a lane has done ---------------------------------------------------------------------------------------------- */

SKY_ShareCfg_t *SKY_HostExchange_Cfg(SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    return lane->kind == SKY_HOST_PUT ? &lane->u.push.cfg : &lane->u.fetch.cfg;
}

SKY_ShareState_t SKY_HostExchange_State(const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    return lane->kind == SKY_HOST_PUT ? lane->u.push.state : lane->u.fetch.state;
}

SKY_Status_t SKY_HostExchange_Status(const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    return lane->kind == SKY_HOST_PUT ? lane->u.push.last_status : lane->u.fetch.last_status;
}

uint32_t SKY_HostExchange_Left(const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    return lane->kind == SKY_HOST_PUT ? lane->u.push.left : lane->u.fetch.left + lane->u.fetch.denials;
}

bool SKY_HostExchange_IsTaken(const SKY_HostLane_t *lane, uint32_t i)
{
    SKY_ASSERT(i < SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT);
    return !SKY_ChunkSet_Has(&lane->u.push.unacked, i);
}

bool SKY_HostExchange_Waits(const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    SKY_ASSERT(lane->request_id != 0u);
    return (lane->kind == SKY_HOST_PUT ? lane->u.push.on_way : lane->u.fetch.on_way) > 0u;
}

uint32_t SKY_HostExchange_DeniedChunk(const SKY_HostLane_t *lane)
{
    const SKY_Fetch_t *fetch = &lane->u.fetch;

    if (lane->kind != SKY_HOST_GET)
    {
        return 0;
    }
    uint32_t at = SKY_ChunkSet_Next(&fetch->denied, 0);

    at = at < fetch->denied.count ? at : SKY_ChunkSet_Next(&fetch->missing, 0);
    SKY_ASSERT(at < fetch->denied.count); /* without a denied chunk all would have come */
    return SKY_ChunkSet_ChunkId(&fetch->denied, at);
}

uint32_t SKY_HostExchange_Pushed(const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    SKY_ASSERT(lane->request_id != 0u);
    return lane->kind == SKY_HOST_PUT ? lane->u.push.on_way : 0u;
}

uint64_t SKY_HostExchange_AgeUs(const SKY_HostLane_t *lane, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint16_t number = SKY_REQUEST_NUMBER(pkt->request_id);
    const uint16_t before = (uint16_t)(lane->u.push.number - number); /* queries that were sent since */

    SKY_ASSERT(lane->request_id != 0u);
    if (lane->kind != SKY_HOST_PUT || pkt->op != SKY_OP_HAS || before >= SKY_HOST_QUERIES ||
        lane->queried_us[number % SKY_HOST_QUERIES] == 0u)
    {
        return 0;
    }
    SKY_ASSERT(lane->queried_us[number % SKY_HOST_QUERIES] <= now_us);
    return now_us - lane->queried_us[number % SKY_HOST_QUERIES];
}

/* Return the bytes of @p chunks chunks that a satellite has acknowledged. */
static uint64_t AcknowledgedBytes(const SKY_HostLane_t *lane, uint32_t chunks)
{
    const SKY_Push_t     *push   = &lane->u.push;
    const SKY_Stripe_t   *stripe = &push->cfg.stripe;
    const SKY_StripeRow_t row    = SKY_Stripe_Row(stripe, SKY_Stripe_Rows(stripe) - 1u);
    uint64_t              bytes  = (uint64_t)chunks * stripe->chunk_len;
    SKY_ASSERT(chunks <= push->cfg.count);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT);

    for (uint32_t id = row.first + row.data - 1u; id < stripe->chunk_total; ++id) /* only these may be shorter */
    {
        const uint32_t index = SKY_ChunkSet_IndexOf(&push->unacked, id);

        if (index < push->cfg.count && SKY_HostExchange_IsTaken(lane, index))
        {
            bytes -= stripe->chunk_len - SKY_Stripe_ChunkBytes(stripe, id);
        }
    }
    return bytes;
}

SKY_HostServed_t SKY_HostExchange_Account(SKY_HostLane_t *lane, SKY_HostWork_t *work, bool counts)
{
    SKY_HostBlock_t *block   = work->block;
    const bool       is_put  = lane->kind == SKY_HOST_PUT;
    const uint32_t   chunks  = lane->left_begun - SKY_HostExchange_Left(lane);
    const uint64_t   bytes   = is_put ? AcknowledgedBytes(lane, chunks) : lane->bytes;
    const uint32_t   repeats = is_put ? lane->u.push.repeats : lane->u.fetch.repeats;
    const uint32_t   asked   = is_put ? lane->u.push.queries : lane->u.fetch.requests;
    SKY_ASSERT(SKY_HostExchange_Left(lane) <= lane->left_begun);
    SKY_ASSERT(lane->left_seen <= lane->left_begun);

    block->chunks += counts ? chunks : 0u;
    block->bytes += counts ? bytes : 0u;
    block->requests += asked;
    block->repeats += repeats;
    work->lost +=
        is_put || !lane->is_answered ? 0u : lane->u.fetch.lost; /* who says nothing at all may be dead, not its link lossy */
    block->duplicates += is_put ? 0u : lane->u.fetch.duplicates;
    block->corrupt += is_put ? 0u : lane->u.fetch.corrupt;
    block->last_status = SKY_HostExchange_Status(lane) != SKY_STATUS_OK ? SKY_HostExchange_Status(lane) : block->last_status;
    if (is_put && lane->u.push.held_version > block->held_version)
    {
        block->held_version = lane->u.push.held_version;
    }
    SKY_ASSERT(block->chunks <= block->stripe.chunk_total);
    return (SKY_HostServed_t){.chunks   = chunks,
                              .requests = asked,
                              .repeats  = repeats,
                              .bytes    = bytes,
                              .asked_us = lane->sent_us,
                              .first_us = lane->first_us,
                              .last_us  = lane->last_us};
}

/* ---- what a lane does -------------------------------------------------------------------------------------------------- */

static void BeginFetch(SKY_HostLane_t *lane, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, SKY_HostWork_t *work)
{
    SKY_Fetch_t           *fetch = &lane->u.fetch;
    const SKY_HostBlock_t *block = work->block;

    (void)SKY_Fetch_Init(fetch, cfg, peer, block->data, block->parity);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING); /* the share's numbers were checked */
    SKY_ASSERT(fetch->left == cfg->count);
    for (uint32_t i = 0; i < cfg->count && block->have != NULL; ++i)
    {
        if (!SKY_HostRows_Needs(work, SKY_ChunkSet_ChunkId(&fetch->missing, i)))
        {
            SKY_Fetch_Skip(fetch, i);
        }
    }
    if (fetch->state == SKY_SHARE_RUNNING && (lane->patience_us != 0u || block->stripe.code_m > 0u))
    {
        SKY_Fetch_Collect(fetch);
    }
}

/* The share's numbers were checked before the block began. */
void SKY_HostExchange_Begin(SKY_HostLane_t *lane, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, SKY_HostWork_t *work)
{
    SKY_ASSERT(lane->request_id == cfg->request_id);
    SKY_ASSERT(lane->kind == work->block->kind);
    SKY_ASSERT(lane->kind == SKY_HOST_PUT || lane->kind == SKY_HOST_GET);
    if (lane->kind == SKY_HOST_PUT)
    {
        (void)SKY_Push_Init(&lane->u.push, cfg, peer, lane->asked_by);
        (void)memset(lane->queried_us, 0, sizeof(lane->queried_us));
    }
    else
    {
        BeginFetch(lane, cfg, peer, work);
    }
}

void SKY_HostExchange_Stop(SKY_HostLane_t *lane, SKY_ShareState_t state)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    if (lane->kind == SKY_HOST_PUT)
    {
        SKY_Push_Stop(&lane->u.push, state);
    }
    else
    {
        SKY_Fetch_Stop(&lane->u.fetch, state);
    }
}

void SKY_HostExchange_Refuse(SKY_HostLane_t *lane, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT || status == SKY_STATUS_NO_RANDOM);
    if (lane->kind == SKY_HOST_PUT)
    {
        lane->u.push.last_status = status;
    }
    else
    {
        lane->u.fetch.last_status = status;
    }
    SKY_HostExchange_Stop(lane, SKY_SHARE_REFUSED);
}

void SKY_HostExchange_Repeat(SKY_HostLane_t *lane, uint64_t now_us)
{
    uint64_t *timer_us = lane->kind == SKY_HOST_PUT ? &lane->u.push.timer_us : &lane->u.fetch.timer_us;
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    SKY_ASSERT(lane->request_id != 0u);

    *timer_us = *timer_us != 0u ? now_us : 0u;
}

uint64_t SKY_HostExchange_OnTime(SKY_HostLane_t *lane, uint64_t now_us)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    return lane->kind == SKY_HOST_PUT ? SKY_Push_OnTime(&lane->u.push, now_us) : SKY_Fetch_OnTime(&lane->u.fetch, now_us);
}

void SKY_HostExchange_OnPacket(SKY_HostLane_t *lane, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    if (lane->kind == SKY_HOST_PUT)
    {
        SKY_Push_OnPacket(&lane->u.push, now_us, pkt);
    }
    else
    {
        SKY_Fetch_OnPacket(&lane->u.fetch, now_us, pkt);
    }
}

void SKY_HostExchange_Spare(SKY_HostLane_t *lane, SKY_HostWork_t *work)
{
    SKY_Fetch_t *fetch  = &lane->u.fetch;
    uint32_t     wanted = 0;
    SKY_ASSERT(lane->kind == SKY_HOST_GET);
    SKY_ASSERT(work->block != NULL);

    for (uint32_t i = SKY_ChunkSet_Next(&fetch->todo, 0); i < fetch->todo.count && wanted < fetch->peer->cfg.burst;
         i          = SKY_ChunkSet_Next(&fetch->todo, i + 1u))
    {
        if (SKY_HostRows_Needs(work, SKY_ChunkSet_ChunkId(&fetch->todo, i)))
        {
            ++wanted;
        }
        else
        {
            SKY_Fetch_Skip(fetch, i);
            SKY_ASSERT(lane->left_seen > 0u);
            --lane->left_begun; /* as if the chunk had never been of this lane */
            --lane->left_seen;
        }
    }
    SKY_ASSERT(lane->left_seen <= lane->left_begun);
}

SKY_PushAction_t SKY_HostExchange_Next(SKY_HostLane_t *lane, uint64_t now_us, uint32_t room, SKY_Packet_t *pkt, uint8_t *payload)
{
    SKY_ASSERT(lane->kind <= SKY_HOST_PUT);
    SKY_ASSERT(lane->request_id != 0u);

    if (lane->kind == SKY_HOST_PUT)
    {
        const SKY_PushAction_t action = SKY_Push_Next(&lane->u.push, now_us, room, pkt, payload);

        if (action == SKY_PUSH_QUERY)
        {
            lane->queried_us[lane->u.push.number % SKY_HOST_QUERIES] = now_us;
        }
        return action;
    }
    return SKY_Fetch_Next(&lane->u.fetch, now_us, room, pkt, payload) ? SKY_PUSH_QUERY : SKY_PUSH_NOTHING;
}
