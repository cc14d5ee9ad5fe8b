/**
 * @file
 * The part of an operation that one satellite has to do with: the core's own two ends of a transfer, and a request that is repeated
 * until it is answered. What a host knows of a satellite (window, round trip) its shares there have in common.
 */
#include <string.h>

#include "twin_priv.h"

#define SHARE_OF_ID(id) ((uint32_t)((id) >> 16) & 0xFFFFu)

static SKYT_Active_t *active_of(const SKYT_Twin_t *twin, const SKYT_Share_t *share)
{
    return &twin->active[share->active];
}

static uint32_t kind_of(const SKYT_Twin_t *twin, const SKYT_Share_t *share)
{
    return active_of(twin, share)->kind;
}

SKY_ShareState_t SKYT_Share_State(const SKYT_Twin_t *twin, const SKYT_Share_t *share)
{
    switch (kind_of(twin, share))
    {
        case SKYT_OP_PUT:
            return share->u.push.state;
        case SKYT_OP_GET:
            return share->u.fetch.state;
        default:
            if (share->u.control.is_answered)
            {
                return SKY_SHARE_DONE;
            }
            return twin->now_us >= active_of(twin, share)->deadline_us ? SKY_SHARE_EXPIRED : SKY_SHARE_RUNNING;
    }
}

/* ---- begin and end --------------------------------------------------------------------------------------------------- */

static void describe(SKYT_Twin_t *twin, const SKYT_Share_t *share, SKY_ShareCfg_t *cfg)
{
    const SKYT_Active_t *active = active_of(twin, share);
    const uint32_t       total  = SKYT_Content_Total(twin, active->block);

    (void)memset(cfg, 0, sizeof(*cfg));
    cfg->self.slot    = (uint16_t)active->host;
    cfg->gateway      = SKYT_AddrOf(twin, share->entry);
    cfg->tenant       = SKYT_Content_Tenant(twin, active->block);
    cfg->epoch        = twin->blocks[active->block].epoch;
    cfg->chunk_total  = total;
    cfg->chunk_len    = twin->config.chunk_bytes;
    cfg->block_len    = twin->blocks[active->block].block_len;
    cfg->base         = share->server;
    cfg->stride       = twin->config.servers;
    cfg->count        = (total - share->server - 1u) / twin->config.servers + 1u;
    cfg->packet_bytes = twin->config.packet_bytes;
    cfg->deadline_us  = active->deadline_us;
    cfg->request_id   = share->request_id;
    SKYT_Content_Key(twin, active->block, cfg->key);
}

static SKYT_Peer_t *peer_ready(SKYT_Twin_t *twin, uint32_t index, uint32_t node)
{
    const uint32_t      most = twin->config.credit > SKY_DEFAULT_WINDOW ? twin->config.credit : SKY_DEFAULT_WINDOW;
    const SKY_PeerCfg_t cfg  = SKY_PeerCfg_OfHost(most, twin->config.credit);
    SKYT_Peer_t        *peer = &twin->peers[index];

    if (!peer->is_ready)
    {
        SKY_Peer_Init(&peer->peer, &cfg, SKYT_AddrOf(twin, node));
        peer->first    = SKYT_NONE;
        peer->is_ready = true;
    }
    return peer;
}

void SKYT_Share_Begin(SKYT_Twin_t *twin, uint32_t index, uint32_t entry, const SKY_ChunkSet_t *wanted)
{
    SKYT_Share_t        *share  = &twin->shares[index];
    const SKYT_Active_t *active = active_of(twin, share);
    SKY_ShareCfg_t       cfg;

    share->is_active  = true;
    share->node       = SKYT_NodeOf(twin, share->places[share->place]);
    share->entry      = entry;
    share->peer       = (active->host - 1u) * twin->node_count + share->node;
    share->request_id = (uint64_t)++twin->lanes << 32 | (uint64_t)index << 16;
    SKYT_Peer_t *peer = peer_ready(twin, share->peer, share->node);
    share->prev       = SKYT_NONE;
    share->next       = peer->first;
    if (peer->first != SKYT_NONE)
    {
        twin->shares[peer->first].prev = index;
    }
    peer->first = index;
    describe(twin, share, &cfg);
    switch (active->kind)
    {
        case SKYT_OP_PUT:
            (void)SKY_Push_Init(&share->u.push, &cfg, &peer->peer,
                                share->asked_by); /* numbers that were checked when the block was added */
            break;
        case SKYT_OP_GET:
            (void)SKY_Fetch_Init(&share->u.fetch, &cfg, &peer->peer, active->buffer);
            SKY_Fetch_Collect(&share->u.fetch);
            for (uint32_t i = 0; wanted != NULL && i < cfg.count; ++i)
            {
                if (!SKY_ChunkSet_Has(wanted, i))
                {
                    SKY_Fetch_Skip(&share->u.fetch, i);
                }
            }
            break;
        default:
            (void)memset(&share->u.control, 0, sizeof(share->u.control));
            share->u.control.rto_us = SKY_HOST_ASK_INITIAL_US;
            break;
    }
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfShare(twin, index), twin->now_us);
}

