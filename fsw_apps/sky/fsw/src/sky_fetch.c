/**
 * @file
 * Receiving end of a transfer: requests go out for missing chunks, which go straight to their place in the block.
 *
 * A satellite answers requests in order, each with a burst whose last packet says so. A chunk of a burst that is over is lost,
 * or late; it gets a moment of grace (as in RFC 8985) before it is asked for again. If the end of a burst is lost, its rest is waited for
 * a few times as long as packets of an answer are apart. Only a request without any answer is waited for as long as a round trip may take.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_fetch_chunk.h"

#define FETCH_ANSWERS 64u /* bits of `answers` */

typedef struct
{
    uint32_t chunks, packets;
} fetch_loss_t;

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

static bool is_since(uint16_t number, uint16_t since)
{
    return (int16_t)(uint16_t)(number - since) >= 0;
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

/* Let the timer run until @p due_us at least. */
static void fetch_watch(SKY_Fetch_t *fetch, uint64_t due_us)
{
    SKY_ASSERT(fetch->on_way > 0);
    SKY_ASSERT(due_us > 0);
    fetch->timer_us = fetch->timer_us < due_us ? due_us : fetch->timer_us;
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
    fetch->answers <<= 1;
    ++fetch->requests;
    if (fetch->timed == 0)
    {
        fetch->timed    = number;
        fetch->clocked  = number;
        fetch->asked_us = now_us;
    }
    fetch->sent_us = now_us;
    fetch_watch(fetch, now_us + fetch->peer->rto_us);
    SKY_ASSERT(req->length > 0);
    SKY_ASSERT(req->credit == want);
    SKY_ASSERT(fetch->peer->outstanding <= fetch->peer->window);
    fetch_assert(fetch);
    return true;
}

static void fetch_again_one(SKY_Fetch_t *fetch, uint32_t index)
{
    SKY_ASSERT(fetch->on_way > 0);
    SKY_ASSERT(fetch->peer->outstanding > 0);
    SKY_ASSERT(fetch->asked_by[index] != 0);
    SKY_ASSERT(index < fetch->cfg.count);
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ChunkSet_Add(&fetch->todo, index);
    --fetch->peer->outstanding;
    if (--fetch->on_way == 0)
    {
        fetch->timer_us = 0;
    }
    SKY_ASSERT(fetch->on_way <= fetch->peer->outstanding);
}

/* Return true if something of the answer to a request came. Old requests count as answered. */
static bool fetch_was_heard(const SKY_Fetch_t *fetch, uint16_t number)
{
    const uint16_t before = (uint16_t)(fetch->number - number);
    SKY_ASSERT(number != 0);
    SKY_ASSERT(is_since(fetch->number, number));

    return before >= FETCH_ANSWERS || (fetch->answers & UINT64_C(1) << before) != 0;
}

/* Ask again for the chunks that were asked for up to request @p number. @return how many there are, and how many packets may have been lost:
 * a request without an answer is one. */
static fetch_loss_t fetch_again(SKY_Fetch_t *fetch, uint16_t number)
{
    fetch_loss_t loss   = {0, 0};
    uint16_t     silent = 0;                     /* last request without an answer */
    SKY_ASSERT(is_since(fetch->number, number)); /* the request was sent */

    for (uint32_t i = SKY_ChunkSet_Next(&fetch->missing, 0); i < fetch->cfg.count; i = SKY_ChunkSet_Next(&fetch->missing, i + 1))
    {
        const uint16_t asked = fetch->asked_by[i];

        if (!SKY_ChunkSet_Has(&fetch->todo, i) && is_since(number, asked))
        {
            const bool is_heard = fetch_was_heard(fetch, asked);

            fetch_again_one(fetch, i);
            ++loss.chunks;
            loss.packets += is_heard || asked != silent ? 1u : 0u;
            silent = is_heard ? silent : asked;
        }
    }
    fetch->lost += loss.chunks;
    SKY_ASSERT(fetch->on_way + loss.chunks <= fetch->left);
    SKY_ASSERT(loss.packets <= loss.chunks);
    return loss;
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
            fetch_again_one(fetch, i);
        }
    }
}

/* Return true if a chunk is on its way that was asked for up to request @p number. */
static bool fetch_has_gap(const SKY_Fetch_t *fetch, uint16_t number)
{
    uint32_t i = SKY_ChunkSet_Next(&fetch->missing, 0);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);

    while (i < fetch->cfg.count && (SKY_ChunkSet_Has(&fetch->todo, i) || !is_since(number, fetch->asked_by[i])))
    {
        i = SKY_ChunkSet_Next(&fetch->missing, i + 1);
    }
    return i < fetch->cfg.count;
}

