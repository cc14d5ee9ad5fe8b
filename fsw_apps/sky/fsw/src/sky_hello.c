/**
 * @file
 * Hellos between neighbours.
 */
#include "sky_hello.h"
#include "sky_mix.h"

#include <string.h>

#include "sky_assert.h"

#define LINK_BITS    3u /* bits of a request id that name the link which was asked; the time is above */
#define LINK_MASK    ((1u << LINK_BITS) - 1u)
#define SECOND_US    1000000u
#define HOLD_DOUBLED 5u /* 2^5 s are SKY_HELLO_HOLD_MOST_US */

/* ---- wire ------------------------------------------------------------------------------------------------------------ */

static void Put(uint8_t *at, uint64_t value, uint32_t bytes)
{
    SKY_ASSERT(bytes >= 1u);
    SKY_ASSERT(bytes <= 8u);
    SKY_ASSERT(bytes == 8u || value >> (8u * bytes) == 0u); /* the value fits the bytes */
    for (uint32_t i = 0; i < bytes; ++i)
    {
        at[i] = (uint8_t)(value >> (8u * (bytes - 1u - i)) & 0xFFu);
    }
}

static uint64_t Get(const uint8_t *at, uint32_t bytes)
{
    uint64_t value = 0;
    SKY_ASSERT(bytes >= 1u);
    SKY_ASSERT(bytes <= 8u);

    for (uint32_t i = 0; i < bytes; ++i)
    {
        value = value << 8 | at[i];
    }
    return value;
}

static void PutState(uint8_t *at, const SKY_LinkState_t *state)
{
    SKY_ASSERT(state->addr.plane != 0u);
    SKY_ASSERT(state->sequence != 0u);
    SKY_ASSERT(state->down >> SKY_ISL_COUNT == 0u);
    Put(at + SKY_LINK_STATE_OFF_PLANE, state->addr.plane, 2);
    Put(at + SKY_LINK_STATE_OFF_SLOT, state->addr.slot, 2);
    Put(at + SKY_LINK_STATE_OFF_SEQUENCE, state->sequence, 4);
    Put(at + SKY_LINK_STATE_OFF_DOWN, state->down, 2);
}

static void GetState(const uint8_t *at, SKY_LinkState_t *state)
{
    state->addr.plane = (uint16_t)Get(at + SKY_LINK_STATE_OFF_PLANE, 2);
    state->addr.slot  = (uint16_t)Get(at + SKY_LINK_STATE_OFF_SLOT, 2);
    state->sequence   = (uint32_t)Get(at + SKY_LINK_STATE_OFF_SEQUENCE, 4);
    state->down       = (uint16_t)Get(at + SKY_LINK_STATE_OFF_DOWN, 2);
}

static uint64_t DigestOf(const SKY_Hello_t *hello)
{
    return hello->router->map == NULL ? 0u : hello->router->map->digest;
}

/* Make a HELLO to the neighbour on a link, with the states that are already in the payload. */
static void Fill(const SKY_Hello_t *hello, SKY_LinkId_t link, uint32_t count, SKY_HelloOut_t *out)
{
    SKY_ASSERT(count <= SKY_LIMIT_LINK_STATES);
    SKY_ASSERT(link < SKY_ISL_COUNT);
    (void)memset(&out->pkt, 0, sizeof(out->pkt));
    out->link          = link;
    out->pkt.apid      = SKY_APID_ISL;
    out->pkt.seq_flags = SKY_SEQ_WHOLE;
    out->pkt.op        = SKY_OP_HELLO;
    out->pkt.hop_limit = 1;
    out->pkt.src       = hello->router->self;
    out->pkt.dst       = SKY_Torus_Neighbour(&hello->router->torus, hello->router->self, link);
    out->pkt.payload   = out->payload;
    out->pkt.length    = SKY_HELLO_BYTES + count * SKY_LINK_STATE_BYTES;
    Put(out->payload + SKY_HELLO_OFF_DIGEST, DigestOf(hello), 8);
    Put(out->payload + SKY_HELLO_OFF_COUNT, count, 2);
    Put(out->payload + SKY_HELLO_OFF_RESERVED, 0, 2);
    SKY_ASSERT(out->pkt.dst.plane != 0u); /* the link has a neighbour */
    SKY_ASSERT(out->pkt.length <= sizeof(out->payload));
}

