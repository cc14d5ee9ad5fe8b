/**
 * @file
 * Repair: rebuilds one lost chunk of a block with parity. As many other chunks of its row as suffice are fetched one after another. Each is
 * checked, weighted and added to a sum, so a row of any length takes two slots of memory: one for the chunk that comes, one for the sum.
 *
 * The rebuilt chunk is put into its home by the schedule, with the flag FREE: a repair evicts nothing. A chunk of this satellite's own
 * goes into its own store. Window and timers are those of a push of one chunk (sky_push.c).
 */
#include "sky_service_repair.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_code.h"
#include "sky_crc.h"
#include "sky_defaults.h"
#include "sky_service_core.h"
#include "sky_service_home.h"
#include "sky_spread.h"

#define PATIENCE_US    1000000u /* time to wait for an answer */
#define TRIES          2u       /* questions to a source */
#define DELIVER_US     5000000u /* time that the home has to take the chunk */
#define LOOK_US        100000u  /* between two looks at a delivery, whose timers begin after the look before */
#define RTO_INITIAL_US 250000u
#define RTO_MIN_US     50000u
#define RTO_MAX_US     1000000u

static uint8_t *sum_of(const SKY_ServiceCore_t *core)
{
    SKY_ASSERT(SKY_STORE_SPARES >= 2u);
    return core->store->spare;
}

static uint8_t *inbox_of(const SKY_ServiceCore_t *core)
{
    SKY_ASSERT(core->store->cfg.slot_bytes >= 1);
    return core->store->spare + core->store->cfg.slot_bytes;
}

bool SKY_Repair_GoesOn(const SKY_Repair_t *repair)
{
    SKY_ASSERT(repair->added <= repair->needed);
    return repair->state >= SKY_REPAIR_ASK && repair->state <= SKY_REPAIR_DELIVER;
}

void SKY_Repair_Stop(SKY_Repair_t *repair)
{
    if (repair->state == SKY_REPAIR_DELIVER)
    {
        SKY_Push_Stop(&repair->push, SKY_SHARE_EXPIRED);
    }
    repair->state   = SKY_REPAIR_IDLE;
    repair->cutting = false;
    SKY_ASSERT(!SKY_Repair_GoesOn(repair));
}

/* ---- gathering ---------------------------------------------------------------------------------------------------- */

static uint32_t source_id(const SKY_Repair_t *repair)
{
    SKY_ASSERT(repair->added < repair->needed);
    SKY_ASSERT(repair->first + repair->have[repair->added] < repair->share.stripe.chunk_total);
    return repair->first + repair->have[repair->added];
}

/* Return the satellite at which a chunk of the block belongs. */
static SKY_Addr_t home_of(const SKY_ServiceCore_t *core, const SKY_Repair_t *repair, uint32_t id)
{
    const SKY_Schedule_t *schedule = SKY_Home_Schedule(core);
    const SKY_ShareCfg_t *share    = &repair->share;
    const uint32_t        servers  = schedule->placement.servers;
    SKY_ASSERT(id < share->stripe.chunk_total);

    return SKY_Schedule_Server(schedule, repair->row, SKY_Spread_Server(share->key, share->stripe.chunk_total, servers, id));
}

/* Add the chunk of the source at hand to the sum. Bytes behind the end of the lost chunk do not count. */
static void add(SKY_ServiceCore_t *core, SKY_Repair_t *repair, const uint8_t *chunk, uint32_t len)
{
    SKY_ASSERT(repair->added < repair->needed);
    SKY_ASSERT(repair->len <= core->store->cfg.slot_bytes);
    SKY_ASSERT(len <= core->store->cfg.slot_bytes);
    SKY_Code_Add(sum_of(core), chunk, len < repair->len ? len : repair->len, repair->weights[repair->added]);
    ++repair->added;
}

