/**
 * @file
 * Questions of an inquiry: who is asked, and what they say.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define STATS_BYTES ((uint32_t)(8u * SKY_STATS_KVC_COUNT))

/* Return true if another process of this machine found a satellite lost, and it has said nothing since. */
static bool IsDoubted(const SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_HostPeer_t *peer = SKY_Host_PeerOf(&ground->host, satellite);

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(peer == NULL || SKY_Addr_Equal(peer->peer.addr, satellite));
    return peer != NULL && peer->is_doubt_lost && ground->now_us < peer->doubt_us;
}

/* Return how long to wait for satellites that are doubted: as one does in a hurry for the others that are asked. @param wait_us  if there are none */
static uint64_t DoubtedUs(SKY_Ground_t *ground, uint64_t wait_us)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    uint32_t             count   = 0;

    SKY_ASSERT(inquiry->running == 0u);
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->addrs[count] = inquiry->asks[i].satellite;
        count += IsDoubted(ground, inquiry->asks[i].satellite) ? 0u : 1u;
    }
    SKY_ASSERT(count <= inquiry->count);
    return count > 0u ? SKY_Host_HurryUs(&ground->host, inquiry->addrs, count) : wait_us;
}

void SKY_GroundInquiryAsk_All(SKY_Ground_t *ground, uint8_t op, uint64_t wait_us)
{
    SKY_GroundInquiry_t *inquiry    = &ground->inquiry;
    uint64_t             doubted_us = wait_us;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(op == SKY_OP_PING || op == SKY_OP_STATS);
    SKY_ASSERT(op == SKY_OP_PING || inquiry->count <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->addrs[i] = inquiry->asks[i].satellite;
    }
    if (wait_us == 0u)
    {
        wait_us    = SKY_Host_PatienceUs(&ground->host, inquiry->addrs, inquiry->count);
        doubted_us = DoubtedUs(ground, wait_us);
    }
    inquiry->began_us = ground->now_us;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_ReachAsk_t *ask      = &inquiry->asks[i];
        SKY_HostQuestion_t   *question = &inquiry->questions[i];

        (void)memset(question, 0, sizeof(*question));
        question->place.plane       = ask->satellite.plane;
        question->place.slot        = ask->satellite.slot;
        question->place.entry_plane = ask->entry.plane;
        question->place.entry_slot  = ask->entry.slot;
        question->place.endpoint    = ground->shell.EndpointOf(ground->shell.context, ask->entry);
        question->apid              = SKY_APID_KVC;
        question->op                = op;
        question->deadline_ms =
            (uint32_t)((IsDoubted(ground, ask->satellite) ? doubted_us : wait_us) / SKY_GROUND_US_PER_MS + 1u);
        question->room_bytes = op == SKY_OP_STATS ? STATS_BYTES : 0u;
        question->room       = op == SKY_OP_STATS ? inquiry->stats + (size_t)i * STATS_BYTES : NULL;
        question->owner      = inquiry;
        SKY_ASSERT(question->place.plane != 0u);
        SKY_ASSERT(question->deadline_ms >= 1u);
        inquiry->running += SKY_GroundQuestion_Ask(ground, question) ? 1u : 0u;
    }
}

void SKY_GroundInquiryAsk_AddOver(SKY_Ground_t *ground, SKY_Addr_t satellite, SKY_Addr_t entry)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    uint32_t             at      = 0;

    SKY_ASSERT(inquiry->running == 0u);
    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(entry.plane != 0u);
    while (at < inquiry->count && !SKY_Addr_Equal(inquiry->asks[at].satellite, satellite))
    {
        ++at;
    }
    if (at == inquiry->count)
    {
        inquiry->asks[at].satellite = satellite;
        inquiry->asks[at].entry     = entry;
        inquiry->asks[at].answered  = false;
        ++inquiry->count;
    }
    SKY_ASSERT(at < inquiry->count);
}

bool SKY_GroundInquiryAsk_Add(SKY_Ground_t *ground, SKY_Addr_t satellite)
{
    const SKY_HostPlace_t place = SKY_GroundWays_Place(ground, satellite);
    const SKY_Addr_t      entry = {place.entry_plane, place.entry_slot};

    if (place.plane == 0u)
    {
        return false;
    }
    SKY_GroundInquiryAsk_AddOver(ground, satellite, entry);
    return true;
}

bool SKY_GroundInquiryAsk_IsOk(const SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    return question->status == SKY_STATUS_DONE && question->answer.status == SKY_STATUS_OK;
}

const uint8_t *SKY_GroundInquiryAsk_Stats(const SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->op == SKY_OP_STATS);
    return SKY_GroundInquiryAsk_IsOk(question) && question->answer.length == STATS_BYTES ? question->answer.payload : NULL;
}

uint64_t SKY_GroundInquiryAsk_Counter(const uint8_t *stats, uint32_t number)
{
    uint64_t value = 0;

    SKY_ASSERT(number < SKY_STATS_KVC_COUNT);
    SKY_ASSERT(stats != NULL);
    for (uint32_t i = 0; i < 8u; ++i)
    {
        value = value << 8 | stats[8u * number + i];
    }
    return value;
}
