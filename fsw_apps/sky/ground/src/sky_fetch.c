/**
 * @file
 * Receiving end of a transfer: requests go out for missing chunks, which go straight to their place in the block. sky_fetch_timers.c says
 * when chunks are asked for again.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_fetch_chunk.h"
#include "sky_fetch_timers.h"

/* Assert that counts never fall below 0, and that the timer runs while something is on its way. */
static void fetch_assert(const SKY_Fetch_t *fetch)
{
    SKY_ASSERT(fetch->left + fetch->denials <= fetch->cfg.count);
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ASSERT(fetch->on_way <= fetch->peer->outstanding);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING ? (fetch->timer_us != 0) == (fetch->on_way > 0) : fetch->on_way == 0);
    SKY_ASSERT(fetch->denials == 0 || fetch->collects);
}

static void fetch_end(SKY_Fetch_t *fetch, SKY_ShareState_t state)
{
    /* RUNNING stands for errors after which asking again may help, so nothing ends. */
    if (state != SKY_SHARE_RUNNING)
    {
        SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);
        SKY_ASSERT(fetch->on_way <= fetch->peer->outstanding);
        SKY_ASSERT(state != SKY_SHARE_DONE || fetch->left == 0);    /* a fetch that is done has nothing left */
        SKY_ASSERT(state != SKY_SHARE_DONE || fetch->denials == 0); /* a fetch that is done was denied nothing */
        fetch->state = state;
        fetch->peer->outstanding -= fetch->on_way;
        fetch->on_way = 0;
    }
}

bool SKY_Fetch_Init(SKY_Fetch_t *fetch, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint8_t *block, uint8_t *parity)
{
    (void)memset(fetch, 0, sizeof(*fetch));
    fetch->state  = SKY_SHARE_REFUSED;
    fetch->peer   = peer;
    fetch->block  = block;
    fetch->parity = parity;
    if (!SKY_ShareCfg_Check(cfg) || (parity == NULL && SKY_ShareCfg_HasParity(cfg)))
    {
        return false;
    }
    (void)SKY_ChunkSet_Init(&fetch->missing, cfg->base, cfg->stride, cfg->count); /* the check has passed these numbers */
    fetch->cfg   = *cfg;
    fetch->state = SKY_SHARE_RUNNING;
    fetch->left  = cfg->count;
    for (uint32_t i = 0; i < cfg->count; ++i)
    {
        SKY_ChunkSet_Add(&fetch->missing, i);
    }
    fetch->todo   = fetch->missing;
    fetch->denied = fetch->missing;
    (void)memset(fetch->denied.map, 0, sizeof(fetch->denied.map));
    for (uint32_t i = 0; i < SKY_FETCH_PARTIALS; ++i)
    {
        fetch->partials[i].index = cfg->count; /* no chunk has parts yet */
    }
    SKY_ASSERT(SKY_ChunkSet_Size(&fetch->missing) == fetch->left);
    SKY_ASSERT(SKY_ChunkSet_Next(&fetch->denied, 0) == cfg->count);
    SKY_ASSERT(fetch->missing.count == cfg->count);
    SKY_ASSERT(fetch->on_way == 0);
    return true;
}

/* Wait for one chunk less. */
static void fetch_settle(SKY_Fetch_t *fetch)
{
    SKY_ASSERT(fetch->left > 0);
    if (--fetch->left == 0)
    {
        SKY_ASSERT(SKY_ChunkSet_Next(&fetch->missing, 0) == fetch->cfg.count);
        fetch_end(fetch, fetch->denials > 0 ? SKY_SHARE_MISS : SKY_SHARE_DONE);
    }
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ASSERT(fetch->left + fetch->denials <= fetch->cfg.count);
}