void SKYT_Share_End(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Share_t *share = &twin->shares[index];
    SKYT_Peer_t  *peer  = &twin->peers[share->peer];

    if (kind_of(twin, share) == SKYT_OP_PUT)
    {
        SKY_Push_Stop(&share->u.push, SKY_SHARE_EXPIRED);
    }
    else if (kind_of(twin, share) == SKYT_OP_GET)
    {
        SKY_Fetch_Stop(&share->u.fetch, SKY_SHARE_EXPIRED);
    }
    if (share->prev == SKYT_NONE)
    {
        peer->first = share->next;
    }
    else
    {
        twin->shares[share->prev].next = share->next;
    }
    if (share->next != SKYT_NONE)
    {
        twin->shares[share->next].prev = share->prev;
    }
    share->is_active = false;
    SKYT_Queue_Remove(&twin->queue, SKYT_EventOfShare(twin, index));
    if (peer->first != SKYT_NONE) /* the others may have room now */
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfShare(twin, peer->first), twin->now_us);
    }
}

/* ---- sending --------------------------------------------------------------------------------------------------------- */

static void send_packet(SKYT_Twin_t *twin, const SKYT_Share_t *share, SKY_Packet_t *pkt)
{
    uint8_t head[SKY_HEAD_MAX];
    uint8_t tail[SKY_PEC_BYTES];

    pkt->seq_count  = twin->seq_count;
    twin->seq_count = (uint16_t)((twin->seq_count + 1u) & SKY_SEQ_COUNT_MASK);

    const uint32_t     head_len = (uint32_t)SKY_Packet_EncodeAround(pkt, NULL, head, tail);
    const SKYT_Parts_t parts    = {head, pkt->payload, tail, head_len, pkt->length, SKY_PEC_BYTES, SKYT_NONE};

    SKYT_Network_Send(twin, twin->now_us, share->entry, SKYT_LINK_UP, (uint16_t)active_of(twin, share)->host, &parts);
}

static void send_chunk(SKYT_Twin_t *twin, const SKYT_Share_t *share, SKY_Packet_t *pkt)
{
    uint32_t at = 0;

    SKYT_Content_Chunk(active_of(twin, share)->block, pkt->chunk_id, twin->scratch, pkt->chunk_len);
    pkt->chunk_crc = SKY_Crc32c(0, twin->scratch, pkt->chunk_len);
    do
    {
        at = SKY_Packet_CutPart(pkt, twin->scratch, at, twin->config.packet_bytes);
        send_packet(twin, share, pkt);
    } while (at < pkt->chunk_len);
}

static void run_put(SKYT_Twin_t *twin, SKYT_Share_t *share)
{
    uint8_t          payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Packet_t     pkt;
    SKY_PushAction_t action;

    while ((action = SKY_Push_Next(&share->u.push, twin->now_us, SKY_LIMIT_CHUNK_SET, &pkt, payload)) != SKY_PUSH_NOTHING)
    {
        if (action == SKY_PUSH_CHUNK)
        {
            send_chunk(twin, share, &pkt);
        }
        else
        {
            send_packet(twin, share, &pkt);
        }
    }
}

static void run_get(SKYT_Twin_t *twin, SKYT_Share_t *share)
{
    uint8_t      payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_Packet_t pkt;

    while (SKY_Fetch_Next(&share->u.fetch, twin->now_us, SKY_LIMIT_CHUNK_SET, &pkt, payload))
    {
        send_packet(twin, share, &pkt);
    }
}

