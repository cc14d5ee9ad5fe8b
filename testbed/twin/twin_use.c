/**
 * @file
 * Duties of a store: the block that was used longest ago makes room, only when there is none left; and parts of a chunk are kept
 * as long as their PUT's deadline says, and no longer.
 *
 * This file notes when each block was used last, from the packets alone. A PUT that was refused may have counted as a use or not,
 * so there are two notes: the last use that is certain, and the last that is possible.
 */
#include <string.h>

#include "twin_priv.h"

#define SLOTS_OF_PUT    SKY_STORE_SLOTS_MIN /* that a put needs at most: for an entry, and a chunk */
#define TOUCH_US        UINT64_C(30000000)  /* no touch takes so long */
#define EXPIRE_SLACK_US (UINT64_C(10) * SKY_SERVICE_EXPIRE_US)

struct SKYT_Use
{
    uint64_t certain, possible; /* numbers of the last uses, over the whole run */
    uint64_t touched_us;        /* time at which a touch said first that it is used, and it was there */
    uint64_t touched;           /* number of that use */
    uint64_t sent_us;           /* time at which a host last had it sent away, for a row to come */
    uint64_t taken_us;          /* time at which a put of the block was last taken */
    uint64_t put_until_us;      /* deadline of that put, or time at which its parts are forgotten */
    uint64_t raised_us;         /* time at which the epoch was raised last, or at which the handover of that moment is over */
    uint32_t epoch;             /* largest epoch that a put has said since the block is here */
};

bool SKYT_Use_Init(SKYT_Twin_t *twin)
{
    twin->uses   = SKYT_Take(twin, (size_t)twin->node_count * (twin->block_count + 1u), sizeof(*twin->uses)); /* the last: junk */
    twin->owners = SKYT_Take(twin, twin->config.slot_count, sizeof(*twin->owners));
    return twin->uses != NULL && twin->owners != NULL;
}

static SKYT_Use_t *use_of(const SKYT_Twin_t *twin, uint32_t node, uint32_t tenant, const uint8_t *key)
{
    const uint32_t block = SKYT_Content_BlockOf(twin, tenant, key);

    return &twin->uses[(size_t)node * (twin->block_count + 1u) + (block != SKYT_NONE ? block : twin->block_count)];
}

static void note_use(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, bool is_certain)
{
    SKYT_Use_t *use = use_of(twin, node, pkt->tenant, pkt->key);

    use->possible = ++twin->use_count;
    if (is_certain && pkt->tenant != SKYT_JUNK_TENANT) /* the junk has one note, so nothing of it is certain */
    {
        use->certain = use->possible;
    }
}

static bool is_same(const SKY_BlockInfo_t *info, uint32_t tenant, const uint8_t *key)
{
    return info->tenant == tenant && memcmp(info->key, key, SKY_KEY_BYTES) == 0;
}

static bool has_quota(const SKYT_Twin_t *twin, uint32_t tenant)
{
    return twin->config.quota_most > 0 && tenant >= 1 && tenant <= twin->config.tenants;
}

/* Return true if blocks of one tenant may make room for those of the other. */
static bool share_quota(const SKYT_Twin_t *twin, uint32_t one, uint32_t other)
{
    return one == other || (!has_quota(twin, one) && !has_quota(twin, other));
}

/* Check that blocks have made room for the one of @p pkt, the first of them as the one that was used longest ago. The others of the
 * same slots went with it. */