/* Add a chunk that is held here. */
static void add_own(SKY_ServiceCore_t *core, SKY_Repair_t *repair)
{
    const SKY_ShareCfg_t *share = &repair->share;
    const uint32_t        block = SKY_Store_FindInstance(core->store, share->tenant, share->key, share->version, share->content);
    SKY_ChunkView_t       chunk = {.len = 0};

    if (SKY_Store_Peek(core->store, block, source_id(repair), &chunk) != SKY_STATUS_OK ||
        SKY_Crc32c(0, chunk.data, chunk.len) != chunk.crc32c)
    {
        repair->state = SKY_REPAIR_NO_CHUNK;
        return;
    }
    SKY_ASSERT(chunk.len >= 1);
    SKY_ASSERT(chunk.len <= core->store->cfg.slot_bytes);
    add(core, repair, chunk.data, chunk.len);
}

/* End a repair whose home has taken the chunk, or said something else. */
static void end_at_home(SKY_Repair_t *repair, bool is_taken, SKY_Status_t said)
{
    const bool is_full = said == SKY_STATUS_STORE_FULL;
    SKY_ASSERT(repair->added == repair->needed);

    repair->state   = is_taken ? SKY_REPAIR_DONE : is_full ? SKY_REPAIR_FULL : SKY_REPAIR_NO_HOME;
    repair->cutting = false;
    SKY_ASSERT(!SKY_Repair_GoesOn(repair));
}

/* Put the rebuilt chunk into the store here, its home. Nobody waits for other chunks of it. */
static void keep(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, SKY_Packet_t *pkt)
{
    SKY_ASSERT(SKY_Addr_Equal(repair->peer.addr, core->cfg.self));
    SKY_ASSERT((pkt->flags & SKY_FLAG_FREE) != 0);
    pkt->length        = repair->len;
    pkt->payload       = sum_of(core);
    pkt->payload_crc16 = SKY_Crc16(0, pkt->payload, pkt->length);

    const SKY_Status_t status = SKY_Store_Put(core->store, now_us, pkt);

    end_at_home(repair, status == SKY_STATUS_OK, status);
    SKY_ASSERT(core->store->evicted_count == 0); /* a repair evicts nothing */
}

/* Bring the rebuilt chunk home. */
static void deliver(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us)
{
    const SKY_PeerCfg_t peer = {.window_initial = 1,
                                .window_max     = 1,
                                .burst          = 1,
                                .rto_initial_us = RTO_INITIAL_US,
                                .rto_min_us     = RTO_MIN_US,
                                .rto_max_us     = RTO_MAX_US};
    SKY_ASSERT(repair->added == repair->needed);
    SKY_ASSERT(repair->len >= 1);

    SKY_Peer_Init(&repair->peer, &peer, home_of(core, repair, repair->share.base));
    repair->crc32c            = SKY_Crc32c(0, sum_of(core), repair->len);
    repair->share.deadline_us = now_us + DELIVER_US;
    repair->share.request_id  = SKY_ServiceCore_TakeIds(core);
    repair->cutting           = false;
    if (SKY_Addr_Equal(repair->peer.addr, core->cfg.self))
    {
        SKY_ShareCfg_Request(&repair->share, &repair->peer, now_us, SKY_OP_PUT, 0, &repair->request);
        repair->request.flags     = SKY_FLAG_FREE;
        repair->request.chunk_id  = repair->share.base;
        repair->request.chunk_len = repair->len;
        repair->request.chunk_crc = repair->crc32c;
        keep(core, repair, now_us, &repair->request);
        return;
    }
    SKY_ASSERT(SKY_ShareCfg_Check(&repair->share));
    (void)SKY_Push_Init(&repair->push, &repair->share, &repair->peer, repair->asked_by); /* a held block has sound numbers */
    repair->state = SKY_REPAIR_DELIVER;
    SKY_ASSERT(repair->push.state == SKY_SHARE_RUNNING);
}

