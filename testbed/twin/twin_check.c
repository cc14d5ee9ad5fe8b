/**
 * @file
 * Invariants that are checked during a run: see SKYT_Invariant_t.
 */
#include <stdio.h>
#include <string.h>

#include "twin_priv.h"

#define SILENT_HELLOS \
    (SKY_HELLO_LOST + 2u)  /* after so many hellos without an answer a link is silent to all: greetings are not in step */
#define ON_WAY_US 3000000u /* longer than a packet is on one link, faults included */

void SKYT_Check_Fail(SKYT_Twin_t *twin, SKYT_Invariant_t invariant, uint32_t node, uint32_t op, uint32_t block, uint32_t chunk,
                     const char *text)
{
    if (twin->stopped != SKYT_STOP_NOT)
    {
        return;
    }
    ++twin->counters.violations[invariant];
    if (twin->violation_count < SKYT_VIOLATIONS_KEPT || invariant == SKYT_INVARIANT_LIVELOCK) /* a livelock is always the last */
    {
        twin->violation_count += twin->violation_count < SKYT_VIOLATIONS_KEPT ? 1u : 0u;
        SKYT_Violation_t *violation = &twin->violations[twin->violation_count - 1u];

        violation->time_us   = twin->now_us;
        violation->invariant = (uint32_t)invariant;
        violation->node      = node;
        violation->op        = op;
        violation->block     = block;
        violation->chunk     = chunk;
        (void)snprintf(violation->text, sizeof(violation->text), "%s", text);
    }
    if (++twin->violated == twin->config.violations_max)
    {
        twin->stopped = SKYT_STOP_VIOLATIONS;
    }
}

/* Report what is wrong with the bytes of a chunk, if anything is. */
void SKYT_Check_Bytes(SKYT_Twin_t *twin, const uint8_t *data, uint32_t len, uint32_t node, uint32_t op, uint32_t block,
                      uint64_t version, uint32_t chunk)
{
    uint64_t claimed_version;

    SKYT_Content_Expect(twin, block, version, chunk, twin->scratch, len);
    if (memcmp(twin->scratch, data, len) == 0)
    {
        return;
    }
    const uint32_t claimed = SKYT_Content_Claims(data, len, &claimed_version);

    if (claimed < twin->block_count && claimed != block)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_FOREIGN, node, op, block, chunk, "a chunk of another block came");
    }
    else if (version != 0 && claimed == block && claimed_version != version)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, node, op, block, chunk, "a chunk of another version of the value came");
    }
    else
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_EXACT, node, op, block, chunk, "a chunk is not what was put");
    }
}

void SKYT_Check_Chunk(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk)
{
    SKYT_Check_Bytes(twin, active->buffer + SKY_Stripe_Offset(&active->core.block.stripe, chunk),
                     SKY_Stripe_ChunkBytes(&active->core.block.stripe, chunk), SKYT_NONE, active->op, active->block,
                     active->version, chunk);
}

/* One of so many chunks that nothing has damaged is looked at, because that takes time. */
#define TAKEN_EVERY 16u

void SKYT_Check_Taken(SKYT_Twin_t *twin, uint32_t node, const SKY_Packet_t *pkt)
{
    const uint32_t     block = SKYT_Content_BlockOf(twin, pkt->tenant, pkt->key);
    const SKY_Store_t *store = &twin->nodes[node].store;
    SKY_ChunkView_t    view;

    if (block == SKYT_NONE ||
        (twin->counters.flipped + twin->counters.corrupted == 0 && twin->counters.events % TAKEN_EVERY != 0))
    {
        return;
    }
    const uint32_t entry = SKY_Store_Find(store, pkt->tenant, pkt->key);

    if (SKY_Store_Peek(store, entry, pkt->chunk_id, &view) == SKY_STATUS_OK)
    {
        uint64_t version;
        uint32_t content;

        SKY_Store_Instance(store, entry, &version, &content);
        SKYT_Check_Bytes(twin, view.data, view.len, node, SKYT_NONE, block, version, pkt->chunk_id);
    }
}

void SKYT_Check_Request(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt)
{
    const uint64_t left_us = active->deadline_us > twin->now_us ? active->deadline_us - twin->now_us : 1u;
    const uint64_t said_us = (uint64_t)pkt->deadline_ms * US_PER_MS;

    if (said_us < left_us || said_us - left_us >= US_PER_MS)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIFETIME, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "the deadline in a request is not that of its operation");
    }
}

