/**
 * @file
 * Links: models, delay lines, cuts.
 */
#include <string.h>

#include "isl_node.h"

/* Five lines out, one from the ground. Equal shares of one pool; pages are touched when packets first wait in them. */
#define ISL_LINES       (SKY_LINK_COUNT + 1u)
#define ISL_LINE_BYTES  (ISL_PLATFORM_LINK_POOL_BYTES / ISL_LINES)
#define ISL_UPLINK_LINE SKY_LINK_COUNT
#define ISL_SLOT_EXTRA  64u /* more than a line needs for the bookkeeping of a slot */

CompileTimeAssert(ISL_LINE_BYTES >= 4u * (SKY_LIMIT_PACKET_BYTES + ISL_SLOT_EXTRA), IslLinePoolHoldsFourLargestPackets);
CompileTimeAssert(SKY_LIMIT_PACKET_BYTES + ISL_ENDPOINT_BYTES <= SKY_LINK_SLOT_BYTES_MAX, IslEndpointFitsTheSlot);

static uint64_t ISL_LinePool[ISL_LINES][ISL_LINE_BYTES / sizeof(uint64_t)];

SKY_LinkId_t ISL_Link_Of(const ISL_Node_t *node, uint64_t endpoint)
{
    uint32_t id;

    for (id = 0; id < SKY_ISL_COUNT; ++id)
    {
        if (node->links[id].present && node->links[id].endpoint == endpoint)
        {
            return (SKY_LinkId_t)id;
        }
    }
    return SKY_LINK_GROUND;
}

static bool ISL_IsCut(const ISL_Link_t *link)
{
    return link->model.cut || link->cut_until_us != 0;
}

bool ISL_Link_IsUp(const ISL_Node_t *node, SKY_LinkId_t id)
{
    const ISL_Link_t *const link = &node->links[id];

    return link->present && !ISL_IsCut(link) && (id == SKY_LINK_GROUND || (node->router.usable & (1u << id)) != 0);
}

/** A link that is cut leaves the routes. It comes back at once, or with hellos when the neighbour is heard. */
static void ISL_UpdateRoute(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id)
{
    const ISL_Link_t *const link = &node->links[id];

    if (id != SKY_LINK_GROUND)
    {
        SKY_Hello_SetLink(&node->hello, now_us, id, link->present, ISL_IsCut(link));
    }
}

/* ---- cuts by command ----------------------------------------------------------------------------------------------- */

/** Nobody may be able to silence the satellite by commands: the last link that is up stays. */
static bool ISL_AnotherIsUp(const ISL_Node_t *node, SKY_LinkId_t id)
{
    uint32_t other;

    for (other = 0; other < SKY_LINK_COUNT; ++other)
    {
        if (other != (uint32_t)id && ISL_Link_IsUp(node, (SKY_LinkId_t)other))
        {
            return true;
        }
    }
    return false;
}

bool ISL_Link_Cut(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t seconds)
{
    ISL_Link_t *const link = &node->links[id];

    if (!link->present || (seconds != 0 && !ISL_AnotherIsUp(node, id)))
    {
        return false;
    }
    link->cut_until_us = seconds != 0 ? now_us + seconds * UINT64_C(1000000) : 0;
    ISL_UpdateRoute(node, now_us, id);
    return true;
}

void ISL_Link_EndCuts(ISL_Node_t *node, uint64_t now_us)
{
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        ISL_Link_t *const link = &node->links[id];

        if (link->cut_until_us != 0 && now_us >= link->cut_until_us)
        {
            link->cut_until_us = 0;
            ISL_UpdateRoute(node, now_us, (SKY_LinkId_t)id);
        }
    }
}

/* ---- models -------------------------------------------------------------------------------------------------------- */

/** A cut needs no line: nothing goes in. */
static bool ISL_NeedsLine(const SKY_LinkModel_t *model)
{
    SKY_LinkModel_t uncut = *model;

    uncut.cut = false;
    return !SKY_LinkModel_IsIdeal(&uncut);
}

uint32_t ISL_Link_LineSlots(const ISL_Node_t *node)
{
    const uint32_t slots = ISL_LINE_BYTES / (node->packet_bytes + ISL_ENDPOINT_BYTES + ISL_SLOT_EXTRA);

    return slots < SKY_LINK_SLOTS_MAX ? slots : SKY_LINK_SLOTS_MAX;
}

bool ISL_Link_HasLines(const ISL_Node_t *node)
{
    bool     any = node->uplink.ready;
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        any = any || node->links[id].out.ready;
    }
    return any;
}

static void ISL_SetLineModel(const ISL_Node_t *node, ISL_Line_t *line, uint32_t place, const SKY_LinkModel_t *model)
{
    const uint32_t slot_bytes = node->packet_bytes + ISL_ENDPOINT_BYTES;
    const uint32_t slots      = ISL_Link_LineSlots(node);

    if (!line->ready && ISL_NeedsLine(model))
    {
        line->ready = SKY_Link_Init(&line->line, model, slot_bytes, slots, ISL_LinePool[place], ISL_LINE_BYTES, SKY_LIB_Seed());
    }
    else if (line->ready)
    {
        SKY_Link_SetModel(&line->line, model);
    }
}

void ISL_Link_SetModel(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, const SKY_LinkModel_t *model)
{
    ISL_Link_t *const link = &node->links[id];

    link->model = *model;
    ISL_SetLineModel(node, &link->out, (uint32_t)id, model);
    if (id == SKY_LINK_GROUND)
    {
        ISL_SetLineModel(node, &node->uplink, ISL_UPLINK_LINE, model);
    }
    ISL_UpdateRoute(node, now_us, id);
}

