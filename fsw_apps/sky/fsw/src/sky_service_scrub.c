/**
 * @file
 * Scrub: the periodic clean-up of incomplete blocks (paper, section 3.9). It finds broken blocks that nobody asks for, and of
 * which no gossip tells.
 *
 * A satellite looks at one block after the other, all of them once in a period. The ids of a block's chunks show which share it
 * has. If that is whole, it asks the server of the next share by HAS whether that one is, so every share is asked about by
 * one satellite. A missing share is thus found by one neighbour in the ring of shares, which purges what it holds and spreads
 * the word; without gossip the next one in the ring finds that out.
 *
 * To purge a whole block would be worse than to keep a broken one. So a block is purged only when it was found broken twice, a
 * period apart, in the same row of the schedule, and no chunk of it came or went here in between. Blocks that are being put, that
 * lie for a later row, or that do not belong here now are left alone. An answer that does not come says nothing. A satellite that
 * is moving its share away denies that it holds any of it, though it knows the block: that says nothing either. Nor does the
 * answer of a satellite that holds nothing of the block and is in another row, by its clock or its schedule, or in none. A
 * share of another version or content is none of this block. A missing share may also be late: a block is purged when no satellite
 * has anything left to hand over (sky_service_survey.c).
 *
 * A block with parity is not purged by the scrub. Whatever the next server says or does not say, unless its share is whole there, a
 * census of all servers is due the second time, in whichever row (sky_service_census.c). Without a schedule, but with a window, the scrub
 * looks at such blocks alone. Silence counts here because it hides the shares that the silent satellite would ask about.
 */
#include "sky_service_scrub.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_gossip.h"
#include "sky_service_home.h"
#include "sky_service_survey.h"
#include "sky_spread.h"

#define US_PER_MS   1000u
#define PATIENCE_US 1000000u /* time to wait for an answer */
#define PAUSE_US    10000u   /* least time between two looks */

void SKY_Scrub_Reset(SKY_Scrub_t *scrub)
{
    scrub->state = SKY_SCRUB_IDLE;
    scrub->row   = SKY_SCHEDULE_NONE;
}

static uint64_t period_us(const SKY_ServiceCore_t *core)
{
    return (uint64_t)core->cfg.scrub_period_ms * US_PER_MS;
}

/* Return the time to look at the next block, so that all have their turn in just over a period. There is at least one. */
static uint64_t pause_end_us(const SKY_ServiceCore_t *core, uint64_t look_us)
{
    SKY_ASSERT(core->store->counters.blocks > 0);
    const uint64_t share_us = period_us(core) / core->store->counters.blocks + 1u;
    SKY_ASSERT(core->store->counters.blocks <= core->store->counters.chunks);

    return look_us + (share_us > PAUSE_US ? share_us : PAUSE_US);
}

/* Look sooner if the store holds more blocks than at the last look. One that fills from empty would wait for a period else. */
static void keep_up(const SKY_ServiceCore_t *core, SKY_Scrub_t *scrub)
{
    const uint64_t end_us = pause_end_us(core, scrub->look_us);

    SKY_ASSERT(core->store->counters.blocks > scrub->blocks);
    scrub->blocks  = core->store->counters.blocks;
    scrub->rest_us = end_us < scrub->rest_us ? end_us : scrub->rest_us;
    if (scrub->state != SKY_SCRUB_ASK && scrub->state != SKY_SCRUB_ASKED)
    {
        scrub->next_us = scrub->rest_us;
    }
    SKY_ASSERT(scrub->rest_us <= scrub->next_us);
}

/* Note that a share is not whole. The second time the block goes, unless it has parity: then the other shares may suffice, and a census is
 * due. */
static void suspect(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                    uint32_t block, const SKY_BlockInfo_t *info)
{
    SKY_ASSERT(info->held > 0);
    SKY_ASSERT(info->suspect_us <= now_us);
    SKY_ASSERT(block != SKY_STORE_NONE);
    if (info->suspect_us == 0 || (info->stripe.code_m == 0 && info->suspect_us < scrub->since_us))
    {
        SKY_Store_Suspect(core->store, block, now_us);
    }
    else if (now_us - info->suspect_us < period_us(core))
    {
        SKY_ASSERT(info->suspect_us > 0); /* found a moment ago */
    }
    else if (info->stripe.code_m > 0)
    {
        scrub->has_ripe = true;
    }
    else if (SKY_Survey_IsSettled(survey, scrub->row, scrub->look_us))
    {
        const SKY_StoreBounds_t bounds = {info->version, info->content, info->epoch};

        core->counters.scrubbed += SKY_Store_Purge(core->store, info->tenant, info->key, &bounds);
        SKY_Gossip_Begin(core, gossip, now_us, info);
    }
}

/* Count the chunks of a share: share, share + servers, ... below @p total. */
static uint32_t share_size(uint32_t share, uint32_t servers, uint32_t total)
{
    SKY_ASSERT(share < servers);
    SKY_ASSERT(share < total);
    SKY_ASSERT(servers >= 1);
    return (total - 1u - share) / servers + 1u;
}