void SKY_Fetch_Skip(SKY_Fetch_t *fetch, uint32_t index)
{
    SKY_ASSERT(fetch->on_way <= fetch->left);
    if (SKY_ChunkSet_Has(&fetch->todo, index))
    {
        SKY_ASSERT(fetch->left > fetch->on_way); /* this one is not on its way */
        SKY_ChunkSet_Remove(&fetch->todo, index);
        SKY_ChunkSet_Remove(&fetch->missing, index);
        fetch_settle(fetch);
    }
}

void SKY_Fetch_Collect(SKY_Fetch_t *fetch)
{
    SKY_ASSERT(fetch->number == 0);
    SKY_ASSERT(fetch->denials == 0);
    SKY_ASSERT(fetch->on_way == 0);
    fetch->collects = true;
}

/* Return the chunks to ask for now: what window and host have room for, but not a few at a time while more are coming anyway. */
static uint32_t fetch_want(const SKY_Fetch_t *fetch, uint32_t budget)
{
    const SKY_Peer_t *peer  = fetch->peer;
    const uint32_t    todo  = fetch->left - fetch->on_way;
    const uint32_t    burst = peer->cfg.burst < peer->window ? peer->cfg.burst : peer->window;
    uint32_t          want  = peer->window > peer->outstanding ? peer->window - peer->outstanding : 0;

    SKY_ASSERT(fetch->left >= fetch->on_way);
    SKY_ASSERT(burst >= 1);
    want = want < todo ? want : todo;
    want = want < burst ? want : burst;
    want = want < budget ? want : budget;
    SKY_ASSERT(want <= budget);
    SKY_ASSERT(want == 0 || peer->outstanding + want <= peer->window);
    return want < todo && want < (burst + 1) / 2 && peer->outstanding > 0 ? 0 : want;
}

bool SKY_Fetch_Next(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t budget, SKY_Packet_t *req, uint8_t *payload)
{
    const uint32_t most = fetch->state == SKY_SHARE_RUNNING ? fetch_want(fetch, budget) : 0;

    if (most == 0)
    {
        return false;
    }
    const uint16_t number = fetch->number == UINT16_MAX ? 1 : (uint16_t)(fetch->number + 1); /* number 0 means none */
    const uint32_t first  = SKY_ChunkSet_Next(&fetch->todo, 0);
    uint32_t       index  = first;
    uint32_t       want   = 0; /* chunks in the set of the request */
    SKY_ChunkSet_t set;

    (void)SKY_ChunkSet_Init(&set, SKY_ChunkSet_ChunkId(&fetch->todo, first), fetch->cfg.stride, fetch->cfg.count - first);
    for (; want < most; ++want)
    {
        const uint32_t next = SKY_ChunkSet_Next(&fetch->todo, index);

        SKY_ASSERT(next < fetch->cfg.count); /* what is to be asked for is in the set */
        if (next >= fetch->cfg.count)
        {
            break; /* asked_by has no room for more */
        }
        index = next;
        SKY_ChunkSet_Add(&set, index - first);
        SKY_ChunkSet_Remove(&fetch->todo, index);
        fetch->repeats += fetch->asked_by[index] != 0 ? 1u : 0u;
        fetch->asked_by[index] = number;
    }
    if (want == 0)
    {
        return false;
    }
    set.count = (uint16_t)(index - first + 1); /* the rest of the bitmap is 0 */
    SKY_ASSERT(set.count >= want);
    SKY_ASSERT(set.count <= fetch->cfg.count - first);

    SKY_ShareCfg_Request(&fetch->cfg, fetch->peer, now_us, SKY_OP_GET, number, req);
    req->credit   = (uint16_t)want;
    req->chunk_id = set.base;
    req->payload  = payload;
    req->length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, SKY_CHUNKSET_MAX_BYTES);

    fetch->on_way += want;
    fetch->peer->outstanding += want;
    fetch->number = number;
    ++fetch->requests;
    SKY_FetchTimers_Sent(fetch, now_us);
    SKY_ASSERT(req->length > 0);
    SKY_ASSERT(req->credit == want);
    SKY_ASSERT(fetch->peer->outstanding <= fetch->peer->window);
    fetch_assert(fetch);
    return true;
}

