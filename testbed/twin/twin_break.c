/**
 * @file
 * Deliberate faults of the core: a check that never fails proves nothing.
 */
#include <string.h>

#include "twin_break.h"
#include "twin_priv.h"

#define PAYLOAD_AT SKY_RESPONSE_HEAD
#define LATER_US   UINT64_C(3600000000)

uint32_t SKYT_Break_Packet(SKYT_Twin_t *twin, const SKY_PacketParts_t *out)
{
    const uint32_t len   = out->head_len + out->body_len + out->tail_len;
    uint8_t       *bytes = twin->scratch2;
    SKY_Packet_t   pkt;

    if ((twin->broken != SKYT_BREAK_FLIP && twin->broken != SKYT_BREAK_SWAP && twin->broken != SKYT_BREAK_BLEND) ||
        out->body_len == 0)
    {
        return 0;
    }
    (void)memcpy(bytes, out->head, out->head_len);
    (void)memcpy(&bytes[out->head_len], out->body, out->body_len);
    (void)memcpy(&bytes[out->head_len + out->body_len], out->tail, out->tail_len);
    if (SKY_Packet_Decode(bytes, len, &pkt) != SKY_STATUS_OK || pkt.is_request || pkt.op != SKY_OP_GET ||
        pkt.status != SKY_STATUS_OK || pkt.length != pkt.chunk_len)
    {
        return 0;
    }
    const uint32_t block = SKYT_Content_BlockOf(twin, pkt.tenant, pkt.key);

    if (twin->broken == SKYT_BREAK_FLIP)
    {
        bytes[PAYLOAD_AT + pkt.length - 1u] ^= 1u;
    }
    else if (twin->broken == SKYT_BREAK_BLEND)
    {
        SKYT_Content_Chunk(block, pkt.block_version - 1u, pkt.chunk_id, &bytes[PAYLOAD_AT], pkt.length);
    }
    else
    {
        SKYT_Content_Chunk(block ^ 1u, pkt.block_version, pkt.chunk_id, &bytes[PAYLOAD_AT], pkt.length);
    }
    (void)memcpy(twin->scratch, &bytes[PAYLOAD_AT], pkt.length);
    pkt.payload   = twin->scratch;
    pkt.chunk_crc = SKY_Crc32c(0, twin->scratch, pkt.length);
    return (uint32_t)SKY_Packet_Encode(&pkt, bytes, twin->config.packet_bytes);
}

/* Look at the block that is to make room next, if one is. */
static void look_at_oldest(SKY_Store_t *store)
{
    SKY_StoreWalk_t walk   = {0, 0};
    SKY_BlockInfo_t oldest = {0};
    SKY_ChunkView_t view;

    while (SKY_Store_NextUsed(store, &walk, &oldest))
    {
    }
    if (oldest.held > 0 && store->slab.used == store->cfg.slot_count)
    {
        const uint32_t block = SKY_Store_Find(store, oldest.tenant, oldest.key);

        (void)SKY_Store_Get(store, block, SKY_Store_NextChunk(store, block, 0), &view);
    }
}

const SKY_Packet_t *SKYT_Break_Seen(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt, SKY_Packet_t *changed)
{
    SKYT_Node_t *node = &twin->nodes[index];

    *changed = *pkt;
    if (pkt->is_request && pkt->op == SKY_OP_PUT)
    {
        if (twin->broken == SKYT_BREAK_NEWEST)
        {
            look_at_oldest(&node->store);
        }
        if (twin->broken == SKYT_BREAK_COMMON)
        {
            static const SKY_Quotas_t none = {.count = 0};

            (void)SKY_Store_SetQuotas(&node->store, &none);
        }
        if (twin->broken == SKYT_BREAK_REVERT && SKYT_Version_Held(twin, index, pkt) > pkt->block_version)
        {
            (void)SKY_Store_Purge(&node->store, pkt->tenant, pkt->key, NULL);
        }
        changed->epoch = twin->broken == SKYT_BREAK_LEAVE ? 0 : pkt->epoch;
        if (twin->broken == SKYT_BREAK_SECONDS)
        {
            changed->deadline_ms = (pkt->deadline_ms + 999u) / 1000u;
        }
        if (twin->broken == SKYT_BREAK_TRUST && pkt->length == pkt->chunk_len)
        {
            changed->chunk_crc = SKY_Crc32c(0, pkt->payload, pkt->length);
        }
    }
    if (twin->broken == SKYT_BREAK_CLING && pkt->is_request && pkt->op == SKY_OP_PURGE && pkt->src.plane == 0)
    {
        changed->key[0] ^= 1u; /* a block that nobody has */
    }
    if (twin->broken == SKYT_BREAK_RUMOUR && pkt->is_request && pkt->op == SKY_OP_PURGE && (pkt->flags & SKY_FLAG_GOSSIP) != 0)
    {
        SKY_BlockInfo_t info;
        uint32_t        cursor = 0;

        if (SKY_Store_NextBlock(&node->store, &cursor, &info) && info.tenant != SKYT_JUNK_TENANT)
        {
            changed->tenant = info.tenant;
            (void)memcpy(changed->key, info.key, SKY_KEY_BYTES);
        }
    }
    return changed;
}