/* Chunks of a burst that has ended may just be late: packets overtake each other on a link with jitter. One time of grace runs at
 * a time; bursts that end meanwhile get theirs after it. */
static void fetch_grace(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(is_since(fetch->number, fetch->over));
    if (fetch->gap_us == 0 && fetch_has_gap(fetch, fetch->over))
    {
        fetch->gap = fetch->over;
        SKY_ASSERT(fetch->on_way > 0);
        fetch->gap_us = now_us + SKY_Peer_GraceUs(fetch->peer, now_us);
        SKY_ASSERT(fetch->gap_us >= now_us);
    }
}

static void fetch_lost(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(fetch->gap_us != 0);
    SKY_ASSERT(is_since(fetch->over, fetch->gap));
    fetch->gap_us = 0;
    if (is_since(fetch->gap, fetch->timed))
    {
        fetch->timed = 0; /* the answer was lost, at least in part: time another one */
    }
    const fetch_loss_t loss = fetch_again(fetch, fetch->gap);

    if (loss.chunks > 0)
    {
        SKY_Peer_OnLoss(fetch->peer, now_us, loss.chunks, loss.packets);
    }
    fetch_grace(fetch, now_us);
}

/* Act on a packet of request @p number: every burst before it is over, and its own if the packet is the last. */
static void fetch_burst(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number, bool is_last)
{
    const uint16_t over = is_last ? number : (uint16_t)(number - 1);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);

    if (is_since(over, (uint16_t)(fetch->over + 1)) && is_since(fetch->number, number))
    {
        SKY_ASSERT(is_since(fetch->number, over));
        fetch->over = over;
        fetch_grace(fetch, now_us);
    }
    if (number == fetch->heard)
    {
        const bool waits = fetch->on_way > 0 && !is_since(fetch->over, number);

        fetch->tail_us = waits ? now_us + SKY_Peer_TailUs(fetch->peer, now_us) : 0;
        SKY_ASSERT(!waits || fetch->tail_us > now_us);
    }
}

/* Take note of a packet of request @p number. */
static void fetch_hear(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number)
{
    const bool was_sent = number != 0 && is_since(fetch->number, number);

    if (was_sent && number == fetch->timed)
    {
        SKY_Peer_OnRtt(fetch->peer, (uint32_t)(now_us - fetch->asked_us));
        fetch->timed = 0;
    }
    if (was_sent && number == fetch->late)
    {
        SKY_Peer_OnRtt(fetch->peer, (uint32_t)(now_us - fetch->late_us));
        SKY_Peer_OnAge(fetch->peer, now_us, now_us - fetch->late_us);
    }
    if (was_sent && fetch->late != 0 && is_since(number, fetch->late))
    {
        fetch->late = 0; /* it is here, or lost, most likely */
    }
    if (was_sent && number == fetch->clocked)
    {
        SKY_Peer_OnAge(fetch->peer, now_us, now_us - fetch->asked_us);
    }
    if (was_sent && number == fetch->heard)
    {
        SKY_Peer_OnGap(fetch->peer, now_us - fetch->heard_us);
    }
    if (was_sent && (fetch->heard == 0 || is_since(number, fetch->heard)))
    {
        fetch->heard    = number;
        fetch->heard_us = now_us;
    }
    if (was_sent && (uint16_t)(fetch->number - number) < FETCH_ANSWERS)
    {
        fetch->answers |= UINT64_C(1) << (uint16_t)(fetch->number - number);
    }
    SKY_ASSERT(fetch->heard == 0 || is_since(fetch->number, fetch->heard));
    SKY_ASSERT(!was_sent || fetch->heard != 0);
}

/* Set the timer anew, because something came. */
static void fetch_wind(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ASSERT(fetch->number != 0);
    fetch->timer_us = 0;
    if (fetch->on_way == 0)
    {
        return;
    }
    if (fetch->heard == fetch->number)
    {
        fetch_watch(fetch, now_us + fetch->peer->rto_us); /* the rest of that answer is waited for, but not as long */
        return;
    }
    fetch_watch(fetch, now_us + SKY_Peer_TailUs(fetch->peer, now_us));
    fetch_watch(fetch, fetch->sent_us + fetch->peer->rto_us);
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
    fetch_wind(fetch, now_us);
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
        fetch_burst(fetch, now_us, number, is_last);
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
    fetch_wind(fetch, now_us);
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
    fetch_burst(fetch, now_us, SKY_REQUEST_NUMBER(pkt->request_id), (pkt->flags & SKY_FLAG_LAST) != 0);
}