/* A satellite may send fewer chunks than it was asked for. Those behind the last were not sent, so they are not lost. */
static void fetch_unsent(SKY_Fetch_t *fetch, uint16_t number, uint32_t last)
{
    SKY_ASSERT(last < fetch->cfg.count);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);
    for (uint32_t i = SKY_ChunkSet_Next(&fetch->missing, last + 1); i < fetch->cfg.count;
         i          = SKY_ChunkSet_Next(&fetch->missing, i + 1))
    {
        if (!SKY_ChunkSet_Has(&fetch->todo, i) && fetch->asked_by[i] == number)
        {
            SKY_FetchTimers_AskAgain(fetch, i);
        }
    }
}

static void fetch_arrived(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t index)
{
    SKY_ASSERT(index < fetch->cfg.count);
    if (SKY_ChunkSet_Has(&fetch->todo, index))
    {
        SKY_ChunkSet_Remove(&fetch->todo, index); /* the chunk was given up too early */
        SKY_Peer_OnLate(fetch->peer, now_us);
    }
    else
    {
        SKY_ASSERT(fetch->on_way > 0);
        SKY_ASSERT(fetch->peer->outstanding > 0);
        --fetch->on_way;
        --fetch->peer->outstanding;
    }
    SKY_ChunkSet_Remove(&fetch->missing, index);
    SKY_Peer_OnDelivered(fetch->peer, 1);
    SKY_FetchTimers_Wind(fetch, now_us);
    fetch_settle(fetch);
}

static void fetch_data(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const SKY_ShareCfg_t *cfg     = &fetch->cfg;
    const uint32_t        index   = SKY_ChunkSet_IndexOf(&fetch->missing, pkt->chunk_id);
    const uint16_t        number  = SKY_REQUEST_NUMBER(pkt->request_id);
    const bool            is_last = (pkt->flags & SKY_FLAG_LAST) != 0;

    if (index >= cfg->count || !SKY_Parts_Check(pkt->chunk_len, pkt->offset, pkt->length))
    {
        ++fetch->corrupt;
        return;
    }
    if (!SKY_ShareCfg_IsChunk(cfg, pkt))
    {
        fetch->last_status = SKY_STATUS_BAD_KEY; /* this is another block of the same name */
        fetch_end(fetch, SKY_SHARE_MISS);
        return;
    }
    if (!SKY_ChunkSet_Has(&fetch->missing, index))
    {
        ++fetch->duplicates; /* the chunk was asked for again too early, most likely */
        SKY_Peer_OnLate(fetch->peer, now_us);
    }
    else if (SKY_FetchChunk_Take(fetch, pkt, index))
    {
        fetch_arrived(fetch, now_us, index);
        if (is_last && fetch->state == SKY_SHARE_RUNNING) /* once for a chunk: a satellite cannot make us ask for ever */
        {
            fetch_unsent(fetch, number, index);
        }
    }
    if (fetch->state == SKY_SHARE_RUNNING)
    {
        SKY_FetchTimers_Burst(fetch, now_us, number, is_last);
    }
}

/* Note that the satellite does not hold a missing chunk. */
static void fetch_denied(SKY_Fetch_t *fetch, uint64_t now_us, uint32_t index)
{
    SKY_ASSERT(index < fetch->cfg.count);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);
    if (!fetch->collects)
    {
        SKY_ChunkSet_Add(&fetch->denied, index); /* the caller learns which chunks were denied */
        fetch_end(fetch, SKY_SHARE_MISS);
        return;
    }
    if (SKY_ChunkSet_Has(&fetch->todo, index))
    {
        SKY_ChunkSet_Remove(&fetch->todo, index);
    }
    else
    {
        SKY_ASSERT(fetch->on_way > 0);
        SKY_ASSERT(fetch->peer->outstanding > 0);
        --fetch->on_way;
        --fetch->peer->outstanding;
    }
    SKY_ChunkSet_Remove(&fetch->missing, index);
    SKY_ChunkSet_Add(&fetch->denied, index);
    ++fetch->denials;
    SKY_ASSERT(fetch->collects);
    SKY_ASSERT(fetch->denials <= fetch->cfg.count);
    SKY_FetchTimers_Wind(fetch, now_us);
    fetch_settle(fetch);
}

