/**
 * @file
 * Satellites that are late, and places that take their part. What counts as late follows from this call's own answers:
 *
 *     all are asked --- most have answered: the longest silence that ended with an answer is known
 *                       |
 *     IN TIME ----------+-- silent for half as long again, and a little --> LATE
 *                                                                            |
 *        GET: parity can still be asked for --> it is (sky_host_lanes.c)           silent for as long again |
 *        else --------------------------------> SUSPECT: the shell is told, and may name another place <----+ (SKY_Host_Replace),
 *                                               or say that the satellite is lost                             (SKY_Host_GiveUp)
 *
 * A satellite that another process of this machine found silent (SKY_Host_Doubt) is late from its first request on, until it has said something.
 *
 * Blocks with parity may go on without a satellite again and again, before it is late. It is suspect once it has said nothing for its
 * patience meanwhile.
 *
 * On links that are full all answers take long, so nobody is late. A PUT whose code bears that a share is lost gives it up only after more
 * silence, its patience (sky_host_lanes.c): another copy costs less than to mend the block. A share of a PUT then has two pieces, twins, one at each place. The first that
 * is taken ends the other. Both satellites may hold the share after that: who stands in hands it over, and the other has it already.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

#define QUARTER 4u /* of the satellites may be silent, and the answers of the others still tell what is usual */

static uint64_t MostOf(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Return the time since which an answer of a lane's satellite is due. */
static uint64_t SinceUs(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    const SKY_HostPeer_t *peer = &host->peers.peers[lane->peer];

    SKY_ASSERT(lane->asked_us != 0u);
    SKY_ASSERT(lane->peer < host->peer_used);
    return MostOf(peer->heard_us, lane->asked_us);
}

/* ---- how long answers take ---------------------------------------------------------------------------------------------- */

/* Return true if so many have answered that the others are few: a quarter, or as many as the code bears. */
static bool HaveMostAnswered(const SKY_HostWork_t *work)
{
    const uint64_t few = MostOf(1u, MostOf(work->block->stripe.code_m, work->shares / QUARTER));

    SKY_ASSERT(work->block != NULL);
    return work->answered > 0u && work->answered + few >= work->shares;
}

void SKY_HostReplace_Heard(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const SKY_HostPiece_t *piece = &host->blocks.pieces[lane->piece];
    SKY_HostWork_t        *work  = SKY_HostPieces_WorkOf(host, lane);
    const bool             knew  = HaveMostAnswered(work);

    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(lane->request_id != 0u);
    if (lane->asked_us != 0u)
    {
        work->silence_us = MostOf(work->silence_us, host->now_us - SinceUs(host, lane));
    }
    if (!lane->is_answered && piece->from == 0u && piece->round == 0u)
    {
        ++work->answered;
    }
    host->peers.peers[lane->peer].is_suspect = false;
    host->peers.peers[lane->peer].missed_us  = 0;
    for (uint32_t at = 0; !knew && HaveMostAnswered(work) && at < host->active_count; ++at)
    {
        host->peers.peers[host->peers.active[at]].due_us = 0; /* those who are silent may be late now */
    }
}

bool SKY_HostReplace_IsSilent(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    const SKY_Addr_t satellite = host->peers.peers[lane->peer].peer.addr;

    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(satellite.plane != 0u);
    return lane->kind == SKY_HOST_PUT && lane->asked_us != 0u &&
           host->now_us - SinceUs(host, lane) >= SKY_Host_PatienceUs(host, &satellite, 1);
}

uint64_t SKY_HostReplace_LateUs(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    const SKY_HostWork_t *work = SKY_HostPieces_WorkOf(host, lane);
    const SKY_Peer_t     *peer = &host->peers.peers[lane->peer].peer;
    const uint64_t        own_us =
        peer->srtt_us == 0u ? 0u : peer->srtt_us + MostOf(UINT64_C(4) * peer->rttvar_us, peer->cfg.rto_min_us);

    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(peer->cfg.rto_min_us > 0u);
    if (work->shares == 1u) /* there are no others */
    {
        return MostOf(own_us, host->hedge_us == 0u ? peer->cfg.rto_initial_us : host->hedge_us);
    }
    return HaveMostAnswered(work) ? MostOf(own_us, work->silence_us + work->silence_us / 2u + peer->cfg.rto_min_us) : 0u;
}

/* ---- who is late -------------------------------------------------------------------------------------------------------- */

uint64_t SKY_HostReplace_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane)
{
    const SKY_HostWork_t *work       = SKY_HostPieces_WorkOf(host, lane);
    SKY_HostPeer_t       *peer       = &host->peers.peers[lane->peer];
    const bool            has_parity = lane->kind == SKY_HOST_GET && work->block->stripe.code_m > 0u;
    const bool            is_doubted = !has_parity && host->now_us < peer->doubt_us;
    const uint64_t        late_us    = SKY_HostReplace_LateUs(host, lane);

    if ((late_us == 0u && !is_doubted) || lane->asked_us == 0u || lane->is_overdue || work->held != SKY_HOST_NONE ||
        SKY_HostExchange_State(lane) != SKY_SHARE_RUNNING)
    {
        return UINT64_MAX;
    }
    const uint64_t due_us = is_doubted   ? lane->asked_us
                            : has_parity ? SinceUs(host, lane) + 2u * late_us /* parity was asked for */
                                         : SinceUs(host, lane) + late_us;

    SKY_ASSERT(due_us >= lane->asked_us);
    SKY_ASSERT(lane->piece < host->blocks.piece_count);

    if (host->now_us < due_us)
    {
        return due_us;
    }
    lane->is_overdue   = true;
    peer->slow         = true;
    peer->is_suspect   = true;
    host->has_suspects = true;
    return UINT64_MAX;
}

