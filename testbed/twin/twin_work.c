/**
 * @file
 * Chunks that take time on board (the processing time of the paper's simulation, section 4): a satellite works on one after the
 * other. A chunk of a put is taken in when its time is over, one of a get goes out then. Other packets for the service of this
 * satellite wait behind them and take no time themselves; packets that it passes on do not wait. A satellite may also hang: it answers the
 * first request for a share later, and others behind it (stragglers).
 */
#include "twin_priv.h"

uint64_t SKYT_Work_Add(SKYT_Twin_t *twin, uint32_t index, uint32_t chunks)
{
    SKYT_Node_t *node = &twin->nodes[index];

    if (node->busy_until_us < twin->now_us)
    {
        node->busy_until_us = twin->now_us;
    }
    node->busy_until_us += (uint64_t)chunks * twin->config.chunk_us;
    return node->busy_until_us;
}

void SKYT_Work_Hang(SKYT_Twin_t *twin, uint32_t index, const SKY_Packet_t *pkt)
{
    if (pkt->is_request && pkt->op == SKY_OP_GET && SKY_REQUEST_NUMBER(pkt->request_id) == 1u &&
        SKYT_Chance(twin, twin->config.hang_ppm))
    {
        (void)SKYT_Work_Add(twin, index, 0);
        twin->nodes[index].busy_until_us += twin->config.hang_us;
    }
}

bool SKYT_Work_IsChunk(const SKYT_Twin_t *twin, uint32_t index)
{
    const SKY_Service_t *service = &twin->nodes[index].service;

    return service->answer.stage == SKY_ANSWER_CHUNKS && service->answer.part_offset == 0;
}

bool SKYT_Work_Hold(SKYT_Twin_t *twin, uint32_t index, uint32_t id, const uint8_t *data)
{
    SKYT_Node_t   *node   = &twin->nodes[index];
    SKYT_Packet_t *packet = &twin->packets[id];
    SKY_Packet_t   pkt;

    if (twin->config.chunk_us == 0 || SKY_Packet_Decode(data, packet->len, &pkt) != SKY_STATUS_OK || pkt.apid != SKY_APID_KVC ||
        !SKY_Addr_Equal(pkt.dst, node->core.router.self))
    {
        return false;
    }
    const bool is_chunk =
        pkt.is_request && pkt.op == SKY_OP_PUT && pkt.offset + pkt.length == pkt.chunk_len; /* or the last part of it */
    const uint64_t due_us = SKYT_Work_Add(twin, index, is_chunk ? 1u : 0u);

    if (due_us == twin->now_us && node->held == 0)
    {
        return false;
    }
    ++node->held;
    packet->is_held = true;
    ++twin->packets_queued;
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfPacket(twin, id), due_us);
    return true;
}

bool SKYT_Work_Release(SKYT_Twin_t *twin, uint32_t index, uint32_t id)
{
    SKYT_Packet_t *packet = &twin->packets[id];

    if (!packet->is_held)
    {
        return false;
    }
    packet->is_held = false;
    --twin->nodes[index].held;
    return true;
}
