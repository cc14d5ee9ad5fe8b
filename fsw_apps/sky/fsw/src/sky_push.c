/**
 * @file
 * Sending end of a transfer: chunks go out, a HAS after each burst asks which arrived, and the others go out again.
 *
 * A chunk belongs to the query that follows it. The response to a query therefore speaks of all chunks up to that query: what is
 * not held then is lost, or the query has overtaken it, as happens on a link with jitter. So it is doubted first, and belongs to
 * the next query, which leaves at least a round trip after the chunk did; what is not held then either is lost (the idea of
 * RFC 8985: time tells loss from disorder). An answer that comes late says nothing about a chunk that was sent again since.
 */
#include "sky_transfer.h"

#include <string.h>

#include "sky_assert.h"

/* Assert that counts never fall below 0, and that every chunk on its way will be asked about. */
static void push_assert(const SKY_Push_t *push)
{
    SKY_ASSERT(push->left <= push->cfg.count);
    SKY_ASSERT(push->on_way <= push->left);
    SKY_ASSERT(push->on_way <= push->peer->outstanding);
    SKY_ASSERT(push->state == SKY_SHARE_RUNNING || push->on_way == 0);
    SKY_ASSERT(push->doubted.count == push->cfg.count);
}

static void push_end(SKY_Push_t *push, SKY_ShareState_t state)
{
    if (state != SKY_SHARE_RUNNING)
    {
        SKY_ASSERT(push->state == SKY_SHARE_RUNNING);
        SKY_ASSERT(push->on_way <= push->peer->outstanding);
        push->state = state;
        push->peer->outstanding -= push->on_way;
        push->on_way = 0;
    }
}

bool SKY_Push_Init(SKY_Push_t *push, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, uint16_t *asked_by)
{
    (void)memset(push, 0, sizeof(*push));
    push->state = SKY_SHARE_REFUSED;
    push->peer  = peer;
    if (!SKY_ShareCfg_Check(cfg))
    {
        return false;
    }
    (void)SKY_ChunkSet_Init(&push->unacked, cfg->base, cfg->stride, cfg->count); /* the check has passed these numbers */
    (void)memset(asked_by, 0, cfg->count * sizeof(*asked_by));
    push->asked_by = asked_by;
    push->cfg      = *cfg;
    push->state    = SKY_SHARE_RUNNING;
    push->left     = cfg->count;
    for (uint32_t i = 0; i < cfg->count; ++i)
    {
        SKY_ChunkSet_Add(&push->unacked, i);
    }
    push->todo = push->unacked;
    (void)SKY_ChunkSet_Init(&push->doubted, cfg->base, cfg->stride, cfg->count);
    SKY_ASSERT(SKY_ChunkSet_Size(&push->unacked) == push->left);
    SKY_ASSERT(SKY_ChunkSet_Next(&push->doubted, 0) == cfg->count);
    SKY_ASSERT(push->unacked.count == cfg->count);
    SKY_ASSERT(push->on_way == 0);
    return true;
}

void SKY_Push_Skip(SKY_Push_t *push, uint32_t index)
{
    if (index >= push->cfg.count || !SKY_ChunkSet_Has(&push->todo, index))
    {
        return;
    }
    SKY_ASSERT(push->on_way == 0);
    SKY_ASSERT(push->sent == 0);
    SKY_ASSERT(push->left > 0);
    SKY_ChunkSet_Remove(&push->todo, index);
    SKY_ChunkSet_Remove(&push->unacked, index);
    if (--push->left == 0)
    {
        push_end(push, SKY_SHARE_DONE);
    }
}

static uint16_t next_number(uint16_t number)
{
    return number == UINT16_MAX ? 1 : (uint16_t)(number + 1); /* number 0 means none */
}

static bool is_since(uint16_t number, uint16_t since)
{
    return (int16_t)(uint16_t)(number - since) >= 0;
}

static bool push_on_way(const SKY_Push_t *push, uint32_t index)
{
    SKY_ASSERT(index < push->cfg.count);
    return SKY_ChunkSet_Has(&push->unacked, index) && !SKY_ChunkSet_Has(&push->todo, index);
}

