/**
 * @file
 * Hints of one process of a machine to another: which satellites are silent, and how long answers take.
 *
 * A satellite that another process found silent is asked as any other. It counts as late at once (SKY_Host_Doubt): a put sends its share to the
 * stand-in as well, and a get asks for parity, or at the stand-in. If it was lost there, a look begins here, which waits for it no longer than
 * for an answer that one can do without: with the questions of that process these are as many as make it lost.
 *
 * A round trip counts only if it makes this host wait less. It may be that of links which were full, or that of a satellite which was held up.
 * Nobody corrects it at one that is silent, and each process passes it on: it would hold up all of them, as long as one follows the other.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

#define FIRST_TIMER 3u /* times the first round trip that is known (SKY_Peer_OnRtt) */

/* Return true if a satellite has said something since a time. */
static bool HasSpoken(const SKY_Ground_t *ground, SKY_Addr_t satellite, uint64_t since_us)
{
    const SKY_HostPeer_t *peer = SKY_Host_PeerOf(&ground->host, satellite);

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(since_us <= ground->now_us);
    return ground->hearing[SKY_GroundWays_NumberOf(ground, satellite)].heard_us > since_us ||
           (peer != NULL && peer->heard_us > since_us);
}

void SKY_Ground_TakeHint(SKY_Ground_t *ground, uint64_t now_us, const SKY_GroundHint_t *hint)
{
    const uint64_t   lost_us   = ground->reach.cfg.lost_us;
    const uint64_t   silent_us = hint->silent_us;
    const SKY_Addr_t satellite = hint->satellite;

    SKY_ASSERT(now_us >= ground->now_us);
    SKY_ASSERT(lost_us > 0u);
    ground->now_us = now_us;
    if (!SKY_Torus_Contains(&ground->limits.torus, satellite))
    {
        return;
    }
    if (hint->rtt_us != 0u && hint->rtt_us <= ground->host.questions.patience.first_us / FIRST_TIMER)
    {
        SKY_Host_Expect(&ground->host, satellite, hint->rtt_us);
    }
    if (silent_us == 0u || silent_us > now_us || now_us - silent_us >= lost_us || SKY_Ground_IsLost(ground, satellite) ||
        HasSpoken(ground, satellite, silent_us))
    {
        return;
    }
    SKY_ASSERT(silent_us + lost_us > now_us);
    SKY_Host_Doubt(&ground->host, satellite, silent_us + lost_us, hint->is_lost);
    if (hint->is_lost)
    {
        ground->doubted = satellite;
    }
}

SKY_GroundHint_t SKY_Ground_Hint(const SKY_Ground_t *ground, uint64_t now_us, uint32_t number)
{
    const SKY_Addr_t            satellite = SKY_GroundWays_AddrOf(ground, number);
    const SKY_ReachSatellite_t *record    = &ground->reach.satellites[number];
    const SKY_HostPeer_t       *peer      = SKY_Host_PeerOf(&ground->host, satellite);
    const bool                  is_told   = peer != NULL && now_us < peer->doubt_us;
    SKY_GroundHint_t            hint      = {satellite, peer != NULL ? peer->peer.srtt_us : 0u, 0, record->is_lost};

    SKY_ASSERT(now_us >= ground->now_us);
    SKY_ASSERT(!record->is_lost || !record->is_suspect);
    if (record->is_lost || record->is_suspect)
    {
        hint.silent_us = record->is_lost ? record->asked_us : now_us;
    }
    else if (is_told && (peer->is_doubt_lost || peer->missed_us == 0u))
    {
        hint.silent_us = peer->doubt_us - ground->reach.cfg.lost_us; /* hearsay does not become younger */
        hint.is_lost   = peer->is_doubt_lost;
    }
    else if (peer != NULL)
    {
        hint.silent_us = peer->missed_us; /* blocks went on without it, by their parity */
    }
    SKY_ASSERT(hint.silent_us <= now_us);
    SKY_ASSERT(!hint.is_lost || hint.silent_us > 0u);
    return hint;
}