/* @return when it wants to be called again */
static uint64_t run_control(SKYT_Twin_t *twin, SKYT_Share_t *share)
{
    SKYT_Control_t      *control = &share->u.control;
    const SKYT_Active_t *active  = active_of(twin, share);
    SKY_ShareCfg_t       cfg;
    SKY_Packet_t         pkt;

    if (!control->is_answered && twin->now_us >= control->due_us && twin->now_us < active->deadline_us)
    {
        describe(twin, share, &cfg);
        SKY_ShareCfg_Request(&cfg, &twin->peers[share->peer].peer, twin->now_us, SKY_OP_PURGE, ++control->number, &pkt);
        pkt.chunk_len = 0;
        send_packet(twin, share, &pkt);
        control->due_us = twin->now_us + control->rto_us;
        control->rto_us = control->rto_us < SKY_HOST_ASK_MAX_US / 2u ? control->rto_us * 2u : SKY_HOST_ASK_MAX_US;
    }
    return control->due_us < active->deadline_us ? control->due_us : active->deadline_us;
}

/* Timers act, what there is room for goes out. @return when to come back */
static uint64_t run_one(SKYT_Twin_t *twin, SKYT_Share_t *share)
{
    switch (kind_of(twin, share))
    {
        case SKYT_OP_PUT:
            (void)SKY_Push_OnTime(&share->u.push, twin->now_us);
            run_put(twin, share);
            return SKY_Push_OnTime(&share->u.push, twin->now_us);
        case SKYT_OP_GET:
            (void)SKY_Fetch_OnTime(&share->u.fetch, twin->now_us);
            run_get(twin, share);
            return SKY_Fetch_OnTime(&share->u.fetch, twin->now_us);
        default:
            return run_control(twin, share);
    }
}

void SKYT_Share_RunPeer(SKYT_Twin_t *twin, uint32_t peer)
{
    for (uint32_t index = twin->peers[peer].first; index != SKYT_NONE; index = twin->shares[index].next)
    {
        SKYT_Share_t  *share   = &twin->shares[index];
        const uint64_t next_us = run_one(twin, share);

        if (SKYT_Share_State(twin, share) != SKY_SHARE_RUNNING)
        {
            SKYT_Queue_Remove(&twin->queue, SKYT_EventOfShare(twin, index));
            if (!share->is_settled)
            {
                share->is_settled  = true;
                share->settle_next = twin->settle_first;
                twin->settle_first = index;
            }
        }
        else if (twin->broken != SKYT_BREAK_DEAF)
        {
            SKYT_Queue_Set(&twin->queue, SKYT_EventOfShare(twin, index), next_us);
        }
    }
    SKYT_Op_Settle(twin);
}

/* ---- receiving ------------------------------------------------------------------------------------------------------- */

static void take_chunk(SKYT_Twin_t *twin, SKYT_Share_t *share, const SKY_Packet_t *pkt)
{
    SKY_Fetch_t   *fetch = &share->u.fetch;
    const uint32_t index = SKY_ChunkSet_IndexOf(&fetch->missing, pkt->chunk_id);
    const bool     was   = SKY_ChunkSet_Has(&fetch->missing, index);

    SKY_Fetch_OnPacket(fetch, twin->now_us, pkt);
    if (was && !SKY_ChunkSet_Has(&fetch->missing, index) && !SKY_ChunkSet_Has(&fetch->denied, index))
    {
        SKYT_Check_Chunk(twin, active_of(twin, share), share->node, pkt->chunk_id);
    }
}

void SKYT_Share_Receive(SKYT_Twin_t *twin, uint16_t host, const uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;

    if (SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK)
    {
        ++twin->counters.damaged;
        return;
    }
    const uint32_t index = SHARE_OF_ID(pkt.request_id);

    if (index >= twin->config.active_max * twin->config.servers)
    {
        return;
    }
    SKYT_Share_t *share = &twin->shares[index];

    if (!share->is_active || share->request_id != (pkt.request_id & ~(uint64_t)0xFFFFu) || active_of(twin, share)->host != host)
    {
        return; /* nobody waits for it any more */
    }
    switch (kind_of(twin, share))
    {
        case SKYT_OP_PUT:
            SKY_Push_OnPacket(&share->u.push, twin->now_us, &pkt);
            break;
        case SKYT_OP_GET:
            take_chunk(twin, share, &pkt);
            break;
        default:
            share->u.control.is_answered = share->u.control.is_answered || !pkt.is_request;
            break;
    }
    SKYT_Share_RunPeer(twin, share->peer);
}
