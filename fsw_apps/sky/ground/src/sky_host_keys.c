/**
 * @file
 * Places of the library that the session of each satellite has: see sky_host_open.h.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

void SKY_HostKeys_Init(SKY_Host_t *host, uint32_t index)
{
    const SKY_HostSecurity_t *security = &host->cfg.security;
    SKY_ASSERT(index < host->peers.peer_count);

    if (security->is_keyed)
    {
        SKY_Session_Init(&host->peers.peers[index].opening.session, security->wanted, security->accepted, 2u * index,
                         2u * index + 1u);
    }
}

void SKY_HostKeys_Forget(SKY_Host_t *host, SKY_HostPeer_t *peer)
{
    SKY_ASSERT(peer->active == SKY_HOST_NONE);
    SKY_ASSERT(peer->lanes_busy == 0u);
    if (host->cfg.security.is_keyed)
    {
        SKY_Session_End(&peer->opening.session, host->cfg.security.crypto);
    }
}

uint32_t SKY_Host_Suites(const SKY_Host_t *host)
{
    uint32_t suites = 0;

    SKY_ASSERT(host->peers.peers != NULL);
    for (uint32_t i = 0; i < host->peer_used; ++i)
    {
        const SKY_Session_t *session = &host->peers.peers[i].opening.session;

        if (session->state == SKY_SESSION_ESTABLISHED)
        {
            suites |= SKY_SUITE_BIT(session->suite);
        }
    }
    SKY_ASSERT(suites == 0u || host->cfg.security.is_keyed);
    return suites;
}