/* Return true if all links are up, as far as this satellite knows. */
static bool knows_of_nothing(const SKYT_Twin_t *twin, uint32_t node)
{
    const SKYT_Node_t *here = &twin->nodes[node];

    return here->is_up && here->core.router.map != NULL && here->core.map.exceptions == 0;
}

void SKYT_Check_Hops(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node)
{
    bool is_calm = packet->hops > 0 && twin->map_changed_us < packet->began_us && knows_of_nothing(twin, node);

    for (uint32_t i = 0; is_calm && i < packet->hops; ++i)
    {
        is_calm = knows_of_nothing(twin, packet->trail[i]);
    }
    if (is_calm && packet->hops != SKY_Torus_Hops(&twin->torus, SKYT_AddrOf(twin, packet->trail[0]), SKYT_AddrOf(twin, node)))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_SHORTEST, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a packet came to this satellite on a detour, although no link is known to be down");
    }
}

void SKYT_Check_HopLimit(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node, const SKY_Packet_t *pkt)
{
    const uint32_t passed_on = packet->hops - (pkt->src.plane != 0 && packet->hops > 0 ? 1u : 0u); /* its maker does not count */

    if (passed_on + pkt->hop_limit > SKY_LIMIT_HOP_LIMIT)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_ROUTE, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a packet came to this satellite with a hop limit that was not lowered at each hop");
    }
}

void SKYT_Check_Store(SKYT_Twin_t *twin, uint32_t node)
{
    const SKY_Store_t         *store = &twin->nodes[node].store;
    const SKY_StoreCounters_t *held  = &store->counters;

    if (store->slab.used > store->cfg.slot_count || held->blocks > held->chunks || held->partial > held->chunks ||
        held->bytes > (uint64_t)(held->chunks - held->partial) * store->cfg.slot_bytes)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIMIT, node, SKYT_NONE, SKYT_NONE, SKYT_NONE, "a store holds more than it may");
    }
    if (store->slab.used > held->chunks + held->blocks)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIMIT, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a store counts slots in which nothing lies");
    }
}

void SKYT_Check_Route(SKYT_Twin_t *twin, const SKYT_Packet_t *packet, uint32_t node)
{
    for (uint32_t i = 0; i < packet->hops; ++i)
    {
        if (packet->trail[i] == node && SKYT_Hello_AllKnow(twin, packet->began_us))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_ROUTE, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                            "a packet came to this satellite twice, although all know which links are down");
            return;
        }
    }
}

void SKYT_Check_Dead(SKYT_Twin_t *twin, uint32_t node, uint64_t since_us, const uint8_t *data, uint32_t len)
{
    const uint64_t began_us = twin->nodes[node].up_us; /* the satellite heard nothing before */
    const uint64_t from_us  = since_us > began_us ? since_us : began_us;
    const uint64_t most_us  = SILENT_HELLOS * (uint64_t)twin->config.hello_ms * US_PER_MS + ON_WAY_US;
    SKY_Packet_t   pkt;

    if (since_us != 0 && twin->now_us <= from_us + most_us)
    {
        return;
    }
    if (SKY_Packet_Decode(data, len, &pkt) == SKY_STATUS_OK &&
        ((pkt.op != SKY_OP_HELLO && pkt.op != SKY_OP_ASSOCIATE) || since_us == 0))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_ROUTE, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        since_us == 0 ? "this satellite sends over a link that does not exist"
                                      : "this satellite still sends over a link on which it has heard nothing for long");
    }
}

/* Count the chunks that a satellite's shares have on their way. */
static uint32_t on_way_of(const SKY_Host_t *host, const SKY_HostPeer_t *peer)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SKY_HOST_LANES; ++i)
    {
        if ((peer->lanes_busy >> i & 1u) != 0)
        {
            const SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[i]];

            count += lane->kind == SKY_HOST_GET ? lane->u.fetch.on_way : lane->u.push.on_way;
        }
    }
    return count;
}

void SKYT_Check_Window(SKYT_Twin_t *twin, uint32_t ground)
{
    const SKY_Host_t *host = &twin->grounds[ground].core.host;

    for (uint32_t i = 0; i < host->peers.peer_count; ++i)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[i];

        if (peer->peer.outstanding != (peer->lanes_busy == 0 ? 0 : on_way_of(host, peer)))
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_WINDOW, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                            "a host counts other chunks as on their way to a satellite than its shares have");
        }
    }
}

void SKYT_Check_Packets(SKYT_Twin_t *twin)
{
    if (twin->packets_queued != twin->counters.packets_on_way)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_PACKETS, SKYT_NONE, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "packets were taken and not given back");
    }
}