static void push_query(SKY_Push_t *push, uint64_t now_us, SKY_Packet_t *pkt, uint8_t *payload)
{
    const uint16_t number = next_number(push->number);
    uint32_t       first  = push->cfg.count;
    uint32_t       last   = 0;
    SKY_ChunkSet_t set;

    for (uint32_t i = SKY_ChunkSet_Next(&push->unacked, 0); i < push->cfg.count; i = SKY_ChunkSet_Next(&push->unacked, i + 1))
    {
        if (push_on_way(push, i))
        {
            first = first < i ? first : i;
            last  = i;
        }
    }
    SKY_ASSERT(push->on_way > 0);
    SKY_ASSERT(first <= last);
    /* Ask about the chunks on their way. There is one: the timer runs, or chunks were sent since the last query. */
    (void)SKY_ChunkSet_Init(&set, SKY_ChunkSet_ChunkId(&push->unacked, first), push->cfg.stride, last - first + 1);
    for (uint32_t i = first; i <= last; ++i)
    {
        if (push_on_way(push, i))
        {
            SKY_ChunkSet_Add(&set, i - first);
        }
    }
    SKY_ShareCfg_Request(&push->cfg, push->peer, now_us, SKY_OP_HAS, number, pkt);
    pkt->chunk_id = set.base;
    pkt->payload  = payload;
    pkt->length   = (uint32_t)SKY_ChunkSet_Encode(&set, payload, SKY_CHUNKSET_MAX_BYTES);

    push->number      = number;
    push->query_due   = false;
    push->query_owed  = false;
    push->since_query = 0;
    ++push->queries;
    if (push->timed == 0)
    {
        push->timed    = number;
        push->asked_us = now_us;
    }
    if (push->timer_us == 0)
    {
        push->timer_us = now_us + push->peer->rto_us;
    }
    SKY_ASSERT(pkt->length > 0);
    SKY_ASSERT(pkt->length <= SKY_CHUNKSET_MAX_BYTES);
    SKY_ASSERT(last < push->cfg.count);
    SKY_ASSERT(push->timer_us != 0); /* a lost answer is noticed by the timer */
    SKY_ASSERT(push->number != 0);
}

/* Return the chunks between two queries: as many as the satellite takes at a time. */
static uint32_t push_burst(const SKY_Push_t *push)
{
    SKY_ASSERT(push->peer->cfg.burst >= 1); /* with 0 the push would ask for ever, and send nothing */
    SKY_ASSERT(push->peer->credit >= 1);
    SKY_ASSERT(push->peer->credit <= SKY_LIMIT_CHUNK_SET);
    return push->peer->cfg.burst < push->peer->credit ? push->peer->cfg.burst : push->peer->credit;
}

/* Choose the next chunk. @return false if the counts are wrong, so nothing is sent */
static bool push_chunk(SKY_Push_t *push, uint64_t now_us, SKY_Packet_t *pkt)
{
    uint32_t index = SKY_ChunkSet_Next(&push->todo, push->cursor);
    SKY_ASSERT(push->on_way < push->left);
    SKY_ASSERT(push->peer->outstanding < push->peer->window);

    if (index >= push->cfg.count)
    {
        index = SKY_ChunkSet_Next(&push->todo, 0);
    }
    SKY_ASSERT(index < push->cfg.count); /* fewer chunks are on their way than are left */
    if (index >= push->cfg.count)
    {
        return false; /* asked_by has no room for more */
    }
    const uint32_t id = SKY_ChunkSet_ChunkId(&push->todo, index);

    SKY_ShareCfg_Request(&push->cfg, push->peer, now_us, SKY_OP_PUT, next_number(push->number), pkt);
    pkt->chunk_id  = id;
    pkt->chunk_len = SKY_Stripe_ChunkBytes(&push->cfg.stripe, id);
    pkt->home      = push->cfg.home;

    push->repeats += push->asked_by[index] != 0 ? 1u : 0u;
    push->asked_by[index] = next_number(push->number);
    push->cursor          = index + 1;
    SKY_ChunkSet_Remove(&push->todo, index);
    SKY_ChunkSet_Remove(&push->doubted, index);
    ++push->on_way;
    ++push->peer->outstanding;
    ++push->since_query;
    ++push->sent;
    SKY_ASSERT(push->peer->outstanding <= push->peer->window);
    push_assert(push);
    SKY_ASSERT(pkt->chunk_len <= push->cfg.stripe.chunk_len);
    SKY_ASSERT(push->since_query <= push->sent);
    return true;
}