static void check_evicted(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, uint32_t slots_before)
{
    const SKY_Store_t     *store  = &twin->nodes[node].store;
    const SKY_BlockInfo_t *first  = &store->evicted[0];
    const SKYT_Use_t      *went   = use_of(twin, node, first->tenant, first->key);
    const uint32_t         block  = SKYT_Content_BlockOf(twin, first->tenant, first->key);
    uint32_t               cursor = 0;
    SKY_BlockInfo_t        info;

    for (uint32_t i = 0; i < store->evicted_count; ++i)
    {
        if (!share_quota(twin, store->evicted[i].tenant, pkt->tenant))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_QUOTA, node, SKYT_NONE,
                            SKYT_Content_BlockOf(twin, store->evicted[i].tenant, store->evicted[i].key), SKYT_NONE,
                            "a block of another tenant was evicted for a put");
        }
    }
    if (slots_before + SLOTS_OF_PUT <= store->cfg.slot_count && twin->config.quota_most == 0)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_OLDEST, node, SKYT_NONE, block, SKYT_NONE,
                        "a block was evicted although there was room");
    }
    while (SKY_Store_NextBlock(store, &cursor, &info))
    {
        if (share_quota(twin, info.tenant, first->tenant) && !is_same(&info, pkt->tenant, pkt->key) &&
            went->certain > use_of(twin, node, info.tenant, info.key)->possible)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_OLDEST, node, SKYT_NONE, block, SKYT_NONE,
                            "a block was evicted although another one was used before it");
            return;
        }
    }
}

/* Count the blocks with complete chunks that could make room for the one of @p pkt. */
static uint32_t others_of(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    const SKY_Store_t *store  = &twin->nodes[node].store;
    uint32_t           cursor = 0, count = 0;
    SKY_BlockInfo_t    info;

    while (SKY_Store_NextBlock(store, &cursor, &info))
    {
        count += share_quota(twin, info.tenant, pkt->tenant) && !is_same(&info, pkt->tenant, pkt->key) ? 1u : 0u;
    }
    return count;
}

/* Count the slots in which complete chunks of a tenant lie. Each slot counts once, and belongs to one tenant. */
static uint32_t count_slots(SKYT_Twin_t *twin, uint32_t node, uint32_t tenant)
{
    SKY_Store_t    *store      = &twin->nodes[node].store;
    const size_t    slot_bytes = (size_t)store->slab.slot_units * SKY_SLAB_UNIT;
    uint32_t        cursor     = 0;
    uint32_t        count      = 0;
    SKY_BlockInfo_t info;

    (void)memset(twin->owners, 0, store->cfg.slot_count * sizeof(*twin->owners));
    while (SKY_Store_NextBlock(store, &cursor, &info))
    {
        uint32_t        at    = 0;
        uint32_t        chunk = 0;
        SKY_ChunkView_t view;

        while (SKY_Store_EachChunk(store, cursor - 1u, &at, &chunk))
        {
            if (SKY_Store_Peek(store, cursor - 1u, chunk, &view) != SKY_STATUS_OK)
            {
                continue;
            }
            uint32_t *owner = &twin->owners[(size_t)(view.data - store->slab.data) / slot_bytes];

            count += *owner == 0 && info.tenant == tenant ? 1u : 0u;
            if (*owner != 0 && *owner != info.tenant)
            {
                SKYT_Check_Fail(twin, SKYT_INVARIANT_QUOTA, node, SKYT_NONE, SKYT_Content_BlockOf(twin, info.tenant, info.key),
                                chunk, "chunks of two tenants lie in one slot");
            }
            *owner = info.tenant;
        }
    }
    return count;
}

/* Check after a put that its tenant has no more than its quota. Slots of complete chunks are counted. */
static void check_quota(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    const SKY_Store_t *store = &twin->nodes[node].store;
    const uint64_t     most  = ((uint64_t)store->cfg.slot_count * twin->config.quota_most + 99u) / SKY_STORE_PERCENT;

    if (count_slots(twin, node, pkt->tenant) > most)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_QUOTA, node, SKYT_NONE, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key),
                        pkt->chunk_id, "a tenant has more slots than its quota");
    }
}

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

/* Return the time for which parts of this PUT may be kept. */
static uint64_t lifetime_us(const SKYT_Twin_t *twin, const SKY_Packet_t *pkt)
{
    const uint32_t most_ms = twin->config.part_lifetime_ms;

    return (uint64_t)(pkt->deadline_ms != 0 && pkt->deadline_ms < most_ms ? pkt->deadline_ms : most_ms) * US_PER_MS;
}

