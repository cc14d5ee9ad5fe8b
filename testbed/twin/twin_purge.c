/**
 * @file
 * What a PURGE does at a satellite: it spares a block that is newer than the version that it names; of the same version, or if it names none,
 * one of another content, and one that is kept for a later row. An older version than the one that is named goes whatever else it is.
 *
 * That what is not spared goes is followed for values (twin_version.c).
 */
#include "twin_priv.h"

/* Look up the block of a PURGE that is no gossip. @return false if nothing of it is held */
static bool look_up(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, SKY_BlockInfo_t *info)
{
    const SKY_Store_t *store    = &twin->nodes[node].store;
    const bool         is_purge = pkt->is_request && pkt->op == SKY_OP_PURGE && (pkt->flags & SKY_FLAG_GOSSIP) == 0;

    return is_purge && SKY_Store_Block(store, SKY_Store_Find(store, pkt->tenant, pkt->key), info) == SKY_STATUS_OK;
}

uint32_t SKYT_Purge_Spared(const SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    SKY_BlockInfo_t info;

    if (!look_up(twin, node, pkt, &info))
    {
        return 0;
    }
    const bool is_older    = pkt->block_version != 0 && info.version < pkt->block_version;
    const bool is_newer    = pkt->block_version != 0 && info.version > pkt->block_version;
    const bool is_other    = pkt->content != 0 && info.content != pkt->content;
    const bool is_for_late = info.epoch > pkt->epoch;

    return is_newer || (!is_older && (is_other || is_for_late)) ? info.held : 0u;
}

void SKYT_Purge_Served(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt, const SKYT_Before_t *before)
{
    SKY_BlockInfo_t info = {.held = 0};

    if (before->spared > 0 && (!look_up(twin, node, pkt, &info) || info.held != before->spared))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, node, SKYT_NONE, SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key), SKYT_NONE,
                        "a purge removed a block that it was to spare");
    }
}