/* Make a greeting, or the answer to one. It carries our own state: a neighbour that hears us, but is not heard, has to know that
 * we do not use the link, and news does not go over unused links. */
static void FillGreeting(const SKY_Hello_t *hello, SKY_LinkId_t link, SKY_HelloOut_t *out)
{
    SKY_LinkState_t own;
    uint32_t        count = 0;
    SKY_ASSERT(link < SKY_ISL_COUNT);

    if (hello->router->map != NULL && SKY_Map_Own(hello->router->map, &own))
    {
        PutState(out->payload + SKY_HELLO_BYTES, &own);
        count = 1;
    }
    Fill(hello, link, count, out);
    SKY_ASSERT(count <= 1u);
}

/* ---- up and down ----------------------------------------------------------------------------------------------------- */

static bool CouldBeUsed(const SKY_HelloLink_t *link)
{
    SKY_ASSERT(link->is_present || !link->is_due);
    return link->is_present && !link->is_cut && !link->is_silent;
}

/* Let routes follow a link that comes back, at once or after the time for which it is held down. */
static void UpdateRoute(SKY_Hello_t *hello, uint64_t now_us, uint32_t id)
{
    SKY_ASSERT(id < SKY_ISL_COUNT);
    const SKY_HelloLink_t *link = &hello->links[id];

    SKY_Router_SetLinkUp(hello->router, (SKY_LinkId_t)id, CouldBeUsed(link) && now_us >= link->held_us);
    SKY_ASSERT((hello->router->usable >> id & 1u) == 0u || link->is_present);
}

static uint64_t HoldUs(uint32_t times_before)
{
    return times_before < HOLD_DOUBLED ? (uint64_t)SECOND_US << times_before : SKY_HELLO_HOLD_MOST_US;
}

/* Act on a change of what a link's use depends on. @param before  the link could be used until now */
static void Changed(SKY_Hello_t *hello, uint64_t now_us, uint32_t id, bool before)
{
    SKY_HelloLink_t *link = &hello->links[id];
    const bool       now  = CouldBeUsed(link);

    if (before && !now)
    {
        link->flaps = now_us - link->up_us < SKY_HELLO_CALM_US ? link->flaps + 1u : 1u;
    }
    else if (!before && now)
    {
        link->up_us   = now_us;
        link->held_us = link->flaps > SKY_HELLO_FLAPS_FREE ? now_us + HoldUs(link->flaps - SKY_HELLO_FLAPS_FREE - 1u) : 0u;
    }
    if (before != now)
    {
        UpdateRoute(hello, now_us, id);
    }
    SKY_ASSERT(!now || link->is_present);
    SKY_ASSERT(!before || now || link->flaps >= 1u);
}

void SKY_Hello_Init(SKY_Hello_t *hello, SKY_Router_t *router, uint64_t now_us, uint64_t period_us)
{
    (void)memset(hello, 0, sizeof(*hello));
    hello->router    = router;
    hello->period_us = period_us;
    hello->due_us    = now_us + period_us * (1u + router->self.slot % 8u) / 8u; /* satellites do not greet all at once */
    if (period_us == 0u)
    {
        router->map = NULL;
    }
    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        const bool is_there = SKY_Torus_Neighbour(&router->torus, router->self, (SKY_LinkId_t)id).plane != 0u;

        hello->links[id].is_present = is_there;
        hello->links[id].is_due     = is_there && period_us != 0u;
        hello->links[id].heard_us   = now_us;
        hello->links[id].up_us      = now_us;
        UpdateRoute(hello, now_us, id);
    }
    SKY_ASSERT(hello->due_us >= now_us);
    SKY_ASSERT(period_us != 0u || router->map == NULL); /* nothing would repair a map */
}