static void note_lifetime(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    SKYT_Node_t    *here     = &twin->nodes[node];
    const uint64_t  until_us = twin->now_us + lifetime_us(twin, pkt);
    SKY_BlockInfo_t info;

    if (here->store.counters.partial > 0 && here->parts_from_us > until_us)
    {
        here->parts_from_us = until_us;
    }
    if (SKY_Store_Block(&here->store, SKY_Store_Find(&here->store, pkt->tenant, pkt->key), &info) == SKY_STATUS_OK &&
        (info.put_until_us < until_us || info.put_until_us > here->parts_until_us))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIFETIME, node, SKYT_NONE, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key),
                        pkt->chunk_id, "a satellite misreads the deadline of a put");
    }
}

/* Note the largest epoch that was told. A handover that goes on already ends as it began. */
static void raise_epoch(const SKYT_Twin_t *twin, SKYT_Use_t *use, uint32_t epoch, bool is_moving)
{
    if (epoch > use->epoch)
    {
        use->epoch = epoch;
        use->raised_us =
            is_moving ? SKY_Schedule_EndUs(&twin->schedule, SKY_Schedule_RowAt(&twin->schedule, twin->now_us)) : twin->now_us;
    }
}

/* Note a put that was taken. An epoch counts as long as the satellite knows the block. */
static void note_put(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before)
{
    SKYT_Use_t *use = use_of(twin, node, pkt->tenant, pkt->key);

    use->epoch = before->is_known && before->version == pkt->block_version ? use->epoch : 0; /* another version begins anew */
    raise_epoch(twin, use, pkt->epoch, before->is_moving);
    use->taken_us     = twin->now_us;
    use->put_until_us = twin->now_us + lifetime_us(twin, pkt);
}

static const SKYT_Use_t *use_at(const SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    return &twin->uses[(size_t)node * (twin->block_count + 1u) + block];
}

uint32_t SKYT_Use_Epoch(const SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    return use_at(twin, node, block)->epoch;
}

uint64_t SKYT_Use_PutUntil(const SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    return use_at(twin, node, block)->put_until_us;
}

uint64_t SKYT_Use_TakenUs(const SKYT_Twin_t *twin, uint32_t node, uint32_t block)
{
    return use_at(twin, node, block)->taken_us;
}

void SKYT_Use_Moved(SKYT_Twin_t *twin, const SKY_Packet_t *pkt)
{
    const uint32_t    from  = SKYT_NodeOf(twin, pkt->src);
    const uint32_t    block = SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key);
    const SKYT_Use_t *use   = use_of(twin, from, pkt->tenant, pkt->key);

    if (block != SKYT_NONE && twin->arriving != SKYT_NONE && use->raised_us < twin->packets[twin->arriving].began_us &&
        use->sent_us < use->raised_us && use->epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us) &&
        use->epoch <= twin->schedule.count &&
        pkt->epoch <= use->epoch && /* else a prefetch sent it on before that row was named */
        SKY_Addr_Equal(SKYT_Content_Home(twin, use->epoch, block, pkt->block_version, pkt->chunk_id), pkt->src))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_WAITS, from, SKYT_NONE, block, pkt->chunk_id,
                        "this satellite hands over a chunk that is prefetched for a later row");
    }
}

void SKYT_Use_Polled(SKYT_Twin_t *twin, uint32_t node, uint64_t expired_before)
{
    SKYT_Node_t       *here  = &twin->nodes[node];
    const SKY_Store_t *store = &here->store;
    const uint64_t     sweep = store->cfg.slot_count / SKY_SERVICE_EXPIRE_SLOTS + 1u;

    if (store->counters.expired_partial != expired_before && twin->now_us < here->parts_from_us)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIFETIME, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a satellite forgot a part of a chunk before its time");
    }
    if (store->counters.partial > 0 &&
        twin->now_us > here->parts_until_us + EXPIRE_SLACK_US + sweep * (uint64_t)SKY_SERVICE_EXPIRE_US)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIFETIME, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a satellite keeps a part of a chunk after its time");
        here->parts_until_us = twin->now_us; /* once is enough */
    }
    if (store->counters.partial == 0)
    {
        here->parts_from_us = UINT64_MAX;
    }
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