/* Ask for the chunk of the source at hand, once more. */
static void ask(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us)
{
    repair->state      = SKY_REPAIR_ASK;
    repair->until_us   = now_us + PATIENCE_US;
    repair->request_id = SKY_ServiceCore_TakeIds(core);
    repair->asked      = 0;
    (void)memset(&repair->parts, 0, sizeof(repair->parts));
    SKY_ASSERT(!SKY_Addr_Equal(repair->at, core->cfg.self));
    SKY_ASSERT(repair->until_us > now_us);
    SKY_ASSERT(repair->added < repair->needed);
}

/* Go on to the next source, or with the last one added bring the chunk home. */
static void go_on(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us)
{
    bool is_own = true;

    while (is_own && repair->added < repair->needed && repair->state != SKY_REPAIR_NO_CHUNK)
    {
        repair->at = home_of(core, repair, source_id(repair));
        is_own     = SKY_Addr_Equal(repair->at, core->cfg.self);
        if (is_own)
        {
            add_own(core, repair);
        }
    }
    SKY_ASSERT(repair->added <= repair->needed);
    SKY_ASSERT(is_own || repair->added < repair->needed);
    if (!is_own)
    {
        ask(core, repair, now_us);
    }
    else if (repair->state != SKY_REPAIR_NO_CHUNK)
    {
        deliver(core, repair, now_us);
    }
}

void SKY_Repair_Begin(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, const SKY_BlockInfo_t *block, uint32_t row,
                      uint32_t id, const uint8_t *have)
{
    const SKY_StripeRow_t of    = SKY_Stripe_Row(&block->stripe, SKY_Stripe_RowOf(&block->stripe, id));
    const SKY_CodeRow_t   code  = {(uint8_t)of.data, (uint8_t)of.parity};
    SKY_ShareCfg_t       *share = &repair->share;
    SKY_ASSERT(!SKY_Repair_GoesOn(repair));
    SKY_ASSERT(of.parity >= 1);

    (void)memset(repair, 0, sizeof(*repair));
    share->self         = core->cfg.self;
    share->tenant       = block->tenant;
    share->epoch        = block->epoch;
    share->track        = block->track;
    share->content      = block->content;
    share->version      = block->version;
    share->stripe       = block->stripe;
    share->base         = id;
    share->stride       = 1;
    share->count        = 1;
    share->packet_bytes = core->cfg.packet_bytes;
    (void)memcpy(share->key, block->key, SKY_KEY_BYTES);
    repair->row    = row;
    repair->len    = SKY_Stripe_ChunkBytes(&block->stripe, id);
    repair->first  = of.first;
    repair->needed = of.data;
    (void)memcpy(repair->have, have, of.data);
    (void)memset(sum_of(core), 0, repair->len);
    SKY_ASSERT(repair->len <= core->store->cfg.slot_bytes);
    const bool has_weights = SKY_Code_Weights(code, (uint8_t)(id - of.first), have, repair->weights);
    SKY_ASSERT(has_weights); /* the places are different ones of the row */
    go_on(core, repair, now_us);
}

/* ---- out ---------------------------------------------------------------------------------------------------------- */

void SKY_Repair_Pull(SKY_Repair_t *repair)
{
    SKY_ASSERT(!repair->cutting || repair->state == SKY_REPAIR_DELIVER);
    repair->cutting = false; /* the rest of the chunk counts as lost and is sent again */
}

static void next_question(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, SKY_Out_t *out)
{
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;
    SKY_ASSERT(repair->asked < TRIES);
    SKY_ASSERT(repair->state == SKY_REPAIR_ASK);

    (void)SKY_ChunkSet_Init(&set, source_id(repair), 1, 1); /* one chunk is never too many */
    SKY_ChunkSet_Add(&set, 0);
    SKY_ServiceCore_Request(core, SKY_OP_GET, repair->at, repair->request_id, &pkt);
    (void)memcpy(pkt.key, repair->share.key, SKY_KEY_BYTES);
    pkt.tenant        = repair->share.tenant;
    pkt.block_version = repair->share.version;
    pkt.content       = repair->share.content;
    pkt.credit        = 1;
    pkt.chunk_id      = set.base;
    pkt.length        = (uint32_t)SKY_ChunkSet_Encode(&set, repair->payload, sizeof(repair->payload));
    pkt.payload       = repair->payload;
    SKY_ASSERT(pkt.length > 0);
    ++repair->asked;
    repair->state = SKY_REPAIR_ASKED;
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
}

