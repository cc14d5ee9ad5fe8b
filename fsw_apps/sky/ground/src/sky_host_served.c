/**
 * @file
 * What each satellite did in a block: one record for each, however many pieces it was asked for. And what it did not do, while blocks went on
 * without it.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

/* Return the earlier of two times. 0 is none. */
static uint64_t FirstOf(uint64_t one_us, uint64_t other_us)
{
    return one_us == 0u || (other_us != 0u && other_us < one_us) ? other_us : one_us;
}

/* Return the record of a satellite, a new one if it has none; NULL: there is no room. */
static SKY_HostServed_t *RecordOf(SKY_HostBlock_t *block, const SKY_HostPeer_t *peer)
{
    uint32_t at = 0;

    SKY_ASSERT(block->served != NULL || block->served_room == 0u);
    SKY_ASSERT(block->served_count <= block->served_room);
    while (at < block->served_count &&
           !SKY_Addr_Equal((SKY_Addr_t){block->served[at].plane, block->served[at].slot}, peer->peer.addr))
    {
        ++at;
    }
    if (at == block->served_room)
    {
        return NULL;
    }
    if (at == block->served_count)
    {
        block->served[at] = (SKY_HostServed_t){.plane       = peer->peer.addr.plane,
                                               .slot        = peer->peer.addr.slot,
                                               .entry_plane = peer->entry.plane,
                                               .entry_slot  = peer->entry.slot};
        ++block->served_count;
    }
    return &block->served[at];
}

void SKY_HostServed_Add(SKY_HostBlock_t *block, const SKY_HostPeer_t *peer, const SKY_HostServed_t *part)
{
    SKY_HostServed_t *record = RecordOf(block, peer);

    SKY_ASSERT(part->first_us <= part->last_us);
    if (record == NULL)
    {
        return;
    }
    record->srtt_us = peer->peer.srtt_us;
    record->chunks += part->chunks;
    record->requests += part->requests;
    record->repeats += part->repeats;
    record->bytes += part->bytes;
    record->asked_us = FirstOf(record->asked_us, part->asked_us);
    record->first_us = FirstOf(record->first_us, part->first_us);
    record->last_us  = record->last_us > part->last_us ? record->last_us : part->last_us;
    SKY_ASSERT(record->first_us <= record->last_us);
}

void SKY_HostServed_Missed(SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    SKY_HostPeer_t *peer = &host->peers.peers[lane->peer];

    SKY_ASSERT(lane->request_id != 0u);
    SKY_ASSERT(peer->missed_us <= host->now_us);
    if (!peer->slow || lane->asked_us == 0u || lane->is_answered)
    {
        return;
    }
    peer->missed_us = peer->missed_us == 0u ? lane->asked_us : peer->missed_us;
    if (host->now_us - peer->missed_us >= SKY_Host_PatienceUs(host, &peer->peer.addr, 1))
    {
        peer->is_suspect   = true;
        peer->missed_us    = 0;     /* it is told once, and again after as much silence; */
        peer->slow         = false; /* meanwhile it is waited for once more, as its late answers are not looked at */
        host->has_suspects = true;
    }
}