SKY_PushAction_t SKY_Push_Next(SKY_Push_t *push, uint64_t now_us, uint32_t budget, SKY_Packet_t *pkt, uint8_t *payload)
{
    if (push->state != SKY_SHARE_RUNNING)
    {
        return SKY_PUSH_NOTHING;
    }
    const bool has_room = push->left > push->on_way && push->peer->outstanding < push->peer->window && budget > 0;

    const bool is_owed = push->query_owed || push->since_query > 0;
    SKY_ASSERT(!push->query_due || push->on_way > 0);
    SKY_ASSERT(!is_owed || push->on_way > 0);

    if (push->query_due || push->since_query >= push_burst(push) || (is_owed && !has_room))
    {
        push_query(push, now_us, pkt, payload);
        return SKY_PUSH_QUERY;
    }
    if (!has_room)
    {
        return SKY_PUSH_NOTHING;
    }
    return push_chunk(push, now_us, pkt) ? SKY_PUSH_CHUNK : SKY_PUSH_NOTHING;
}

/* The chunk was not there when it was asked for: it belongs to the next query. */
static void push_doubt(SKY_Push_t *push, uint32_t index)
{
    SKY_ASSERT(push_on_way(push, index));
    SKY_ChunkSet_Add(&push->doubted, index);
    push->asked_by[index] = next_number(push->number);
    push->query_owed      = true;
    SKY_ASSERT(push->on_way > 0);
}

/* Take in the answer to query @p number about each chunk that is not acknowledged yet. */
static void push_settle(SKY_Push_t *push, uint64_t now_us, uint16_t number, const SKY_ChunkSet_t *held)
{
    uint32_t delivered = 0;
    uint32_t lost      = 0;
    SKY_ASSERT(is_since(push->number, number));
    SKY_ASSERT(held->stride >= 1);

    for (uint32_t i = SKY_ChunkSet_Next(&push->unacked, 0); i < push->cfg.count; i = SKY_ChunkSet_Next(&push->unacked, i + 1))
    {
        const bool     on_way = !SKY_ChunkSet_Has(&push->todo, i);
        const uint32_t at     = SKY_ChunkSet_IndexOf(held, SKY_ChunkSet_ChunkId(&push->unacked, i));

        if (at < held->count && SKY_ChunkSet_Has(held, at))
        {
            SKY_ChunkSet_Remove(&push->unacked, i);
            SKY_ChunkSet_Remove(&push->todo, i);
            SKY_ASSERT(push->left > 0);
            --push->left;
            ++delivered;
        }
        else if (on_way && is_since(number, push->asked_by[i]))
        {
            if (!SKY_ChunkSet_Has(&push->doubted, i))
            {
                push_doubt(push, i);
                continue;
            }
            SKY_ChunkSet_Add(&push->todo, i);
            ++lost;
        }
        else
        {
            continue;
        }
        if (on_way)
        {
            SKY_ASSERT(push->on_way > 0);
            SKY_ASSERT(push->peer->outstanding > 0);
            --push->on_way;
            --push->peer->outstanding;
        }
    }
    push_assert(push);
    push->fruitless = delivered > 0 ? 0 : push->fruitless + (lost > 0 ? 1u : 0u);
    if (delivered > 0)
    {
        SKY_Peer_OnDelivered(push->peer, delivered);
    }
    if (lost > 0)
    {
        SKY_Peer_OnLoss(push->peer, now_us, lost, lost);
    }
    SKY_ASSERT(delivered + push->left <= push->cfg.count);
}

/* Compare the block that a satellite holds with the one that was sent. @return OK, OLD_VERSION or BAD_KEY */
static SKY_Status_t push_compare(const SKY_Push_t *push, const SKY_Packet_t *pkt)
{
    const SKY_ShareCfg_t *cfg = &push->cfg;
    SKY_ASSERT(pkt->status == SKY_STATUS_OK);

    if (pkt->block_version != cfg->version)
    {
        return pkt->block_version > cfg->version ? SKY_STATUS_OLD_VERSION : SKY_STATUS_OK;
    }
    SKY_Stripe_t held;

    return pkt->content == cfg->content && SKY_Stripe_OfPacket(&held, pkt) && SKY_Stripe_Equal(&held, &cfg->stripe)
               ? SKY_STATUS_OK
               : SKY_STATUS_BAD_KEY;
}

static void push_refused(SKY_Push_t *push, SKY_Status_t status, uint64_t held_version)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    push->last_status  = status;
    push->held_version = held_version;
    push_end(push, SKY_ShareState_OfError(status)); /* if the push goes on, the next HAS brings the chunk up again */
}

