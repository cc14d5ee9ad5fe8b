/**
 * @file
 * Faults that have a time: links, satellites, stores and clocks.
 */
#include <string.h>

#include "twin_priv.h"

#define HARD_LOSS_PPM 200000u /* above this rate transfers do not get through in time */

static bool is_hard(const SKYT_Model_t *model)
{
    return model->loss_ppm > HARD_LOSS_PPM || model->burst_enter_ppm != 0 || model->attack_ppm != 0;
}

static bool is_lossy(const SKYT_Model_t *model)
{
    return model->loss_ppm + model->flip_ppm + model->corrupt_ppm + model->attack_ppm > SKYT_LOSS_PPM;
}

/* Faults that explain a miss are counted while they last, and remembered. */
static void begins(const SKYT_Twin_t *twin, SKYT_Trouble_t *trouble)
{
    ++trouble->now;
    trouble->last_us = twin->now_us;
}

static void ends(const SKYT_Twin_t *twin, SKYT_Trouble_t *trouble)
{
    --trouble->now;
    trouble->last_us = twin->now_us;
}

bool SKYT_Fault_Since(const SKYT_Trouble_t *trouble, uint64_t since_us)
{
    return trouble->now > 0 || (trouble->last_us != 0 && trouble->last_us >= since_us);
}

static void set_model(SKYT_Twin_t *twin, const SKYT_Fault_t *fault)
{
    const SKYT_Model_t **model = fault->node == SKYT_ALL ? &twin->model : &SKYT_LinkOf(twin, fault->node, fault->link)->model;

    if (fault->node == SKYT_ALL)
    {
        SKYT_Hello_WakeAll(twin);
    }
    else
    {
        SKYT_Hello_WakeEnds(twin, fault->node, fault->link);
    }
    if (*model != NULL && is_hard(*model))
    {
        ends(twin, &twin->hard);
        ends(twin, &twin->mute);
    }
    if (*model != NULL && is_lossy(*model))
    {
        ends(twin, &twin->lossy);
    }
    *model = &fault->model;
    if (is_hard(*model))
    {
        begins(twin, &twin->hard);
        begins(twin, &twin->mute);
    }
    if (is_lossy(*model))
    {
        begins(twin, &twin->lossy);
    }
}

static void cut(SKYT_Twin_t *twin, const SKYT_Fault_t *fault)
{
    static const uint32_t opposite[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_WEST, SKY_LINK_NORTH, SKY_LINK_EAST};

    const uint32_t far   = SKYT_Network_Neighbour(twin, fault->node, fault->link);
    SKYT_Link_t   *there = SKYT_LinkOf(twin, fault->node, fault->link);
    SKYT_Link_t   *back  = SKYT_LinkOf(twin, far, opposite[fault->link]);

    SKYT_Hello_WakeEnds(twin, fault->node, fault->link);
    if (fault->value != 0)
    {
        SKYT_Network_Mark(twin, there);
        SKYT_Network_Mark(twin, back);
        ++there->cuts;
        ++back->cuts;
        ++twin->counters.cuts;
        begins(twin, &twin->hard);
        begins(twin, &twin->mute);
    }
    else
    {
        --there->cuts;
        --back->cuts;
        ends(twin, &twin->hard);
        ends(twin, &twin->mute);
    }
}

static void junk_key(uint32_t number, uint8_t *key)
{
    (void)memset(key, 0, SKY_KEY_BYTES);
    key[0] = 0xFFu; /* a key is never all 0 */
    key[1] = (uint8_t)(number >> 16 & 0xFFu);
    key[2] = (uint8_t)(number >> 8 & 0xFFu);
    key[3] = (uint8_t)(number & 0xFFu);
}

