/**
 * @file
 * Delay lines: links that are emulated.
 */
#include <string.h>

#include "isl_node.h"

/* The five lines out and the one from the ground have equal shares of one pool. Pages are touched when packets first wait in
 * them. */
#define ISL_LINES       (SKY_LINK_COUNT + 1u)
#define ISL_LINE_BYTES  (ISL_PLATFORM_LINK_POOL_BYTES / ISL_LINES)
#define ISL_UPLINK_LINE SKY_LINK_COUNT
#define ISL_SLOT_EXTRA  64u /* more than a line needs to keep account of a slot */

CompileTimeAssert(ISL_LINE_BYTES >= 4u * (SKY_LIMIT_PACKET_BYTES + ISL_SLOT_EXTRA), IslLinePoolHoldsFourLargestPackets);
CompileTimeAssert(SKY_LIMIT_PACKET_BYTES + ISL_ENDPOINT_BYTES <= SKY_LINK_SLOT_BYTES_MAX, IslEndpointFitsTheSlot);

static uint64_t ISL_LinePool[ISL_LINES][ISL_LINE_BYTES / sizeof(uint64_t)];

/* ---- models -------------------------------------------------------------------------------------------------------- */

/** Return true if a model needs a line. A cut needs none, because nothing goes in. */
static bool ISL_NeedsLine(const SKY_LinkModel_t *model)
{
    SKY_LinkModel_t uncut = *model;

    uncut.cut = false;
    return !SKY_LinkModel_IsIdeal(&uncut);
}

uint32_t ISL_Line_Slots(const ISL_Node_t *isl)
{
    const uint32_t slots = ISL_LINE_BYTES / (isl->node.cfg.packet_bytes + ISL_ENDPOINT_BYTES + ISL_SLOT_EXTRA);

    return slots < SKY_LINK_SLOTS_MAX ? slots : SKY_LINK_SLOTS_MAX;
}

bool ISL_Line_AnyReady(const ISL_Node_t *isl)
{
    bool     any = isl->uplink.ready;
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        any = any || isl->lines[id].ready;
    }
    return any;
}

static void ISL_SetLineModel(const ISL_Node_t *isl, ISL_Line_t *line, uint32_t place, const SKY_LinkModel_t *model)
{
    const uint32_t slot_bytes = isl->node.cfg.packet_bytes + ISL_ENDPOINT_BYTES;
    const uint32_t slots      = ISL_Line_Slots(isl);

    if (!line->ready && ISL_NeedsLine(model))
    {
        line->ready = SKY_Link_Init(&line->line, model, slot_bytes, slots, ISL_LinePool[place], ISL_LINE_BYTES, SKY_LIB_Seed());
    }
    else if (line->ready)
    {
        SKY_Link_SetModel(&line->line, model);
    }
}

void ISL_Line_SetModel(ISL_Node_t *isl, SKY_LinkId_t id, const SKY_LinkModel_t *model)
{
    ISL_SetLineModel(isl, &isl->lines[id], (uint32_t)id, model);
    if (id == SKY_LINK_GROUND)
    {
        ISL_SetLineModel(isl, &isl->uplink, ISL_UPLINK_LINE, model);
    }
}

void ISL_Line_Reset(ISL_Node_t *isl)
{
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        isl->lines[id].ready            = false;
        isl->node.links[id].queue_depth = 0;
    }
    isl->uplink.ready = false;
}

/** Return true if a packet has to wait, for its own delay or behind others. */
static bool ISL_MustWait(const ISL_Line_t *line, const SKY_LinkModel_t *model)
{
    return line->ready && (ISL_NeedsLine(model) || SKY_Link_NextDue(&line->line) != UINT64_MAX);
}

/* ---- in and out ---------------------------------------------------------------------------------------------------- */