void SKY_Hello_SetLink(SKY_Hello_t *hello, uint64_t now_us, SKY_LinkId_t id, bool is_present, bool is_cut)
{
    SKY_HelloLink_t *link     = &hello->links[id];
    const bool       before   = CouldBeUsed(link);
    const bool       is_other = link->is_present != is_present || link->is_cut != is_cut;

    link->is_present = is_present;
    link->is_cut     = is_cut;
    link->is_due     = (link->is_due || is_other) && is_present && !is_cut && hello->period_us != 0u;
    if (is_cut && hello->period_us != 0u)
    {
        link->is_silent = true; /* the link is silent until the neighbour is heard again */
    }
    SKY_ASSERT(!link->is_due || (is_present && !is_cut));
    Changed(hello, now_us, (uint32_t)id, before);
    SKY_ASSERT(!link->is_silent || hello->period_us != 0u); /* no link is silent where nobody greets */
}

void SKY_Hello_Greet(SKY_Hello_t *hello, SKY_LinkId_t id)
{
    SKY_HelloLink_t *link = &hello->links[id];
    SKY_ASSERT(id < SKY_ISL_COUNT);

    link->is_due = link->is_present && !link->is_cut && hello->period_us != 0u;
    SKY_ASSERT(!link->is_due || hello->period_us != 0u);
}

void SKY_Hello_Heard(SKY_Hello_t *hello, uint64_t now_us, SKY_LinkId_t id)
{
    SKY_ASSERT((uint32_t)id < SKY_ISL_COUNT);
    SKY_HelloLink_t *link = &hello->links[id];

    link->heard_us   = now_us;
    link->heard_once = true;
    if (link->is_silent && !link->is_cut)
    {
        const bool before = CouldBeUsed(link);

        link->is_silent = false;
        Changed(hello, now_us, (uint32_t)id, before);
    }
    SKY_ASSERT(!link->is_silent || link->is_cut);
}

/* ---- arrivals -------------------------------------------------------------------------------------------------------- */

static bool IsSound(const SKY_Hello_t *hello, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    return ingress < SKY_ISL_COUNT && pkt->status == SKY_STATUS_OK && pkt->length >= SKY_HELLO_BYTES &&
           SKY_Addr_Equal(pkt->src, SKY_Torus_Neighbour(&hello->router->torus, hello->router->self, ingress)) &&
           Get(pkt->payload + SKY_HELLO_OFF_COUNT, 2) <= SKY_LIMIT_LINK_STATES &&
           pkt->length == SKY_HELLO_BYTES + Get(pkt->payload + SKY_HELLO_OFF_COUNT, 2) * SKY_LINK_STATE_BYTES;
}

static void TakeStates(SKY_Hello_t *hello, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    const uint32_t count = (uint32_t)Get(pkt->payload + SKY_HELLO_OFF_COUNT, 2); /* IsSound has bounded the count */
    SKY_ASSERT(count <= SKY_LIMIT_LINK_STATES);
    SKY_ASSERT(hello->router->map != NULL);
    SKY_ASSERT(pkt->length == SKY_HELLO_BYTES + count * SKY_LINK_STATE_BYTES);
    SKY_ASSERT(ingress < SKY_ISL_COUNT);

    for (uint32_t i = 0; i < count; ++i)
    {
        SKY_LinkState_t state;

        GetState(pkt->payload + SKY_HELLO_BYTES + (size_t)i * SKY_LINK_STATE_BYTES, &state);
        if (!SKY_Map_Take(hello->router->map, now_us, &state, ingress))
        {
            ++hello->refused;
        }
    }
}

/* Act on the neighbour's digest: if it knows something else, tell it everything. The digest may differ each time, so this is done
 * once in a period, and only after all news has gone. */
static void Repair(SKY_Hello_t *hello, SKY_LinkId_t id, uint64_t digest)
{
    SKY_Map_t       *map  = hello->router->map;
    SKY_HelloLink_t *link = &hello->links[id];
    SKY_ASSERT(id < SKY_ISL_COUNT);
    SKY_ASSERT(map->unsent_count[id] <= map->satellites);

    if (digest != map->digest && !link->is_told && map->unsent_count[id] == 0u)
    {
        link->is_told = true;
        SKY_Map_Tell(map, id);
    }
    SKY_ASSERT(digest == map->digest || link->is_told || map->unsent_count[id] > 0u);
}