/* Falsify the answer to a question of a host, not of a put. */
static void say_of_block(const SKYT_Twin_t *twin, SKY_Answer_t *answer, const SKY_Packet_t *pkt, uint32_t block)
{
    if (twin->broken == SKYT_BREAK_DISOWN)
    {
        answer->reply.status = SKY_STATUS_NOT_FOUND;
    }
    if (twin->broken == SKYT_BREAK_BOAST)
    {
        const SKY_Stripe_t stripe = SKYT_Content_Stripe(twin, block, 0);

        answer->reply.status = SKY_STATUS_OK;
        SKY_Stripe_ToPacket(&stripe, &answer->reply);
        (void)memcpy(answer->scratch, pkt->payload, pkt->length); /* what was asked for; the reply is as long */
    }
}

void SKYT_Break_Begun(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt)
{
    SKY_Answer_t  *answer = &twin->nodes[index].service.answer;
    const uint32_t block  = SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key);

    if (twin->broken == SKYT_BREAK_MISER)
    {
        twin->nodes[index].service.hints.to_ask = false;
    }
    if (twin->broken == SKYT_BREAK_DENY && answer->stage == SKY_ANSWER_CHUNKS && block != SKYT_NONE &&
        twin->truth[block].taint != 0)
    {
        answer->missing = answer->set;
        answer->stage   = SKY_ANSWER_MISSING;
    }
    if (pkt->op == SKY_OP_HAS && pkt->src.plane == 0 && SKY_Host_IsQuestion(pkt->request_id) && block != SKYT_NONE)
    {
        say_of_block(twin, answer, pkt, block);
    }
}

uint32_t SKYT_Break_Link(const SKYT_Twin_t *twin, uint32_t index, uint32_t link, bool begins)
{
    const uint32_t other = (link + 1u) % SKY_ISL_COUNT;

    if (twin->broken == SKYT_BREAK_DETOUR)
    {
        return begins && SKYT_Network_Neighbour(twin, index, other) != SKYT_NONE ? other : link;
    }
    for (uint32_t seam = 0; twin->broken == SKYT_BREAK_SEAM && seam < SKY_ISL_COUNT; ++seam)
    {
        link = SKYT_Network_Neighbour(twin, index, seam) == SKYT_NONE ? seam : link;
    }
    return link;
}

void SKYT_Break_Links(SKYT_Twin_t *twin, uint32_t index)
{
    for (uint32_t link = 0; twin->broken == SKYT_BREAK_BLIND && link < SKY_ISL_COUNT; ++link)
    {
        SKY_Router_SetLinkUp(&twin->nodes[index].core.router, (SKY_LinkId_t)link,
                             SKYT_Network_Neighbour(twin, index, link) != SKYT_NONE);
    }
}

void SKYT_Break_Lease(SKYT_Twin_t *twin, uint32_t index)
{
    SKY_NodeListener_t *listener = &twin->nodes[index].listener;

    if (twin->broken == SKYT_BREAK_LEASE && listener->until_us != 0)
    {
        listener->until_us = UINT64_MAX;
    }
}

