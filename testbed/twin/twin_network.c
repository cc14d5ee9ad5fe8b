/**
 * @file
 * Links between satellites and to the ground, and the packets on them. A link has a delay, a rate, and faults. A packet lies in a
 * pool from when it is sent until it arrives.
 */
#include <string.h>

#include "twin_priv.h"

#define NS_PER_US 1000u

void SKYT_Network_Init(SKYT_Twin_t *twin)
{
    for (uint32_t index = 0; index < twin->node_count * SKYT_LINKS; ++index)
    {
        const SKY_Addr_t from = SKYT_AddrOf(twin, index / SKYT_LINKS);
        const SKY_Addr_t to   = SKY_Torus_Neighbour(&twin->torus, from, (SKY_LinkId_t)(index % SKYT_LINKS));

        twin->links[index].far = to.plane == 0 ? SKYT_NONE : SKYT_NodeOf(twin, to);
    }
}

uint32_t SKYT_Network_Neighbour(const SKYT_Twin_t *twin, uint32_t node, uint32_t link)
{
    return SKYT_LinkOf(twin, node, link)->far;
}

bool SKYT_Network_IsWhole(const SKYT_Link_t *link)
{
    return link->cuts == 0 && !link->sky_down;
}

void SKYT_Network_Mark(const SKYT_Twin_t *twin, SKYT_Link_t *link)
{
    link->down_us = SKYT_Network_IsWhole(link) ? twin->now_us : link->down_us;
}

/* ---- the pool -------------------------------------------------------------------------------------------------------- */

static uint8_t *data_of(const SKYT_Twin_t *twin, uint32_t packet)
{
    return twin->packet_data + (size_t)packet * twin->config.packet_bytes;
}

uint8_t *SKYT_Network_DataOf(const SKYT_Twin_t *twin, uint32_t packet)
{
    return data_of(twin, packet);
}

static uint32_t take(SKYT_Twin_t *twin)
{
    uint32_t packet = twin->packet_free;

    if (packet != SKYT_NONE)
    {
        twin->packet_free = twin->packets[packet].next_free;
    }
    else if (twin->packet_fresh < twin->config.packets_max)
    {
        packet = twin->packet_fresh++;
    }
    else
    {
        return SKYT_NONE;
    }
    if (++twin->counters.packets_on_way > twin->counters.packets_on_way_most)
    {
        twin->counters.packets_on_way_most = twin->counters.packets_on_way;
    }
    return packet;
}

static void give_back(SKYT_Twin_t *twin, uint32_t packet)
{
    if (twin->broken == SKYT_BREAK_LEAK)
    {
        return;
    }
    twin->packets[packet].next_free = twin->packet_free;
    twin->packet_free               = packet;
    --twin->counters.packets_on_way;
}

/* ---- what happens on a link ------------------------------------------------------------------------------------------ */

/* Let faults act on a packet. @return false if the packet is lost */
static bool survives(SKYT_Twin_t *twin, const SKYT_Model_t *model, bool *bad)
{
    if (model->burst_enter_ppm != 0 || *bad)
    {
        *bad = *bad ? !SKYT_Chance(twin, model->burst_leave_ppm) : SKYT_Chance(twin, model->burst_enter_ppm);
        if (*bad && SKYT_Chance(twin, model->burst_loss_ppm))
        {
            ++twin->counters.lost_burst;
            return false;
        }
    }
    if (SKYT_Chance(twin, model->loss_ppm))
    {
        ++twin->counters.lost;
        return false;
    }
    return true;
}

static uint32_t late_us(SKYT_Twin_t *twin, const SKYT_Model_t *model)
{
    uint32_t late = 0;

    if (model->jitter_us != 0)
    {
        late = (uint32_t)(SKYT_Random(twin) % ((uint64_t)model->jitter_us + 1u));
        ++twin->counters.jittered;
    }
    if (SKYT_Chance(twin, model->reorder_ppm))
    {
        late += model->reorder_us;
        ++twin->counters.reordered;
    }
    return late;
}

/* Invert three bits at most: within four kilobytes the CRC-16 finds any three, wherever they are. */
static void flip(SKYT_Twin_t *twin, const SKYT_Model_t *model, uint8_t *data, uint32_t len)
{
    if (len > 0u && SKYT_Chance(twin, model->flip_ppm))
    {
        const uint64_t bits = 1u + SKYT_Random(twin) % 3u;

        for (uint64_t i = 0; i < bits; ++i)
        {
            const uint64_t bit = SKYT_Random(twin) % ((uint64_t)len * 8u);

            data[bit / 8u] = (uint8_t)(data[bit / 8u] ^ (0x80u >> bit % 8u));
        }
        ++twin->counters.flipped;
    }
}