/* Act on the answer to our greeting. */
static void Measure(SKY_Hello_t *hello, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint64_t   id = pkt->request_id & LINK_MASK;
    SKY_HelloLink_t *link;
    uint64_t         one_way_us;

    if (id >= SKY_ISL_COUNT)
    {
        return;
    }
    link       = &hello->links[id];
    one_way_us = (now_us - link->asked_us) / 2u;
    if (link->asked_id == 0u || link->asked_id != pkt->request_id || one_way_us > UINT32_MAX ||
        !SKY_Addr_Equal(pkt->src, SKY_Torus_Neighbour(&hello->router->torus, hello->router->self, (SKY_LinkId_t)id)))
    {
        return;
    }
    link->asked_id = 0;
    one_way_us     = one_way_us == 0u ? 1u : one_way_us; /* a delay of 0 would mean that nothing was measured */
    /* The delay is smoothed like a round trip of RFC 6298, gain 1/8. */
    link->mean_us = (uint32_t)(link->mean_us == 0u ? one_way_us : ((uint64_t)link->mean_us * 7u + one_way_us) / 8u);
    link->sample_us[link->samples % SKY_HELLO_WINDOW] = (uint32_t)one_way_us;
    ++link->samples;
    SKY_ASSERT(link->mean_us > 0u);
    SKY_ASSERT(link->samples > 0u);
}

SKY_HelloResult_t SKY_Hello_Begin(SKY_Hello_t *hello, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                  SKY_HelloOut_t *out)
{
    const bool is_news = (pkt->flags & SKY_FLAG_GOSSIP) != 0u;

    if (!IsSound(hello, pkt, ingress))
    {
        ++hello->refused;
        return SKY_HELLO_REFUSED;
    }
    SKY_ASSERT(ingress < SKY_ISL_COUNT);
    if (!pkt->is_request)
    {
        Measure(hello, now_us, pkt);
    }
    if (hello->router->map != NULL)
    {
        TakeStates(hello, now_us, pkt, ingress);
        if (!is_news) /* while news comes, other news may be on its way to one of the two */
        {
            Repair(hello, ingress, Get(pkt->payload + SKY_HELLO_OFF_DIGEST, 8));
        }
    }
    if (!pkt->is_request || is_news)
    {
        return SKY_HELLO_TAKEN;
    }
    FillGreeting(hello, ingress, out);
    out->pkt.request_id = pkt->request_id;
    SKY_ASSERT(out->link == ingress); /* an answer leaves over the link of its question */
    SKY_ASSERT(!out->pkt.is_request);
    return SKY_HELLO_ANSWER;
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

/*
 * How much sooner than a period the next greetings go: up to a quarter of it, another time every time (RFC 5148, section 5.1).
 * Without it satellites that start together greet together for ever, and measure each other's queues instead of links.
 */
static uint64_t Jitter(const SKY_Hello_t *hello, uint64_t now_us)
{
    const uint64_t place = (uint64_t)hello->router->self.plane << 16 | hello->router->self.slot;
    SKY_ASSERT(hello->period_us != 0u);
    SKY_ASSERT(hello->router->self.plane != 0u);

    return SKY_Mix64(now_us ^ place << 32) % (hello->period_us / 4u + 1u);
}

void SKY_Hello_Poll(SKY_Hello_t *hello, uint64_t now_us)
{
    const bool greets = hello->period_us != 0u && now_us >= hello->due_us;

    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        SKY_HelloLink_t *link   = &hello->links[id];
        const bool       before = CouldBeUsed(link);

        link->is_told = link->is_told && !greets;
        if (greets && link->is_present && !link->is_cut)
        {
            link->is_silent = link->is_silent || now_us - link->heard_us >= SKY_HELLO_LOST * hello->period_us;
            link->is_due    = true;
            Changed(hello, now_us, id, before);
        }
        if (link->held_us != 0u && now_us >= link->held_us)
        {
            link->held_us = 0;
            UpdateRoute(hello, now_us, id);
        }
    }
    if (greets)
    {
        hello->due_us = now_us + hello->period_us - Jitter(hello, now_us);
        SKY_ASSERT(hello->due_us > now_us);
    }
    SKY_ASSERT(!greets || hello->due_us <= now_us + hello->period_us);
}