/* Make the next packet of the delivery. */
static bool next_part(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t *req = &repair->request;
    SKY_ASSERT(repair->state == SKY_REPAIR_DELIVER);
    SKY_ASSERT(repair->added == repair->needed);

    if (!repair->cutting)
    {
        const SKY_PushAction_t action = SKY_Push_Next(&repair->push, now_us, 1, req, repair->payload);

        if (action == SKY_PUSH_NOTHING)
        {
            return false;
        }
        repair->cutting     = action == SKY_PUSH_CHUNK;
        repair->part_offset = 0;
    }
    if (repair->cutting)
    {
        SKY_ASSERT(req->chunk_len == repair->len);
        SKY_ASSERT(repair->part_offset < repair->len);
        req->flags          = SKY_FLAG_FREE;
        req->chunk_crc      = repair->crc32c;
        repair->part_offset = SKY_Packet_CutPart(req, sum_of(core), repair->part_offset, core->cfg.packet_bytes);
        repair->cutting     = repair->part_offset < repair->len;
    }
    SKY_ServiceCore_Emit(core, now_us, req, NULL, out);
    return true;
}

bool SKY_Repair_Next(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, SKY_Out_t *out)
{
    if (repair->state == SKY_REPAIR_ASK)
    {
        next_question(core, repair, now_us, out);
        return true;
    }
    SKY_ASSERT(!repair->cutting || repair->state == SKY_REPAIR_DELIVER);
    return repair->state == SKY_REPAIR_DELIVER && next_part(core, repair, now_us, out);
}

/* ---- in and time -------------------------------------------------------------------------------------------------- */

/* Return true if a packet carries a part, or the whole, of the chunk that was asked for. */
static bool is_chunk(const SKY_ServiceCore_t *core, const SKY_Repair_t *repair, const SKY_Packet_t *pkt)
{
    const SKY_ShareCfg_t *share = &repair->share;
    SKY_Stripe_t          stripe;
    SKY_ASSERT(share->stripe.chunk_len <= core->store->cfg.slot_bytes); /* so is a chunk of an equal stripe */

    return SKY_Stripe_OfChunk(&stripe, pkt) && SKY_Stripe_Equal(&stripe, &share->stripe) && pkt->chunk_id == source_id(repair) &&
           pkt->block_version == share->version && pkt->content == share->content &&
           SKY_Parts_Check(pkt->chunk_len, pkt->offset, pkt->length);
}

/* Take in a part of a chunk. @return true if the chunk is complete */
static bool take_part(const SKY_ServiceCore_t *core, SKY_Repair_t *repair, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->offset + pkt->length <= core->store->cfg.slot_bytes);
    SKY_ASSERT(pkt->length >= 1);
    if (pkt->length < pkt->chunk_len && !SKY_Parts_Add(&repair->parts, pkt->chunk_len, pkt->offset, pkt->length))
    {
        return false; /* another link cuts the chunk in another way than before: the next question begins anew */
    }
    (void)memcpy(inbox_of(core) + pkt->offset, pkt->payload, pkt->length);
    return pkt->length == pkt->chunk_len || SKY_Parts_AllHere(&repair->parts);
}

static void take_chunk(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(repair->state == SKY_REPAIR_ASKED);
    if (!is_chunk(core, repair, pkt))
    {
        repair->state = SKY_REPAIR_NO_CHUNK;
        return;
    }
    if (!take_part(core, repair, pkt))
    {
        return;
    }
    if (SKY_Crc32c(0, inbox_of(core), pkt->chunk_len) != pkt->chunk_crc)
    {
        repair->state = SKY_REPAIR_NO_CHUNK;
        return;
    }
    add(core, repair, inbox_of(core), pkt->chunk_len);
    SKY_ASSERT(repair->added >= 1);
    go_on(core, repair, now_us);
}