/** Does a packet have to wait, for its own delay or behind others? */
static bool ISL_MustWait(const ISL_Line_t *line, const SKY_LinkModel_t *model)
{
    return line->ready && (ISL_NeedsLine(model) || SKY_Link_NextDue(&line->line) != UINT64_MAX);
}

/* ---- sending ------------------------------------------------------------------------------------------------------- */

static void ISL_PutEndpoint(uint8_t *to, uint64_t endpoint)
{
    memcpy(to, &endpoint, ISL_ENDPOINT_BYTES);
}

static bool ISL_Push(ISL_Line_t *line, ISL_LinkCounters_t *counters, uint64_t now_us, uint64_t endpoint,
                     const ISL_IO_Parts_t *parts)
{
    uint8_t head[ISL_ENDPOINT_BYTES + ISL_IO_HEAD_BYTES];
    bool    taken = false;

    if (parts->head_len > ISL_IO_HEAD_BYTES)
    {
        ++counters->drop_error;
        return false;
    }
    ISL_PutEndpoint(head, endpoint);
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

void ISL_Link_Send(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, const ISL_IO_Parts_t *parts)
{
    ISL_Link_t *const link = &node->links[id];
    const uint64_t    to   = id == SKY_LINK_GROUND ? endpoint : link->endpoint;

    if (ISL_IsCut(link))
    {
        ++link->counters.drop_cut;
        return;
    }
    if (!ISL_MustWait(&link->out, &link->model))
    {
        ISL_IO_Send(to, parts, &link->counters.drop_error);
    }
    else if (!ISL_Push(&link->out, &link->counters, now_us, to, parts))
    {
        return;
    }
    ++link->counters.tx_packets;
    link->counters.tx_bytes += (uint64_t)parts->head_len + parts->body_len + parts->tail_len;
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

void ISL_Link_RunLines(ISL_Node_t *node, uint64_t now_us)
{
    ISL_IO_Parts_t parts;
    uint32_t       id;

    memset(&parts, 0, sizeof(parts));
    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        ISL_Link_t *const link     = &node->links[id];
        uint64_t          endpoint = 0;

        /* ends: nothing is pushed here, and a line holds a bounded number of packets */
        while ((parts.body_len = ISL_Pop(&link->out, now_us, &endpoint, &parts.body)) > 0)
        {
            if (ISL_IsCut(link))
            {
                ++link->counters.drop_cut;
            }
            else
            {
                ISL_IO_Send(endpoint, &parts, &link->counters.drop_error);
            }
        }
        ISL_IO_Flush(); /* the bytes stay in the line only until the next push */
    }
}

uint64_t ISL_Link_NextDue(const ISL_Node_t *node)
{
    uint64_t due = node->uplink.ready ? SKY_Link_NextDue(&node->uplink.line) : UINT64_MAX;
    uint32_t id;

    for (id = 0; id < SKY_LINK_COUNT; ++id)
    {
        const ISL_Line_t *const line = &node->links[id].out;

        if (line->ready && SKY_Link_NextDue(&line->line) < due)
        {
            due = SKY_Link_NextDue(&line->line);
        }
        if (node->links[id].cut_until_us != 0 && node->links[id].cut_until_us < due)
        {
            due = node->links[id].cut_until_us;
        }
    }
    return due;
}

/* ---- arrivals ------------------------------------------------------------------------------------------------------ */

bool ISL_Link_Heard(ISL_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint64_t endpoint, uint32_t len)
{
    ISL_Link_t *const link = &node->links[id];
    uint32_t          other;

    if (ISL_IsCut(link))
    {
        ++link->counters.drop_cut;
        return false;
    }
    ++link->counters.rx_packets;
    link->counters.rx_bytes += len;
    link->heard_us   = now_us;
    link->heard_once = true;

    /* On a ring of two, one neighbour is reached over two links, and its packets cannot be told apart. */
    for (other = 0; id != SKY_LINK_GROUND && other < SKY_ISL_COUNT; ++other)
    {
        ISL_Link_t *const same = &node->links[other];

        if (same->present && same->endpoint == endpoint && !ISL_IsCut(same))
        {
            same->heard_us   = now_us;
            same->heard_once = true;
            SKY_Hello_Heard(&node->hello, now_us, (SKY_LinkId_t)other);
        }
    }
    return true;
}

bool ISL_Link_DelayUplink(ISL_Node_t *node, uint64_t now_us, uint64_t endpoint, const uint8_t *data, uint32_t len)
{
    ISL_Link_t *const ground = &node->links[SKY_LINK_GROUND];
    ISL_IO_Parts_t    parts;

    if (!ISL_MustWait(&node->uplink, &ground->model))
    {
        return false;
    }
    memset(&parts, 0, sizeof(parts));
    parts.body     = data;
    parts.body_len = len;
    (void)ISL_Push(&node->uplink, &ground->counters, now_us, endpoint, &parts);
    return true;
}

uint32_t ISL_Link_NextUplink(ISL_Node_t *node, uint64_t now_us, uint64_t *endpoint)
{
    ISL_Link_t *const ground = &node->links[SKY_LINK_GROUND];
    const uint8_t    *packet = NULL;
    uint32_t          len    = ISL_Pop(&node->uplink, now_us, endpoint, &packet);

    while (len > 0 && ISL_IsCut(ground)) /* ends: a line holds a bounded number of packets */
    {
        ++ground->counters.drop_cut;
        len = ISL_Pop(&node->uplink, now_us, endpoint, &packet);
    }
    if (len > 0)
    {
        memcpy(node->work, packet, len);
    }
    return len;
}