uint64_t SKYT_Break_LaterUs(const SKYT_Twin_t *twin, const SKY_Packet_t *pkt)
{
    const bool is_gossip = pkt->is_request && pkt->op == SKY_OP_PURGE && (pkt->flags & SKY_FLAG_GOSSIP) != 0;

    return twin->broken == SKYT_BREAK_HASTE && is_gossip ? LATER_US : 0;
}

/* Return true if an operation of a host asks whether stand-ins hold some of its block. */
static bool asks_aside(const SKYT_Twin_t *twin, const SKYT_Ground_t *ground)
{
    bool asks = false;

    for (uint32_t i = 0; i < twin->config.active_max; ++i)
    {
        const SKYT_Active_t *active = &twin->active[i];

        asks = asks || (active->is_active && active->host == ground->number &&
                        (active->core.confirms == SKY_GROUND_CONFIRM_ASIDE || active->core.check.step == SKY_GROUND_CHECK_ASIDE));
    }
    return asks;
}

uint32_t SKYT_Break_Heard(SKYT_Twin_t *twin, const SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;

    if ((twin->broken != SKYT_BREAK_RASH && twin->broken != SKYT_BREAK_RUTHLESS) ||
        SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.is_request)
    {
        return len;
    }
    if (twin->broken == SKYT_BREAK_RASH)
    {
        return pkt.op == SKY_OP_PING && node % 2u == 1u ? 0u : len;
    }
    (void)memcpy(twin->scratch, pkt.payload, pkt.length);
    pkt.payload = twin->scratch;
    if (twin->broken == SKYT_BREAK_RUTHLESS)
    {
        pkt.word = pkt.word | SKY_WORD_SETTLED;
        if (pkt.op == SKY_OP_HAS && SKY_Host_IsQuestion(pkt.request_id) && asks_aside(twin, ground))
        {
            pkt.status = SKY_STATUS_NOT_FOUND;
            pkt.length = 0;
        }
    }
    return (uint32_t)SKY_Packet_Encode(&pkt, twin->scratch2, twin->config.packet_bytes);
}

void SKYT_Break_Searched(const SKYT_Twin_t *twin, SKY_Ground_t *ground)
{
    if (twin->broken == SKYT_BREAK_HURRY)
    {
        ground->late_count  = 0;
        ground->spare_count = 0;
    }
}

uint32_t SKYT_Break_Places(const SKYT_Twin_t *twin, SKY_Addr_t *found, uint32_t count)
{
    if (twin->broken != SKYT_BREAK_ELSEWHERE)
    {
        return count;
    }
    found[0] = found[count - 1u];
    return 1;
}

void SKYT_Break_Ended(SKYT_Twin_t *twin, uint32_t ground)
{
    if (twin->broken == SKYT_BREAK_HOARD)
    {
        ++twin->grounds[ground].core.host.peers.peers[0].peer.outstanding;
    }
}

void SKYT_Break_Sequences(SKYT_Twin_t *twin, uint32_t index)
{
    const SKY_Associations_t *table = &twin->nodes[index].security.associations;

    for (uint32_t i = 0; i < table->count; ++i)
    {
        if (twin->broken == SKYT_BREAK_OBLIVIOUS)
        {
            SKY_Replay_Init(&table->entries[i].replay);
        }
        if (twin->broken == SKYT_BREAK_STUTTER)
        {
            table->entries[i].sequence = 0;
        }
    }
}

void SKYT_Break_Served(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt)
{
    SKY_Store_t   *store = &twin->nodes[index].store;
    SKY_ChunkSet_t asked;

    if (twin->broken == SKYT_BREAK_OVERFULL && pkt->op == SKY_OP_PUT)
    {
        /* The core does not assert this count of the store, which would end the process. */
        store->counters.bytes = (uint64_t)store->cfg.slot_count * store->cfg.slot_bytes + 1u;
    }
    if (twin->broken == SKYT_BREAK_FORGET && pkt->is_request && pkt->op == SKY_OP_HAS && pkt->src.plane != 0 &&
        SKY_ChunkSet_Decode(pkt, &asked) == SKY_STATUS_OK)
    {
        const uint32_t first = SKY_ChunkSet_Next(&asked, 0);

        if (first < asked.count)
        {
            (void)SKY_Store_Drop(store, SKY_Store_Find(store, pkt->tenant, pkt->key), SKY_ChunkSet_ChunkId(&asked, first));
        }
    }
}