/* Write a packet with another payload around its old tag. */
static void encode_again(const SKY_Packet_t *before, const uint8_t *payload, uint8_t *data)
{
    SKY_Packet_t   pkt = *before;
    uint8_t        head[SKY_HEAD_MAX];
    uint8_t        tail[SKY_TAIL_MAX];
    const uint32_t head_len = (uint32_t)SKY_Packet_EncodeHead(&pkt, head);

    pkt.payload = payload;
    SKY_Packet_Finish(&pkt, NULL, before->tag, head, tail);
    (void)memcpy(data, head, head_len);
    (void)memcpy(data + head_len, payload, pkt.length);
    (void)memcpy(data + head_len + pkt.length, tail, SKY_Packet_TailBytes(&pkt));
}

/* Damage a chunk where no packet checksum covers it, as in the memory of a relay: only the chunk's own checksum can tell. */
static void corrupt(SKYT_Twin_t *twin, const SKYT_Model_t *model, uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;

    if (!SKYT_Chance(twin, model->corrupt_ppm) || SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.length == 0 ||
        !((pkt.is_request && pkt.op == SKY_OP_PUT) || (!pkt.is_request && pkt.op == SKY_OP_GET && pkt.status == SKY_STATUS_OK)))
    {
        return;
    }
    const uint64_t bits = 1u + SKYT_Random(twin) % 3u;

    (void)memcpy(twin->scratch3, pkt.payload, pkt.length);
    for (uint64_t i = 0; i < bits; ++i)
    {
        const uint64_t bit = SKYT_Random(twin) % ((uint64_t)pkt.length * 8u);

        twin->scratch3[bit / 8u] = (uint8_t)(twin->scratch3[bit / 8u] ^ (0x80u >> bit % 8u));
    }
    encode_again(&pkt, twin->scratch3, data);
    ++twin->counters.corrupted;
}

/* Let faults act on a packet that is on its way. @param model  may be NULL @return microseconds by which it comes later */
static uint32_t disturb(SKYT_Twin_t *twin, const SKYT_Model_t *model, uint32_t packet)
{
    const SKYT_Packet_t *one  = &twin->packets[packet];
    uint32_t             late = 0;

    if (model != NULL)
    {
        late = late_us(twin, model);
        if (one->mark.kind != SKYT_PACKET_FALSE) /* else what the attacker changed may be written anew as it was */
        {
            corrupt(twin, model, data_of(twin, packet), one->len);
        }
        flip(twin, model, data_of(twin, packet), one->len);
    }
    return late;
}

static void copy(uint8_t **to, const uint8_t *from, uint32_t len)
{
    if (len > 0)
    {
        (void)memcpy(*to, from, len);
        *to += len;
    }
}

/* Write a packet. */
static void write_parts(const SKYT_Parts_t *parts, uint8_t *to)
{
    copy(&to, parts->head, parts->head_len);
    copy(&to, parts->body, parts->body_len);
    copy(&to, parts->tail, parts->tail_len);
}

/* Note where a packet has been: it is about to leave a satellite. */
static void note_trail(SKYT_Twin_t *twin, SKYT_Packet_t *packet, uint32_t passed_on)
{
    packet->hops     = 0;
    packet->began_us = twin->now_us;
    packet->mark     = (SKYT_Mark_t){SKYT_PACKET_SOUND, 0};
    if (passed_on != SKYT_NONE)
    {
        const SKYT_Packet_t *before = &twin->packets[passed_on];

        packet->mark     = before->mark;
        packet->hops     = before->hops;
        packet->began_us = before->began_us;
        (void)memcpy(packet->trail, before->trail, before->hops * sizeof(*packet->trail));
    }
    if (packet->link % SKYT_LINKS < SKY_ISL_COUNT && packet->hops < SKYT_TRAIL_MAX)
    {
        packet->trail[packet->hops++] = packet->link / SKYT_LINKS;
    }
}

static uint32_t delay_of(const SKYT_Twin_t *twin, const SKYT_Link_t *link)
{
    const uint64_t span_us = twin->delays_until_us - twin->delays_from_us;

    if (twin->now_us >= twin->delays_until_us)
    {
        return link->later_us;
    }
    const uint64_t passed_us = twin->now_us - twin->delays_from_us;

    return (uint32_t)((link->delay_us * (span_us - passed_us) + link->later_us * passed_us) / span_us);
}

void SKYT_SetDelays(SKYT_Twin_t *twin, uint64_t until_us, const uint32_t *isl_us, const uint32_t *ground_us)
{
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        SKYT_Link_t *links = SKYT_LinkOf(twin, node, 0);

        for (uint32_t link = 0; link < SKYT_LINKS; ++link)
        {
            links[link].delay_us = delay_of(twin, &links[link]);
            links[link].later_us = link < SKY_ISL_COUNT ? isl_us[(size_t)node * SKY_ISL_COUNT + link] : ground_us[node];
        }
    }
    twin->delays_from_us  = twin->now_us;
    twin->delays_until_us = until_us;
}