/* Return the satellite that has a share of a block. */
static SKY_Addr_t home_of(const SKY_ServiceCore_t *core, const SKY_Scrub_t *scrub, const SKY_BlockInfo_t *info, uint32_t share)
{
    const SKY_Schedule_t *schedule = SKY_Home_Schedule(core);
    const uint32_t        servers  = schedule->placement.servers;
    SKY_ASSERT(share < servers);

    return SKY_Schedule_Server(schedule, scrub->row, SKY_Spread_Server(info->key, info->stripe.chunk_total, servers, share));
}

static void ask(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, const SKY_BlockInfo_t *info, uint32_t share, uint32_t servers)
{
    const uint32_t size = share_size(share, servers, info->stripe.chunk_total);
    SKY_ChunkSet_t set;

    scrub->count = size < SKY_LIMIT_CHUNK_SET ? size : SKY_LIMIT_CHUNK_SET; /* one question names no more chunks */
    (void)SKY_ChunkSet_Init(&set, share, servers, scrub->count);            /* all ids are below the total */
    for (uint32_t i = 0; i < scrub->count; ++i)
    {
        SKY_ChunkSet_Add(&set, i);
    }
    scrub->payload_len = (uint32_t)SKY_ChunkSet_Encode(&set, scrub->payload, sizeof(scrub->payload));
    SKY_ASSERT(scrub->payload_len > 0);
    scrub->base   = share;
    scrub->tenant = info->tenant;
    (void)memcpy(scrub->key, info->key, SKY_KEY_BYTES);
    scrub->server     = home_of(core, scrub, info, share);
    scrub->request_id = SKY_ServiceCore_TakeIds(core);
    scrub->state      = SKY_SCRUB_ASK;
    SKY_ASSERT((uint64_t)share + (uint64_t)(scrub->count - 1u) * servers < info->stripe.chunk_total);
    SKY_ASSERT(scrub->count >= 1);
    SKY_ASSERT(scrub->count <= SKY_LIMIT_CHUNK_SET);
    SKY_ASSERT(!SKY_Addr_Equal(scrub->server, core->cfg.self)); /* the satellite asks another one */
}

static void look(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us)
{
    const uint32_t  servers = SKY_Home_Schedule(core)->placement.servers;
    SKY_BlockInfo_t info;

    if (!SKY_Store_NextBlock(core->store, &scrub->cursor, &info))
    {
        scrub->cursor = 0;
        if (!SKY_Store_NextBlock(core->store, &scrub->cursor, &info))
        {
            return; /* no block has a complete chunk */
        }
    }
    const uint32_t block = SKY_Store_Find(core->store, info.tenant, info.key);
    const uint32_t share = SKY_Store_NextChunk(core->store, block, 0) % servers;
    SKY_ASSERT(share < servers);
    SKY_ASSERT(info.held <= info.stripe.chunk_total);
    SKY_ASSERT(block != SKY_STORE_NONE);
    SKY_ASSERT(info.held > 0);
    if (now_us < info.put_until_us || info.epoch > scrub->row || (core->schedule == NULL && info.stripe.code_m == 0) ||
        !SKY_Addr_Equal(home_of(core, scrub, &info, share), core->cfg.self))
    {
        return;
    }
    if (info.held < share_size(share, servers, info.stripe.chunk_total))
    {
        suspect(core, scrub, gossip, survey, now_us, block, &info);
        return;
    }
    const uint32_t sharing = servers < info.stripe.chunk_total ? servers : info.stripe.chunk_total;
    if (sharing > 1u)
    {
        ask(core, scrub, &info, (share + 1u) % sharing, servers);
    }
}

/* Note that the next server was silent. Whatever its share, of a block with parity others may be lost, about which nobody else asks who can. */
static void note_silence(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us)
{
    const uint32_t  block = SKY_Store_Find(core->store, scrub->tenant, scrub->key);
    SKY_BlockInfo_t info;

    if (SKY_Store_Block(core->store, block, &info) == SKY_STATUS_OK && info.stripe.code_m > 0 && now_us >= info.put_until_us)
    {
        suspect(core, scrub, gossip, survey, now_us, block, &info);
    }
    SKY_ASSERT(scrub->state == SKY_SCRUB_ASKED || scrub->state == SKY_SCRUB_SILENT);
}

uint64_t SKY_Scrub_OnTime(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey,
                          uint64_t now_us)
{
    if (core->cfg.scrub_period_ms == 0 || SKY_Home_Schedule(core) == NULL || core->store->counters.blocks == 0)
    {
        scrub->state = SKY_SCRUB_IDLE;
        return UINT64_MAX;
    }
    if (now_us < scrub->next_us && core->store->counters.blocks > scrub->blocks)
    {
        keep_up(core, scrub);
    }
    if (now_us >= scrub->next_us)
    {
        const uint32_t row = SKY_Schedule_RowAt(SKY_Home_Schedule(core), now_us);

        if (row == scrub->row && (scrub->state == SKY_SCRUB_ASKED || scrub->state == SKY_SCRUB_SILENT))
        {
            note_silence(core, scrub, gossip, survey, now_us);
        }
        scrub->since_us = row == scrub->row ? scrub->since_us : now_us;
        scrub->row      = row;
        scrub->look_us  = now_us;
        scrub->blocks   = core->store->counters.blocks;
        scrub->rest_us  = pause_end_us(core, now_us);
        scrub->next_us  = scrub->rest_us;
        scrub->state    = SKY_SCRUB_IDLE; /* an answer that has not come is late */
        SKY_ASSERT(scrub->next_us > now_us);
        SKY_ASSERT(scrub->since_us <= now_us);
        look(core, scrub, gossip, survey, now_us);
        if (scrub->state == SKY_SCRUB_ASK && scrub->next_us < now_us + PATIENCE_US)
        {
            scrub->next_us = now_us + PATIENCE_US;
        }
    }
    SKY_ASSERT(scrub->next_us >= scrub->rest_us);
    return scrub->next_us;
}