/* Look whether the home has taken the chunk. */
static void follow_up(SKY_Repair_t *repair)
{
    SKY_ASSERT(repair->state == SKY_REPAIR_DELIVER);
    if (repair->push.state != SKY_SHARE_RUNNING)
    {
        end_at_home(repair, repair->push.state == SKY_SHARE_DONE, repair->push.last_status);
    }
}

static bool answers_question(const SKY_Repair_t *repair, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(!pkt->is_request);
    return repair->state == SKY_REPAIR_ASKED && pkt->request_id == repair->request_id && pkt->tenant == repair->share.tenant &&
           memcmp(pkt->key, repair->share.key, SKY_KEY_BYTES) == 0;
}

bool SKY_Repair_Response(SKY_ServiceCore_t *core, SKY_Repair_t *repair, uint64_t now_us, const SKY_Packet_t *pkt)
{
    if (answers_question(repair, pkt))
    {
        SKY_ASSERT(repair->asked >= 1);
        if (!SKY_Addr_Equal(pkt->src, repair->at))
        {
            repair->state = SKY_REPAIR_NO_SOURCE; /* a satellite on the way says why the question did not get there */
        }
        else if (pkt->op != SKY_OP_GET || pkt->status != SKY_STATUS_OK)
        {
            repair->state = SKY_REPAIR_NO_CHUNK;
        }
        else
        {
            take_chunk(core, repair, now_us, pkt);
        }
        return true;
    }
    if (repair->state != SKY_REPAIR_DELIVER || !SKY_ShareCfg_Owns(&repair->push.cfg, pkt) ||
        (pkt->status == SKY_STATUS_OK && !SKY_Addr_Equal(pkt->src, repair->peer.addr)))
    {
        return false;
    }
    SKY_ASSERT(repair->added == repair->needed);
    SKY_Push_OnPacket(&repair->push, now_us, pkt);
    follow_up(repair);
    return true;
}

void SKY_Repair_Unreachable(SKY_Repair_t *repair, SKY_Addr_t dst)
{
    SKY_ASSERT(repair->state != SKY_REPAIR_ASKED || repair->asked >= 1);
    if (repair->state == SKY_REPAIR_ASKED && SKY_Addr_Equal(repair->at, dst))
    {
        repair->state = SKY_REPAIR_NO_SOURCE;
    }
    else if (repair->state == SKY_REPAIR_DELIVER && SKY_Addr_Equal(repair->peer.addr, dst))
    {
        SKY_Push_Stop(&repair->push, SKY_SHARE_EXPIRED);
        follow_up(repair);
    }
}

uint64_t SKY_Repair_OnTime(SKY_Repair_t *repair, uint64_t now_us)
{
    SKY_ASSERT(repair->state != SKY_REPAIR_ASKED || repair->asked >= 1);
    if (repair->state == SKY_REPAIR_DELIVER)
    {
        const uint64_t push_us = SKY_Push_OnTime(&repair->push, now_us);
        const uint64_t look_us = now_us + LOOK_US;

        follow_up(repair);
        return push_us < look_us ? push_us : look_us;
    }
    if (!SKY_Repair_GoesOn(repair))
    {
        return UINT64_MAX;
    }
    SKY_ASSERT(repair->added < repair->needed);
    if (now_us >= repair->until_us)
    {
        repair->state    = repair->asked < TRIES ? SKY_REPAIR_ASK : SKY_REPAIR_NO_SOURCE;
        repair->until_us = now_us + PATIENCE_US;
        (void)memset(&repair->parts, 0, sizeof(repair->parts));
    }
    return repair->until_us;
}