void SKYT_Use_Put(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before)
{
    SKYT_Node_t   *here      = &twin->nodes[node];
    const bool     taken     = here->service.core.counters.puts != before->puts;
    const uint64_t until     = twin->now_us + lifetime_us(twin, pkt);
    const bool     is_repair = (pkt->flags & SKY_FLAG_FREE) != 0; /* it evicts nothing, and is no use of a block that is here */
    const bool     full      = !taken && !is_repair && here->service.answer.reply.status == SKY_STATUS_STORE_FULL;

    if (here->store.counters.evicted_blocks != before->evicted)
    {
        check_evicted(twin, node, pkt, before->slots);
    }
    if (!is_repair || !before->is_known || before->version != pkt->block_version) /* of another version all is new */
    {
        note_use(twin, node, pkt, taken);
    }
    here->parts_until_us = here->parts_until_us > until ? here->parts_until_us : until;
    if (has_quota(twin, pkt->tenant))
    {
        check_quota(twin, node, pkt);
    }
    if (full && (twin->config.quota_most > 0 ? others_of(twin, node, pkt) > 0 : here->store.counters.blocks > 1u))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_OLDEST, node, SKYT_NONE, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key),
                        pkt->chunk_id, "a put was refused for want of room, although a block could have been evicted");
    }
    if (full && (twin->config.quota_most > 0 || pkt->src.plane != 0))
    {
        SKYT_Truth_NoRoom(twin, pkt);
    }
    if (taken)
    {
        note_put(twin, node, pkt, before);
        note_lifetime(twin, node, pkt);
    }
}

/* It counts only for the very version and content, and only if the satellite acts upon it, which its answer shows, if it wants one. */
void SKYT_Use_Word(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    const SKY_Store_t  *store = &twin->nodes[node].store;
    const SKY_Packet_t *reply = &twin->nodes[node].service.answer.reply;
    const uint32_t      block = SKY_Store_FindInstance(store, pkt->tenant, pkt->key, pkt->block_version, pkt->content);
    SKYT_Use_t         *use   = use_of(twin, node, pkt->tenant, pkt->key);
    const bool          is    = (pkt->flags & SKY_FLAG_ANY) != 0u && block != SKY_STORE_NONE && reply->op == SKY_OP_HAS &&
                    reply->status == SKY_STATUS_OK && !reply->is_request && reply->request_id == pkt->request_id;

    note_use(twin, node, pkt, is);
    if (is && twin->now_us - use->touched_us > TOUCH_US)
    {
        use->touched_us = twin->now_us; /* others of this touch are copies, or were sent again */
        use->touched    = use->possible;
    }
}

uint64_t SKYT_Use_Touched(const SKYT_Twin_t *twin, uint32_t node, uint32_t block, uint64_t since_us)
{
    const SKYT_Use_t *use = use_at(twin, node, block);

    return use->touched_us >= since_us ? use->touched : 0u;
}

void SKYT_Use_Prefetched(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before)
{
    const SKY_Packet_t *reply  = &twin->nodes[node].service.answer.reply;
    const uint8_t      *target = pkt->payload;

    if (pkt->length == SKY_MIGRATE_BYTES && reply->status == SKY_STATUS_OK && reply->op == SKY_OP_MIGRATE && !reply->is_request)
    {
        const SKY_Addr_t addr = {(uint16_t)((uint32_t)target[SKY_MIGRATE_OFF_PLANE] << 8u | target[SKY_MIGRATE_OFF_PLANE + 1u]),
                                 (uint16_t)((uint32_t)target[SKY_MIGRATE_OFF_SLOT] << 8u | target[SKY_MIGRATE_OFF_SLOT + 1u])};

        SKYT_Use_t *use = use_of(twin, node, pkt->tenant, pkt->key);

        if (SKY_Addr_Equal(addr, SKYT_AddrOf(twin, node)))
        {
            raise_epoch(twin, use, pkt->epoch, before->is_moving);
        }
        else
        {
            use->sent_us = twin->now_us;
        }
    }
}

void SKYT_Use_Get(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    note_use(twin, node, pkt, true);
}