static void launch(SKYT_Twin_t *twin, uint32_t index, uint16_t host, const SKYT_Parts_t *parts, uint64_t sent_us)
{
    const SKYT_Link_t *link   = &twin->links[index];
    const uint32_t     packet = take(twin);
    uint64_t           due_us = sent_us + delay_of(twin, link);

    if (packet == SKYT_NONE)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_PACKETS, index / SKYT_LINKS, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "more packets on their way than there may be");
        return;
    }
    write_parts(parts, data_of(twin, packet));
    twin->packets[packet].link = index;
    twin->packets[packet].host = host;
    twin->packets[packet].len  = parts->head_len + parts->body_len + parts->tail_len;
    note_trail(twin, &twin->packets[packet], parts->passed_on);
    SKYT_Pace_Step(twin, index / SKYT_LINKS, SKYT_NONE, data_of(twin, packet), twin->packets[packet].len);
    due_us += disturb(twin, twin->model, packet);
    due_us += disturb(twin, link->model, packet);
    const uint32_t attack_ppm =
        (twin->model != NULL ? twin->model->attack_ppm : 0u) + (link->model != NULL ? link->model->attack_ppm : 0u);

    if (attack_ppm != 0 && !SKYT_Attack_Sees(twin, packet, attack_ppm, &due_us))
    {
        give_back(twin, packet);
        return;
    }
    ++twin->packets_queued;
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfPacket(twin, packet), due_us);
}

bool SKYT_Network_Inject(SKYT_Twin_t *twin, uint32_t link, uint16_t host, SKYT_Mark_t mark, const uint8_t *data, uint32_t len,
                         uint64_t due_us)
{
    const uint32_t packet = take(twin);

    if (packet == SKYT_NONE)
    {
        return false;
    }
    (void)memcpy(data_of(twin, packet), data, len);
    twin->packets[packet].link = link;
    twin->packets[packet].host = host;
    twin->packets[packet].len  = len;
    note_trail(twin, &twin->packets[packet], SKYT_NONE);
    twin->packets[packet].mark = mark;
    ++twin->packets_queued;
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfPacket(twin, packet), due_us);
    return true;
}

/* Find when the last bit has left the transmitter; @p sent_us is first when the packet is ready. @return false if the transmitter
 * is busy for too long already */
static bool transmit(const SKYT_Twin_t *twin, SKYT_Link_t *link, uint32_t kbps, uint32_t len, uint64_t *sent_us)
{
    const uint64_t ready_ns = *sent_us * NS_PER_US;

    if (kbps == 0)
    {
        return true;
    }
    if (link->busy_until_ns > ready_ns + (uint64_t)twin->config.queue_ms * US_PER_MS * NS_PER_US)
    {
        return false;
    }
    link->busy_until_ns = (link->busy_until_ns > ready_ns ? link->busy_until_ns : ready_ns) + (uint64_t)len * 8000000u / kbps;
    *sent_us            = (link->busy_until_ns + NS_PER_US - 1u) / NS_PER_US;
    return true;
}

/* Check a packet that cannot arrive over this link: maybe its sender had to know that. */
static void check_dead(SKYT_Twin_t *twin, uint32_t node, uint32_t id, const SKYT_Parts_t *parts, uint32_t len)
{
    if (id < SKY_ISL_COUNT && len <= twin->config.packet_bytes)
    {
        write_parts(parts, twin->scratch3);
        SKYT_Check_Dead(twin, node, SKYT_LinkOf(twin, node, id)->down_us, twin->scratch3, len);
    }
}

/* Count down to the packet that is to be lost. @return true if this is it */
static bool is_dropped(SKYT_Twin_t *twin, const SKYT_Parts_t *parts, uint32_t len)
{
    SKY_Packet_t pkt;

    if (twin->drop_after == 0u)
    {
        return false;
    }
    write_parts(parts, twin->scratch3);
    if (SKY_Packet_Decode(twin->scratch3, len, &pkt) != SKY_STATUS_OK || pkt.op == SKY_OP_HELLO || --twin->drop_after > 0u)
    {
        return false;
    }
    ++twin->counters.lost;
    return true;
}