void SKY_Host_Doubt(SKY_Host_t *host, SKY_Addr_t satellite, uint64_t until_us, bool is_lost)
{
    SKY_HostPeer_t *peer = SKY_HostPieces_KnowPeer(host, satellite);

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(until_us > 0u);
    if (peer != NULL)
    {
        peer->doubt_us      = until_us;
        peer->is_doubt_lost = is_lost;
        peer->slow          = true; /* gets ask for parity at once */
    }
}

bool SKY_Host_NextSuspect(SKY_Host_t *host, SKY_Addr_t *satellite)
{
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);
    for (uint32_t i = 0; host->has_suspects && i < host->peer_used; ++i)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[i];

        if (peer->is_suspect)
        {
            peer->is_suspect = false;
            *satellite       = peer->peer.addr;
            SKY_ASSERT(satellite->plane != 0u);
            return true;
        }
    }
    host->has_suspects = false;
    return false;
}

void SKY_Host_GiveUp(SKY_Host_t *host, uint64_t now_us, SKY_Addr_t satellite, uint64_t since_us)
{
    const SKY_HostPeer_t *peer = SKY_Host_PeerOf(host, satellite);

    host->now_us = now_us;
    SKY_ASSERT(since_us <= now_us);
    for (uint32_t place = 0; peer != NULL && peer->heard_us < since_us && place < SKY_HOST_LANES; ++place)
    {
        SKY_HostLane_t *lane = &host->blocks.lanes[peer->lanes[place]];

        if ((peer->lanes_busy & 1u << place) != 0u)
        {
            SKY_ASSERT(lane->request_id != 0u);
            SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
            (void)SKY_HostEnds_Reap(host, lane);
        }
    }
}

/* ---- another place besides ---------------------------------------------------------------------------------------------- */

/* Give a piece of a PUT a twin at the place of round 1, or a new one there if it has one. @return false if there is no memory */
static bool GiveTwin(SKY_Host_t *host, uint32_t number)
{
    const uint32_t twin = SKY_HostPieces_Copy(host, number, 1);

    SKY_ASSERT(number < host->blocks.piece_count);
    if (twin == SKY_HOST_NONE)
    {
        return false;
    }
    if (host->blocks.pieces[number].twin != SKY_HOST_NONE)
    {
        SKY_HostEnds_Drop(host, host->blocks.pieces[number].twin);
    }
    host->blocks.pieces[number].twin = twin;
    host->blocks.pieces[twin].twin   = number;
    SKY_ASSERT(host->blocks.pieces[twin].round == 1u);
    return true;
}

/* Let the piece of a GET go on to its next place. @return false if it does not wait for a satellite that is late */
static bool GoOn(SKY_Host_t *host, uint32_t number)
{
    SKY_HostLane_t *lane =
        host->blocks.pieces[number].lane == SKY_HOST_NONE ? NULL : &host->blocks.lanes[host->blocks.pieces[number].lane];

    SKY_ASSERT(number < host->blocks.piece_count);
    if (lane == NULL || !lane->is_overdue ||
        SKY_HostPieces_NextRound(host->blocks.works[host->blocks.pieces[number].work].block, host->blocks.pieces[number].server,
                                 host->blocks.pieces[number].round) == 0u)
    {
        return false;
    }
    SKY_HostExchange_Stop(lane, SKY_SHARE_EXPIRED);
    (void)SKY_HostEnds_Reap(host, lane);
    return true;
}

bool SKY_Host_Replace(SKY_Host_t *host, uint64_t now_us, const SKY_HostBlock_t *block, uint32_t share)
{
    bool has_moved = false;

    host->now_us = now_us;
    for (uint32_t number = 0; block->status == SKY_STATUS_RUNNING && number < host->blocks.piece_count; ++number)
    {
        const SKY_HostPiece_t *piece = &host->blocks.pieces[number];

        if (piece->work == SKY_HOST_NONE || host->blocks.works[piece->work].block != block || piece->server != share)
        {
            continue;
        }
        if (block->kind == SKY_HOST_GET)
        {
            has_moved |= GoOn(host, number);
        }
        else if (piece->round == 0u)
        {
            has_moved |= GiveTwin(host, number);
        }
    }
    return has_moved;
}