static bool ISL_Push(ISL_Line_t *line, SKY_NodeLinkCounters_t *counters, uint64_t now_us, uint64_t endpoint,
                     const SKY_PacketParts_t *parts)
{
    uint8_t head[ISL_ENDPOINT_BYTES + SKY_NODE_HEAD_BYTES];
    bool    taken = false;

    if (parts->head_len > SKY_NODE_HEAD_BYTES)
    {
        ++counters->drop_error;
        return false;
    }
    memcpy(head, &endpoint, ISL_ENDPOINT_BYTES);
    if (parts->head_len > 0)
    {
        memcpy(&head[ISL_ENDPOINT_BYTES], parts->head, parts->head_len);
    }
    switch (SKY_Link_Push(&line->line, now_us, head, (size_t)ISL_ENDPOINT_BYTES + parts->head_len, parts->body, parts->body_len,
                          parts->tail, parts->tail_len))
    {
        case SKY_LINK_TAKEN:
            taken = true;
            break;
        case SKY_LINK_DROP_QUEUE:
            ++counters->drop_queue;
            break;
        case SKY_LINK_DROP_LOSS:
            ++counters->drop_loss;
            break;
        case SKY_LINK_DROP_CUT:
            ++counters->drop_cut;
            break;
        case SKY_LINK_DROP_SIZE:
        default:
            ++counters->drop_error;
            break;
    }
    return taken;
}

/** Take the next due packet out of a line. @return its length without the endpoint before it, 0: none is due */
static uint32_t ISL_Pop(ISL_Line_t *line, uint64_t now_us, uint64_t *endpoint, const uint8_t **packet)
{
    const uint8_t *data = NULL;
    size_t         len  = 0;

    if (line->ready)
    {
        len = SKY_Link_Pop(&line->line, now_us, &data);
    }
    if (len <= ISL_ENDPOINT_BYTES)
    {
        return 0;
    }
    memcpy(endpoint, data, ISL_ENDPOINT_BYTES);
    *packet = data + ISL_ENDPOINT_BYTES;
    return (uint32_t)(len - ISL_ENDPOINT_BYTES);
}

bool ISL_Line_Send(ISL_Node_t *isl, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const SKY_PacketParts_t *parts)
{
    SKY_NodeLink_t *const link  = &isl->node.links[id];
    ISL_Line_t *const     line  = &isl->lines[id];
    bool                  taken = true;

    if (ISL_MustWait(line, &link->model))
    {
        taken             = ISL_Push(line, &link->counters, now_us, endpoint, parts);
        link->queue_depth = line->line.used;
    }
    else
    {
        ISL_IO_Send(endpoint, parts, &link->counters.drop_error);
    }
    return taken;
}

void ISL_Line_Run(ISL_Node_t *isl, uint64_t now_us)
{
    SKY_PacketParts_t parts;
    uint32_t          id;

    memset(&parts, 0, sizeof(parts));
    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        SKY_NodeLink_t *const link     = &isl->node.links[id];
        uint64_t              endpoint = 0;

        /* The loop ends: nothing is pushed here, and a line holds a bounded number of packets. */
        while ((parts.body_len = ISL_Pop(&isl->lines[id], now_us, &endpoint, &parts.body)) > 0)
        {
            if (SKY_Node_IsCut(&isl->node, (SKY_LinkId_t)id))
            {
                ++link->counters.drop_cut;
            }
            else
            {
                ISL_IO_Send(endpoint, &parts, &link->counters.drop_error);
            }
        }
        link->queue_depth = isl->lines[id].ready ? isl->lines[id].line.used : 0;
        ISL_IO_Flush(); /* the bytes stay in the line only until the next push */
    }
}

uint64_t ISL_Line_NextDue(const ISL_Node_t *isl)
{
    uint64_t due = isl->uplink.ready ? SKY_Link_NextDue(&isl->uplink.line) : UINT64_MAX;
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        const ISL_Line_t *const line = &isl->lines[id];

        if (line->ready && SKY_Link_NextDue(&line->line) < due)
        {
            due = SKY_Link_NextDue(&line->line);
        }
    }
    return due;
}

/* ---- the uplink ---------------------------------------------------------------------------------------------------- */

bool ISL_Line_DelayUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t endpoint, const uint8_t *data, uint32_t len)
{
    SKY_NodeLink_t *const   ground = &isl->node.links[SKY_LINK_GROUND];
    const SKY_PacketParts_t parts  = {NULL, data, NULL, 0, len, 0};

    if (SKY_Node_IsCut(&isl->node, SKY_LINK_GROUND) || !ISL_MustWait(&isl->uplink, &ground->model))
    {
        return false;
    }
    (void)ISL_Push(&isl->uplink, &ground->counters, now_us, endpoint, &parts);
    return true;
}

uint32_t ISL_Line_NextUplink(ISL_Node_t *isl, uint64_t now_us, uint64_t *endpoint)
{
    const uint8_t *packet = NULL;
    const uint32_t len    = ISL_Pop(&isl->uplink, now_us, endpoint, &packet);

    if (len > 0)
    {
        memcpy(isl->work, packet, len);
    }
    return len;
}