/* Put a chunk that has a slot for itself, as if from a ground host. */
static void put_junk(SKYT_Twin_t *twin, uint32_t index)
{
    static const uint8_t bytes[SKY_LIMIT_CHUNK_BYTES];

    SKYT_Node_t   *node  = &twin->nodes[index];
    const uint32_t count = node->store.cfg.slot_bytes;
    SKY_Packet_t   pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = true;
    pkt.apid        = SKY_APID_KVC;
    pkt.op          = SKY_OP_PUT;
    pkt.dst         = node->core.router.self;
    pkt.tenant      = SKYT_JUNK_TENANT;
    pkt.epoch       = UINT32_MAX; /* the junk is prefetched for a row that never comes, so that it stays in the way */
    pkt.chunk_total = 1;
    pkt.block_len   = count;
    pkt.chunk_len   = count;
    pkt.length      = count;
    pkt.payload     = bytes;
    pkt.chunk_crc   = SKY_Crc32c(0, bytes, count);
    junk_key(node->junk++, pkt.key);
    SKYT_Node_Serve(twin, index, &pkt);
}

static void relieve(SKYT_Twin_t *twin, uint32_t index)
{
    SKYT_Node_t *node = &twin->nodes[index];
    uint8_t      key[SKY_KEY_BYTES];

    for (uint32_t i = 0; i < node->junk; ++i)
    {
        junk_key(i, key);
        (void)SKY_Store_Purge(&node->store, SKYT_JUNK_TENANT, key, NULL); /* some junk has been evicted itself */
    }
    node->junk = 0;
}

/* The junk is put anew each time, so that it is what was used last, and others' blocks go first when there is no room. */
static void press(SKYT_Twin_t *twin, uint32_t index, uint32_t slots_free)
{
    const SKYT_Node_t *node  = &twin->nodes[index];
    const uint32_t     slots = node->store.cfg.slot_count;

    if (!node->is_up)
    {
        return;
    }
    ++twin->counters.pressures;
    relieve(twin, index);
    for (uint32_t i = 0; i < slots && slots - node->store.slab.used > slots_free; ++i)
    {
        put_junk(twin, index);
    }
}

static void set_clock(SKYT_Twin_t *twin, const SKYT_Fault_t *fault)
{
    SKYT_Node_t *node = &twin->nodes[fault->node];
    const bool   was  = node->late->epoch_us != twin->schedule.epoch_us;

    *node->late          = twin->schedule;
    node->late->epoch_us = twin->schedule.epoch_us + fault->value;
    if (fault->value != 0 && !was)
    {
        ++twin->counters.late_clocks;
        begins(twin, &twin->hard);
        begins(twin, &twin->mute);
    }
    else if (fault->value == 0 && was)
    {
        ends(twin, &twin->hard);
        ends(twin, &twin->mute);
    }
    if (node->is_up)
    {
        SKYT_Node_SetSchedule(twin, fault->node);
        SKYT_Node_Poll(twin, fault->node);
    }
}

static void apply(SKYT_Twin_t *twin, const SKYT_Fault_t *fault)
{
    switch (fault->kind)
    {
        case SKYT_FAULT_MODEL:
            set_model(twin, fault);
            break;
        case SKYT_FAULT_CUT:
            cut(twin, fault);
            break;
        case SKYT_FAULT_CRASH:
            if (twin->nodes[fault->node].is_up)
            {
                ++twin->counters.crashes;
                begins(twin, &twin->hard);
                SKYT_Node_Crash(twin, fault->node);
            }
            break;
        case SKYT_FAULT_RESTART:
            if (!twin->nodes[fault->node].is_up)
            {
                ends(twin, &twin->hard);
                SKYT_Node_Restart(twin, fault->node);
            }
            break;
        case SKYT_FAULT_PRESSURE:
            twin->pressed_us = twin->now_us;
            press(twin, fault->node, fault->value);
            break;
        case SKYT_FAULT_RELIEF:
            twin->pressed_us = twin->now_us;
            relieve(twin, fault->node);
            break;
        case SKYT_FAULT_DROP:
            twin->drop_after = fault->value;
            break;
        case SKYT_FAULT_CLOCK:
        default:
            set_clock(twin, fault);
            break;
    }
}

void SKYT_Fault_Next(SKYT_Twin_t *twin)
{
    while (twin->fault_next < twin->fault_count && twin->faults[twin->fault_next].time_us <= twin->now_us)
    {
        SKYT_Digest(twin, twin->faults[twin->fault_next].kind, NULL, 0);
        apply(twin, &twin->faults[twin->fault_next++]);
    }
    if (twin->fault_next < twin->fault_count)
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfScript(twin, 1), twin->faults[twin->fault_next].time_us);
    }
}