bool SKY_Scrub_Next(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t pkt;

    if (scrub->state != SKY_SCRUB_ASK)
    {
        return false;
    }
    SKY_ASSERT(scrub->count >= 1);
    SKY_ASSERT(scrub->payload_len > 0);
    SKY_ASSERT(scrub->payload_len <= sizeof(scrub->payload));
    SKY_ASSERT(scrub->row != SKY_SCHEDULE_NONE);
    scrub->state = SKY_SCRUB_ASKED;
    SKY_ServiceCore_Request(core, SKY_OP_HAS, scrub->server, scrub->request_id, &pkt);
    (void)memcpy(pkt.key, scrub->key, SKY_KEY_BYTES);
    pkt.tenant   = scrub->tenant;
    pkt.chunk_id = scrub->base;
    pkt.length   = scrub->payload_len;
    pkt.payload  = scrub->payload;
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    return true;
}

void SKY_Scrub_Unreachable(SKY_Scrub_t *scrub, SKY_Addr_t dst)
{
    SKY_ASSERT(scrub->state != SKY_SCRUB_ASKED || scrub->count >= 1);
    if (scrub->state == SKY_SCRUB_ASKED && SKY_Addr_Equal(scrub->server, dst))
    {
        scrub->state   = SKY_SCRUB_SILENT;
        scrub->next_us = scrub->rest_us;
    }
    SKY_ASSERT(scrub->rest_us <= scrub->next_us);
}

/* Take in the answer of the next server about its share. */
static void judge(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                  const SKY_Packet_t *pkt)
{
    const uint32_t  block = SKY_Store_Find(core->store, pkt->tenant, pkt->key);
    uint32_t        held  = 0;
    SKY_BlockInfo_t info;
    SKY_ChunkSet_t  set;

    if (SKY_Store_Block(core->store, block, &info) != SKY_STATUS_OK || now_us < info.put_until_us || info.epoch > scrub->row)
    {
        return; /* the block is gone, or was put or prefetched for a later row meanwhile */
    }
    const bool is_other = pkt->status == SKY_STATUS_OK && (pkt->block_version != info.version || pkt->content != info.content);
    if (!is_other && pkt->status == SKY_STATUS_OK && SKY_ChunkSet_Decode(pkt, &set) == SKY_STATUS_OK)
    {
        held = SKY_ChunkSet_Size(&set);
    }
    SKY_ASSERT(scrub->count >= 1);
    SKY_ASSERT(info.held > 0);
    SKY_ASSERT(held <= SKY_LIMIT_CHUNK_SET);
    if (held >= scrub->count)
    {
        SKY_Store_Suspect(core->store, block, 0);
    }
    else if (info.stripe.code_m > 0 || is_other || held > 0 || (pkt->status == SKY_STATUS_NOT_FOUND && pkt->epoch == scrub->row))
    {
        suspect(core, scrub, gossip, survey, now_us, block, &info);
    }
}

bool SKY_Scrub_Response(SKY_ServiceCore_t *core, SKY_Scrub_t *scrub, SKY_Gossip_t *gossip, SKY_Survey_t *survey, uint64_t now_us,
                        const SKY_Packet_t *pkt)
{
    if (scrub->state != SKY_SCRUB_ASKED || pkt->request_id != scrub->request_id || pkt->tenant != scrub->tenant ||
        memcmp(pkt->key, scrub->key, SKY_KEY_BYTES) != 0)
    {
        return false;
    }
    SKY_ASSERT(SKY_Home_Schedule(core) != NULL); /* else nothing is asked */
    SKY_ASSERT(scrub->row != SKY_SCHEDULE_NONE);
    SKY_ASSERT(scrub->payload_len > 0);
    scrub->state   = SKY_SCRUB_IDLE;
    scrub->next_us = scrub->rest_us;
    /* Other satellites on the way may say why the question did not get there. If the row has changed, the wrong satellite was
     * asked. */
    if (pkt->op == SKY_OP_HAS && SKY_Addr_Equal(pkt->src, scrub->server) &&
        SKY_Schedule_RowAt(SKY_Home_Schedule(core), now_us) == scrub->row)
    {
        judge(core, scrub, gossip, survey, now_us, pkt);
    }
    else
    {
        scrub->state = SKY_SCRUB_SILENT;
    }
    return true;
}
