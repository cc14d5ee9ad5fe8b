/**
 * @file
 * Use of blocks. A get asks for data alone, so it tells the servers that have nothing but parity of a block that it is used. Else they would take it
 * for one that nobody wants, and evict it first.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

/* Tell a server, if its satellite is open. If not, a later get does. */
static void Tell(SKY_Host_t *host, const SKY_HostWork_t *work, uint32_t server)
{
    const SKY_HostPlace_t *place = &work->block->servers[server];
    const SKY_Addr_t       entry = {place->entry_plane, place->entry_slot};
    SKY_HostPeer_t        *peer  = SKY_HostPieces_KnowPeer(host, (SKY_Addr_t){place->plane, place->slot});
    SKY_ShareCfg_t         cfg;
    SKY_Packet_t           pkt;
    SKY_ASSERT(server < work->block->server_count);
    SKY_ASSERT(place->plane != 0u);

    if (peer == NULL || !SKY_HostOpen_May(host, peer, entry, place->endpoint))
    {
        return;
    }
    SKY_HostPieces_Share(host, work->block, server, 1, &cfg);
    cfg.deadline_us = work->deadline_us;
    cfg.gateway     = entry;
    cfg.request_id  = (uint64_t)(SKY_HostRandom_Number(host) | 1u) << 32; /* nobody waits for an answer */
    SKY_ShareCfg_Request(&cfg, &peer->peer, host->now_us, SKY_OP_HAS, 0, &pkt);
    pkt.chunk_id = server;
    pkt.flags    = SKY_FLAG_USE;
    SKY_HostOpen_Send(host, place->endpoint, &pkt);
}

void SKY_HostUse_Tell(SKY_Host_t *host)
{
    SKY_ASSERT(host->tells_use);
    for (uint32_t i = 0; i < host->blocks.work_count; ++i)
    {
        SKY_HostWork_t *work  = &host->blocks.works[i];
        const bool      tells = work->block != NULL && work->tells_use && work->held != SKY_HOST_NONE; /* else all are asked */

        work->tells_use = false;
        for (uint32_t server = 0; tells && server < work->block->server_count && server < work->block->stripe.chunk_total;
             ++server)
        {
            if (SKY_Stripe_IsParity(&work->block->stripe, server)) /* its chunk of the first row */
            {
                Tell(host, work, server);
            }
        }
    }
    host->tells_use = false;
    SKY_ASSERT(!host->tells_use);
}