/* Note the chunks that the satellite does not hold. A chunk that came before may complete the share all the same. */
static void fetch_not_found(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ChunkSet_t absent;

    /* Who holds an earlier version just lacks the chunks. A satellite that holds nothing names version 0. */
    if (pkt->block_version > fetch->cfg.version ||
        (pkt->content != 0 && pkt->block_version == fetch->cfg.version && pkt->content != fetch->cfg.content))
    {
        fetch->last_status = SKY_STATUS_BAD_KEY; /* another block of this name has replaced this one */
        fetch_end(fetch, SKY_SHARE_MISS);
        return;
    }
    if (SKY_ChunkSet_Decode(pkt, &absent) != SKY_STATUS_OK)
    {
        fetch_end(fetch, SKY_SHARE_MISS); /* the satellite does not know the block at all */
        return;
    }
    for (uint32_t i = SKY_ChunkSet_Next(&absent, 0); i < absent.count; i = SKY_ChunkSet_Next(&absent, i + 1))
    {
        const uint32_t index = SKY_ChunkSet_IndexOf(&fetch->missing, SKY_ChunkSet_ChunkId(&absent, i));

        if (SKY_ChunkSet_Has(&fetch->missing, index))
        {
            SKY_ASSERT(index < fetch->cfg.count);
            fetch_denied(fetch, now_us, index);
            if (fetch->state != SKY_SHARE_RUNNING)
            {
                return;
            }
        }
    }
    SKY_FetchTimers_Burst(fetch, now_us, SKY_REQUEST_NUMBER(pkt->request_id), (pkt->flags & SKY_FLAG_LAST) != 0);
}

void SKY_Fetch_OnPacket(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (fetch->state != SKY_SHARE_RUNNING || pkt->op != SKY_OP_GET || !SKY_ShareCfg_Owns(&fetch->cfg, pkt))
    {
        return;
    }
    fetch_assert(fetch);

    SKY_FetchTimers_Hear(fetch, now_us, SKY_REQUEST_NUMBER(pkt->request_id));
    if (pkt->status == SKY_STATUS_OK)
    {
        fetch_data(fetch, now_us, pkt);
        return;
    }
    fetch->last_status = pkt->status;
    if (pkt->status == SKY_STATUS_NOT_FOUND)
    {
        fetch_not_found(fetch, now_us, pkt);
    }
    else
    {
        fetch_end(fetch, SKY_ShareState_OfError(pkt->status));
    }
}

uint64_t SKY_Fetch_OnTime(SKY_Fetch_t *fetch, uint64_t now_us)
{
    if (fetch->state != SKY_SHARE_RUNNING)
    {
        return UINT64_MAX;
    }
    if (now_us >= fetch->cfg.deadline_us)
    {
        fetch_end(fetch, SKY_SHARE_EXPIRED);
        return UINT64_MAX;
    }
    SKY_ASSERT(fetch->left > 0); /* a fetch with nothing left is done */
    const uint64_t next_us = SKY_FetchTimers_Run(fetch, now_us);

    fetch_assert(fetch);
    return next_us;
}

void SKY_Fetch_Stop(SKY_Fetch_t *fetch, SKY_ShareState_t state)
{
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    if (fetch->state == SKY_SHARE_RUNNING)
    {
        fetch_end(fetch, state);
    }
    SKY_ASSERT(fetch->on_way == 0);
    SKY_ASSERT(fetch->state != SKY_SHARE_RUNNING);
}