/* Return true if another packet of news may go over a link now. */
static bool MayTell(SKY_HelloLink_t *link, uint64_t now_us)
{
    if (now_us - link->burst_us >= SKY_HELLO_PAUSE_US)
    {
        link->burst_us = now_us;
        link->burst    = 0;
    }
    SKY_ASSERT(link->burst <= SKY_HELLO_BURST);
    return link->burst < SKY_HELLO_BURST;
}

bool SKY_Hello_Next(SKY_Hello_t *hello, uint64_t now_us, SKY_HelloOut_t *out)
{
    SKY_Map_t *map = hello->router->map;

    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        SKY_HelloLink_t *link = &hello->links[id];

        if (link->is_due)
        {
            SKY_ASSERT(link->is_present);
            SKY_ASSERT(!link->is_cut);
            link->is_due   = false;
            link->asked_id = now_us << LINK_BITS | id;
            link->asked_us = now_us;
            FillGreeting(hello, (SKY_LinkId_t)id, out);
            out->pkt.is_request = true;
            out->pkt.request_id = link->asked_id;
            return true;
        }
        if (map != NULL && map->unsent_count[id] > 0u && MayTell(link, now_us))
        {
            SKY_LinkState_t states[SKY_LIMIT_LINK_STATES];
            const uint32_t  count = SKY_Map_Next(map, (SKY_LinkId_t)id, states, SKY_LIMIT_LINK_STATES);

            for (uint32_t i = 0; i < count; ++i)
            {
                PutState(out->payload + SKY_HELLO_BYTES + (size_t)i * SKY_LINK_STATE_BYTES, &states[i]);
            }
            ++link->burst;
            SKY_ASSERT(link->burst <= SKY_HELLO_BURST);
            SKY_ASSERT(count > 0u);
            SKY_ASSERT(count <= SKY_LIMIT_LINK_STATES);
            SKY_ASSERT(link->is_present);
            Fill(hello, (SKY_LinkId_t)id, count, out);
            out->pkt.is_request = true;
            out->pkt.flags      = SKY_FLAG_GOSSIP;
            out->pkt.request_id = now_us << LINK_BITS | id;
            return true;
        }
    }
    return false;
}

static uint64_t Earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t SKY_Hello_NextDue(const SKY_Hello_t *hello)
{
    const SKY_Map_t *map    = hello->router->map;
    uint64_t         due_us = hello->period_us != 0u ? hello->due_us : UINT64_MAX;

    for (uint32_t id = 0; id < SKY_ISL_COUNT; ++id)
    {
        const SKY_HelloLink_t *link = &hello->links[id];

        SKY_ASSERT(map == NULL || map->unsent_count[id] <= map->satellites);
        if (link->is_due)
        {
            due_us = 0;
        }
        if (link->held_us != 0u)
        {
            due_us = Earlier(due_us, link->held_us);
        }
        if (map != NULL && map->unsent_count[id] > 0u)
        {
            due_us = Earlier(due_us, link->burst < SKY_HELLO_BURST ? 0u : link->burst_us + SKY_HELLO_PAUSE_US);
        }
    }
    return due_us;
}

uint32_t SKY_Hello_MinUs(const SKY_HelloLink_t *link)
{
    uint32_t least_us = 0;

    for (uint32_t i = 0; i < SKY_HELLO_WINDOW; ++i)
    {
        if (link->sample_us[i] != 0u && (least_us == 0u || link->sample_us[i] < least_us))
        {
            least_us = link->sample_us[i];
        }
    }
    SKY_ASSERT((least_us == 0u) == (link->samples == 0u));
    SKY_ASSERT((link->mean_us == 0u) == (link->samples == 0u));
    return least_us;
}