void SKY_Fetch_OnPacket(SKY_Fetch_t *fetch, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (fetch->state != SKY_SHARE_RUNNING || pkt->op != SKY_OP_GET || !SKY_ShareCfg_Owns(&fetch->cfg, pkt))
    {
        return;
    }
    SKY_ASSERT(fetch->timed == 0 || is_since(fetch->number, fetch->timed)); /* the timed request was sent */
    fetch_assert(fetch);

    fetch_hear(fetch, now_us, SKY_REQUEST_NUMBER(pkt->request_id));
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

/* Time another request, because the timed one is given up. If its answer comes after all, its round trip counts (as in RFC 3522). Else a timer
 * that is too short for a queue stays too short: each answer comes after its chunks have been asked for again. */
static void fetch_time_another(SKY_Fetch_t *fetch)
{
    SKY_ASSERT(fetch->timed == 0 || is_since(fetch->number, fetch->timed));
    SKY_ASSERT(fetch->late == 0 || is_since(fetch->number, fetch->late));
    if (fetch->late == 0)
    {
        fetch->late    = fetch->timed;
        fetch->late_us = fetch->asked_us;
    }
    fetch->timed = 0;
}

/* Return the time at which all is asked for again, or 0 if nothing is on its way. The timer may leave no time for another answer before the
 * deadline: the last repeat goes earlier then, but not before an answer to the newest request can be here. */
static uint64_t fetch_again_us(const SKY_Fetch_t *fetch, uint64_t now_us)
{
    const uint64_t round_us = fetch->peer->srtt_us;
    const uint64_t end_us   = fetch->cfg.deadline_us;
    const uint64_t spare_us = round_us + SKY_Peer_GraceUs(fetch->peer, now_us);
    SKY_ASSERT(fetch->sent_us <= now_us);
    SKY_ASSERT(now_us < end_us);
    if (fetch->timer_us == 0 || round_us == 0 || end_us - fetch->sent_us <= 2 * round_us)
    {
        return fetch->timer_us;
    }
    const uint64_t answer_us = fetch->sent_us + round_us;
    const uint64_t last_us   = end_us - answer_us > spare_us ? end_us - spare_us : answer_us;
    SKY_ASSERT(last_us >= answer_us);
    SKY_ASSERT(last_us < end_us);

    return last_us < fetch->timer_us ? last_us : fetch->timer_us;
}

uint64_t SKY_Fetch_OnTime(SKY_Fetch_t *fetch, uint64_t now_us)
{
    uint64_t next_us = fetch->cfg.deadline_us;

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
    if (fetch->tail_us != 0 && now_us >= fetch->tail_us)
    {
        fetch->tail_us = 0;
        fetch->over    = fetch->heard;
        fetch->gap     = fetch->heard;
        fetch->gap_us  = now_us;
        SKY_ASSERT(is_since(fetch->number, fetch->heard));
    }
    if (fetch->gap_us != 0 && now_us >= fetch->gap_us)
    {
        fetch_lost(fetch, now_us);
    }
    const uint64_t again_us = fetch_again_us(fetch, now_us);

    if (again_us != 0 && now_us >= again_us)
    {
        if (now_us >= fetch->timer_us)
        {
            SKY_Peer_OnTimeout(fetch->peer, now_us);
        }
        (void)fetch_again(fetch, fetch->number);
        SKY_ASSERT(fetch->on_way == 0);
        fetch->over = fetch->number;
        fetch_time_another(fetch);
        fetch->gap_us  = 0;
        fetch->tail_us = 0;
    }
    fetch_assert(fetch);
    if (fetch->gap_us != 0 && fetch->gap_us < next_us)
    {
        next_us = fetch->gap_us;
    }
    if (fetch->tail_us != 0 && fetch->tail_us < next_us)
    {
        next_us = fetch->tail_us;
    }
    if (fetch->timer_us != 0 && again_us < next_us)
    {
        next_us = again_us;
    }
    SKY_ASSERT(next_us <= fetch->cfg.deadline_us);
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