static void push_answered(SKY_Push_t *push, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint16_t number = SKY_REQUEST_NUMBER(pkt->request_id);
    SKY_ChunkSet_t held;

    if (!is_since(push->number, number))
    {
        return; /* the response answers no question of ours */
    }
    const SKY_Status_t other    = pkt->status == SKY_STATUS_OK ? push_compare(push, pkt) : SKY_STATUS_OK;
    const bool         is_older = pkt->block_version < push->cfg.version; /* what is held there is being replaced */
    if (other != SKY_STATUS_OK)
    {
        push_refused(push, other, pkt->block_version);
        return;
    }
    if (is_older || SKY_ChunkSet_Decode(pkt, &held) != SKY_STATUS_OK)
    {
        if (!is_older && pkt->status == SKY_STATUS_OK)
        {
            return; /* an answer without a set says nothing; the timer asks again */
        }
        (void)memset(&held, 0,
                     sizeof(held)); /* the satellite does not know the block, or an earlier version: it holds nothing of it */
        held.stride = 1;
    }
    if (push->timed != 0 && is_since(number, push->timed))
    {
        if (number == push->timed)
        {
            SKY_Peer_OnRtt(push->peer, (uint32_t)(now_us - push->asked_us));
            SKY_Peer_OnAge(push->peer, now_us, now_us - push->asked_us);
        }
        push->timed = 0; /* the answer to the timed query was lost: time another one */
    }
    SKY_Peer_OnCredit(push->peer, pkt->credit);
    SKY_ASSERT(held.count <= SKY_LIMIT_CHUNK_SET);
    push_settle(push, now_us, number, &held);
    push->query_due = false;
    if (push->left == 0)
    {
        SKY_ASSERT(SKY_ChunkSet_Next(&push->unacked, 0) == push->cfg.count);
        push_end(push, SKY_SHARE_DONE);
    }
    else if (push->on_way == 0)
    {
        SKY_ASSERT(push->left > 0);
        push->since_query = 0; /* nothing is left to ask for */
        push->query_owed  = false;
        push->timer_us    = 0;
    }
    else
    {
        SKY_ASSERT(push->on_way <= push->left);
        push->timer_us = now_us + push->peer->rto_us;
    }
}

void SKY_Push_OnPacket(SKY_Push_t *push, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (push->state != SKY_SHARE_RUNNING || !SKY_ShareCfg_Owns(&push->cfg, pkt))
    {
        return;
    }
    SKY_ASSERT(push->left > 0);
    push->unanswered = 0;
    if (pkt->op == SKY_OP_HAS && (pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND))
    {
        push_answered(push, now_us, pkt);
        return;
    }
    if (pkt->status == SKY_STATUS_OK)
    {
        return; /* a satellite answers a PUT only to refuse it */
    }
    push_refused(push, pkt->status, pkt->block_version);
}

/* Nothing came for long. All chunks may be there and only the answer lost, so ask before sending again. */
static void push_silence(SKY_Push_t *push, uint64_t now_us)
{
    SKY_ASSERT(push->on_way > 0); /* a push that has sent nothing waits for nothing */
    SKY_ASSERT(push->number != 0);
    SKY_Peer_OnTimeout(push->peer, now_us);
    for (uint32_t i = SKY_ChunkSet_Next(&push->unacked, 0); i < push->cfg.count; i = SKY_ChunkSet_Next(&push->unacked, i + 1))
    {
        if (push_on_way(push, i) && is_since(push->number, push->asked_by[i]))
        {
            push_doubt(push, i);
        }
    }
    ++push->unanswered;
    push->query_due = true;
    push->timed     = 0;
    push->timer_us  = now_us + push->peer->rto_us;
    SKY_ASSERT(push->timer_us > now_us);
    SKY_ASSERT(push->query_due);
    SKY_ASSERT(push->unanswered > 0);
}

uint64_t SKY_Push_OnTime(SKY_Push_t *push, uint64_t now_us)
{
    if (push->state != SKY_SHARE_RUNNING)
    {
        return UINT64_MAX;
    }
    if (now_us >= push->cfg.deadline_us)
    {
        push_end(push, SKY_SHARE_EXPIRED);
        return UINT64_MAX;
    }
    SKY_ASSERT(push->left > 0);
    SKY_ASSERT(push->timer_us == 0 || push->on_way > 0);
    if (push->timer_us != 0 && now_us >= push->timer_us)
    {
        push_silence(push, now_us);
    }
    push_assert(push);
    return push->timer_us != 0 && push->timer_us < push->cfg.deadline_us ? push->timer_us : push->cfg.deadline_us;
}

void SKY_Push_Stop(SKY_Push_t *push, SKY_ShareState_t state)
{
    SKY_ASSERT(state != SKY_SHARE_RUNNING);
    if (push->state == SKY_SHARE_RUNNING)
    {
        push_end(push, state);
    }
    SKY_ASSERT(push->on_way == 0);
    SKY_ASSERT(push->state != SKY_SHARE_RUNNING);
}