void SKYT_Network_Send(SKYT_Twin_t *twin, uint64_t ready_us, uint32_t node, uint32_t id, uint16_t host, const SKYT_Parts_t *parts)
{
    const uint32_t index   = node * SKYT_LINKS + id;
    const uint32_t len     = parts->head_len + parts->body_len + parts->tail_len;
    SKYT_Link_t   *link    = &twin->links[index];
    uint64_t       sent_us = ready_us;

    ++twin->counters.packets;
    twin->counters.packet_bytes += len;
    if (!SKYT_Network_IsWhole(link))
    {
        check_dead(twin, node, id, parts, len);
        ++twin->counters.lost_cut;
        return;
    }
    if (len > twin->config.packet_bytes ||
        !transmit(twin, link, id < SKY_ISL_COUNT ? twin->config.isl_kbps : twin->config.ground_kbps, len, &sent_us))
    {
        ++twin->counters.lost_queue;
        return;
    }
    if (is_dropped(twin, parts, len))
    {
        return;
    }
    if ((twin->model != NULL && !survives(twin, twin->model, &link->bad[0])) ||
        (link->model != NULL && !survives(twin, link->model, &link->bad[1])))
    {
        return;
    }
    launch(twin, index, host, parts, sent_us);
    if ((twin->model != NULL && SKYT_Chance(twin, twin->model->duplicate_ppm)) ||
        (link->model != NULL && SKYT_Chance(twin, link->model->duplicate_ppm)))
    {
        ++twin->counters.duplicated;
        launch(twin, index, host, parts, sent_us);
    }
}

/* Hand a packet to whoever is on the ground: a host, the mission, or the attacker. */
static void arrive_at_host(SKYT_Twin_t *twin, uint32_t id, uint32_t node)
{
    const SKYT_Packet_t *packet    = &twin->packets[id];
    const bool           is_judged = SKYT_Judge_IsOf(twin, id);
    const uint16_t       hosts     = (uint16_t)twin->config.hosts;
    SKYT_Sight_t         before;

    if (packet->mark.kind == SKYT_PACKET_SOUND)
    {
        SKYT_Check_Hops(twin, packet, node);
    }
    if (packet->host > hosts + (twin->mission != NULL ? 1u : 0u))
    {
        return; /* the attacker reads it */
    }
    const SKY_Host_t *host = packet->host > hosts ? SKYT_Mission_Host(twin) : &twin->grounds[packet->host - 1u].core.host;

    if (is_judged)
    {
        SKYT_Judge_SeeHost(host, &before);
    }
    if (packet->host > hosts)
    {
        SKYT_Mission_Receive(twin, node, data_of(twin, id), packet->len);
    }
    else
    {
        SKYT_Ground_Receive(twin, packet->host, node, data_of(twin, id), packet->len);
    }
    if (is_judged)
    {
        SKYT_Judge_Host(twin, host, id, &before);
    }
    if (packet->host > hosts)
    {
        SKYT_Mission_Run(twin);
    }
    else
    {
        SKYT_Ground_Run(twin, packet->host - 1u);
    }
}

void SKYT_Network_Arrive(SKYT_Twin_t *twin, uint32_t id)
{
    const SKYT_Packet_t *packet = &twin->packets[id]; /* its place is not taken before it is given back */
    const uint32_t       node   = packet->link / SKYT_LINKS;
    const uint32_t       link   = packet->link % SKYT_LINKS;
    const uint32_t       far    = link < SKY_ISL_COUNT ? SKYT_Network_Neighbour(twin, node, link) : node;
    const bool           waited = SKYT_Work_Release(twin, far, id);

    --twin->packets_queued;
    SKYT_Digest(twin, packet->link, data_of(twin, id), packet->len);
    if (!waited && !SKYT_Network_IsWhole(&twin->links[packet->link]))
    {
        ++twin->counters.lost_cut;
    }
    else if (!waited && twin->attack != NULL && !SKYT_Attack_Arrives(twin, id))
    {
        ++twin->counters.lost_cut;
    }
    else if (link == SKYT_LINK_DOWN)
    {
        arrive_at_host(twin, id, node);
    }
    else if (far == SKYT_NONE || !twin->nodes[far].is_up)
    {
        if (link < SKY_ISL_COUNT && packet->mark.kind == SKYT_PACKET_SOUND)
        {
            SKYT_Check_Dead(twin, node, far == SKYT_NONE ? 0 : twin->nodes[far].down_us, data_of(twin, id), packet->len);
        }
        ++twin->counters.lost_dead;
    }
    else if (!waited && SKYT_Work_Hold(twin, far, id, data_of(twin, id)))
    {
        return;
    }
    else
    {
        if (link < SKY_ISL_COUNT && packet->mark.kind == SKYT_PACKET_SOUND)
        {
            SKYT_Check_Route(twin, packet, far);
        }
        twin->arriving = id;
        SKYT_Node_Receive(twin, far, link < SKY_ISL_COUNT ? node : SKYT_NONE, packet->host, data_of(twin, id), packet->len);
        twin->arriving = SKYT_NONE;
    }
    give_back(twin, id);
}
