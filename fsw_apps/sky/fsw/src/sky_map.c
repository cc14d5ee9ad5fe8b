/**
 * @file
 * Link states of all satellites, and the search for ways around links that are down.
 */
#include "sky_map.h"
#include "sky_mix.h"

#include <string.h>

#include "sky_assert.h"

#define BIT(link)   ((uint8_t)(1u << (link)))
#define TAKEN_SHIFT SKY_ISL_COUNT /* in unsent[], above the bits of the ISLs */
#define SECOND_US   1000000u

static const SKY_LinkId_t opposite[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_WEST, SKY_LINK_NORTH, SKY_LINK_EAST};

static SKY_Addr_t AddrOf(const SKY_Map_t *map, uint32_t place)
{
    const SKY_Addr_t addr = {(uint16_t)(place / map->torus.slots + 1u), (uint16_t)(place % map->torus.slots + 1u)};
    SKY_ASSERT(addr.plane <= map->torus.planes);

    SKY_ASSERT(place < map->satellites);
    return addr;
}

static uint32_t PlaceOf(const SKY_Map_t *map, SKY_Addr_t addr)
{
    SKY_ASSERT(addr.plane >= 1u);
    SKY_ASSERT(addr.slot >= 1u);
    return (addr.plane - 1u) * map->torus.slots + addr.slot - 1u;
}

/* Return bits of the ISLs that a satellite has by its place on the torus. */
static uint32_t LinksOf(const SKY_Map_t *map, uint32_t place)
{
    uint32_t links = 0;
    SKY_ASSERT(place < map->satellites);

    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        if (SKY_Torus_Neighbour(&map->torus, AddrOf(map, place), (SKY_LinkId_t)link).plane != 0u)
        {
            links |= 1u << link;
        }
    }
    return links;
}

size_t SKY_Map_MemoryBytes(const SKY_Torus_t *torus)
{
    const uint32_t satellites = (uint32_t)torus->planes * torus->slots;
    SKY_ASSERT(satellites >= 1u);

    return satellites > SKY_MAP_SATELLITES_MAX ? 0u : (size_t)satellites * SKY_MAP_SATELLITE_BYTES;
}

bool SKY_Map_Init(SKY_Map_t *map, const SKY_Torus_t *torus, SKY_Addr_t self, void *memory, size_t bytes)
{
    const size_t needed = SKY_Map_MemoryBytes(torus);

    if (needed == 0u || bytes < needed || !SKY_Torus_Contains(torus, self))
    {
        return false;
    }
    (void)memset(map, 0, sizeof(*map));
    (void)memset(memory, 0, needed);
    map->torus      = *torus;
    map->satellites = (uint32_t)torus->planes * torus->slots;
    map->self       = PlaceOf(map, self);
    map->is_urgent  = true;
    map->sequence   = memory;
    map->queue      = &map->sequence[map->satellites];
    map->down       = (uint8_t *)&map->queue[map->satellites];
    map->unsent     = &map->down[map->satellites];
    map->first      = &map->unsent[map->satellites];
    map->hops       = &map->first[map->satellites];
    SKY_ASSERT((size_t)(&map->hops[map->satellites] - (uint8_t *)memory) <= needed);
    SKY_ASSERT(map->self < map->satellites);
    SKY_ASSERT((uintptr_t)memory % sizeof(uint32_t) == 0u);
    return true;
}

/* ---- what is to be told ---------------------------------------------------------------------------------------------- */

static void MarkUnsent(SKY_Map_t *map, uint32_t place, uint32_t links)
{
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT((links & ~SKY_ISL_MASK) == 0u);
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        if ((links & ~(uint32_t)map->unsent[place] & (1u << link)) != 0u)
        {
            map->unsent[place] |= BIT(link);
            ++map->unsent_count[link];
            SKY_ASSERT(map->unsent_count[link] <= map->satellites);
        }
    }
}

static void MarkSent(SKY_Map_t *map, uint32_t place, uint32_t link)
{
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT(link < SKY_ISL_COUNT);
    if ((map->unsent[place] & BIT(link)) != 0u)
    {
        map->unsent[place] &= (uint8_t)~BIT(link);
        SKY_ASSERT(map->unsent_count[link] > 0u);
        --map->unsent_count[link];
    }
}

/* Return the links over which news goes: those in use. A neighbour that comes up later is told everything then. */
static uint32_t Used(const SKY_Map_t *map)
{
    SKY_ASSERT(map->self < map->satellites);
    return LinksOf(map, map->self) & ~(uint32_t)map->down[map->self];
}

/* Return a number for a link state in which every bit counts, so that different sets of link states have different sums. */
static uint64_t Digest(uint32_t place, uint32_t sequence, uint32_t down)
{
    SKY_ASSERT((down & ~SKY_ISL_MASK) == 0u);
    SKY_ASSERT(place < SKY_MAP_SATELLITES_MAX);
    return SKY_Mix64((uint64_t)sequence << 32 | (uint64_t)place << SKY_ISL_COUNT | down);
}

void SKY_Map_Tell(SKY_Map_t *map, SKY_LinkId_t link)
{
    uint64_t digest = 0;
    SKY_ASSERT(link < SKY_ISL_COUNT);

    for (uint32_t place = 0; place < map->satellites; ++place)
    {
        if (map->sequence[place] != 0u)
        {
            MarkUnsent(map, place, Used(map) & 1u << link);
            digest += Digest(place, map->sequence[place], map->down[place]);
        }
    }
    map->digest = digest; /* a running sum would keep a bit that has flipped */
    SKY_ASSERT(map->unsent_count[link] <= map->satellites);
}

static void Read(const SKY_Map_t *map, uint32_t place, SKY_LinkState_t *state)
{
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT((map->down[place] & ~SKY_ISL_MASK) == 0u);
    state->addr     = AddrOf(map, place);
    state->sequence = map->sequence[place];
    state->down     = map->down[place];
}

bool SKY_Map_Own(const SKY_Map_t *map, SKY_LinkState_t *state)
{
    SKY_ASSERT(map->self < map->satellites);
    Read(map, map->self, state);
    SKY_ASSERT(state->sequence != 0u || state->down == 0u); /* only a satellite that was heard of has links down */
    return state->sequence != 0u;
}

uint32_t SKY_Map_Next(SKY_Map_t *map, SKY_LinkId_t link, SKY_LinkState_t *states, uint32_t most)
{
    uint32_t count = 0;
    SKY_ASSERT(link < SKY_ISL_COUNT);
    SKY_ASSERT(map->unsent_count[link] <= map->satellites);

    for (uint32_t looked = 0; looked < map->satellites && count < most && map->unsent_count[link] > 0u; ++looked)
    {
        const uint32_t place = map->unsent_next[link];
        SKY_ASSERT(place < map->satellites);

        map->unsent_next[link] = place + 1u == map->satellites ? 0u : place + 1u;
        if ((map->unsent[place] & BIT(link)) != 0u)
        {
            MarkSent(map, place, link);
            Read(map, place, &states[count++]);
        }
    }
    SKY_ASSERT(count == most || map->unsent_count[link] == 0u); /* the scan has looked at all places */
    SKY_ASSERT(count <= most);
    return count;
}

/* ---- what is known --------------------------------------------------------------------------------------------------- */

/* Count the links whose state this satellite's word decides: those that the other end does not call down. */
static void CountLinks(SKY_Map_t *map, uint32_t place, uint32_t down)
{
    SKY_ASSERT(place < map->satellites);
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        const SKY_Addr_t there = SKY_Torus_Neighbour(&map->torus, AddrOf(map, place), (SKY_LinkId_t)link);

        if (((map->down[place] ^ down) & 1u << link) != 0u && there.plane != 0u &&
            (map->down[PlaceOf(map, there)] & BIT(opposite[link])) == 0u)
        {
            SKY_ASSERT((down & 1u << link) != 0u || map->links_down > 0u);
            map->links_down = (down & 1u << link) != 0u ? map->links_down + 1u : map->links_down - 1u;
        }
    }
    SKY_ASSERT(map->links_down <= 2u * map->satellites); /* each satellite has two links that no other one has */
}

static void Write(SKY_Map_t *map, uint32_t place, uint32_t sequence, uint32_t down)
{
    SKY_ASSERT(sequence >= map->sequence[place]); /* the largest sequence number only grows */
    SKY_ASSERT((down & ~SKY_ISL_MASK) == 0u);
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT(sequence != 0u);
    if (map->sequence[place] != 0u)
    {
        map->digest -= Digest(place, map->sequence[place], map->down[place]);
    }
    map->digest += Digest(place, sequence, down);
    CountLinks(map, place, down);
    map->exceptions += (down != 0u ? 1u : 0u) - (map->down[place] != 0u ? 1u : 0u);
    SKY_ASSERT(map->exceptions <= map->satellites);
    map->is_stale        = map->is_stale || map->down[place] != down;
    map->sequence[place] = sequence;
    map->down[place]     = (uint8_t)down;
    SKY_ASSERT(map->exceptions > 0u || map->links_down == 0u); /* a link that is down has an end that says so */
    SKY_ASSERT(map->sequence[place] == sequence);
    SKY_ASSERT(map->down[place] == down);
}

/* Originate a link state of our own, above @p sequence. Nobody uses the last number, so the numbers end there. */
static void Originate(SKY_Map_t *map, uint32_t sequence, uint32_t down)
{
    SKY_ASSERT(sequence >= map->sequence[map->self]);
    Write(map, map->self, sequence == UINT32_MAX ? UINT32_MAX : sequence + 1u, down);
    MarkUnsent(map, map->self, Used(map));
    SKY_ASSERT(map->sequence[map->self] != 0u);
}

void SKY_Map_SetOwn(SKY_Map_t *map, uint32_t usable)
{
    const uint32_t before = map->down[map->self];
    const uint32_t down   = LinksOf(map, map->self) & ~usable;

    if (down == before)
    {
        return;
    }
    Originate(map, map->sequence[map->self], down);
    SKY_ASSERT(map->down[map->self] == down);
    SKY_ASSERT(map->sequence[map->self] != 0u);
    map->is_urgent = true;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        if ((before & ~down & (1u << link)) != 0u)
        {
            SKY_Map_Tell(map, (SKY_LinkId_t)link);
        }
        else if ((down & (1u << link)) != 0u)
        {
            for (uint32_t place = 0; place < map->satellites; ++place)
            {
                MarkSent(map, place, link); /* the link has no neighbour to tell */
            }
        }
    }
    SKY_ASSERT((map->down[map->self] & usable) == 0u);
}

/* Compare two states with the same number. They are of two lives of a satellite: the one with more links down counts until the
 * satellite itself has heard of it. */
static bool IsNewer(uint32_t sequence, uint32_t down, uint32_t than_sequence, uint32_t than_down)
{
    return sequence > than_sequence || (sequence == than_sequence && down > than_down);
}

/* Return true if the number is too far above the known one to be true. A satellite that knows no state of its own may have
 * restarted, so it has to go above any state that it hears. */
static bool IsTooFarAhead(const SKY_Map_t *map, uint32_t place, uint32_t sequence)
{
    const uint32_t known = map->sequence[place];
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT(sequence != 0u);

    return sequence > known && sequence - known > SKY_MAP_AHEAD_MAX && (place != map->self || known != 0u);
}

/* Return true if another change of this satellite's link state may be taken now: SKY_MAP_BURST at once, then one in a second. */
static bool MayTake(SKY_Map_t *map, uint64_t now_us, uint32_t place)
{
    const uint64_t elapsed_s = (now_us - map->second_us) / SECOND_US;
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT(map->second_us <= now_us);

    if (elapsed_s > 0u)
    {
        for (uint32_t i = 0; i < map->satellites; ++i)
        {
            const uint32_t taken = (uint32_t)map->unsent[i] >> TAKEN_SHIFT;
            const uint32_t left  = taken > elapsed_s ? taken - (uint32_t)elapsed_s : 0u;

            map->unsent[i] = (uint8_t)((map->unsent[i] & SKY_ISL_MASK) | left << TAKEN_SHIFT);
        }
        map->second_us += elapsed_s * SECOND_US;
    }
    SKY_ASSERT(map->second_us <= now_us);
    SKY_ASSERT(now_us - map->second_us < SECOND_US);
    if ((uint32_t)map->unsent[place] >> TAKEN_SHIFT >= SKY_MAP_BURST)
    {
        return false;
    }
    map->unsent[place] = (uint8_t)(map->unsent[place] + (1u << TAKEN_SHIFT));
    SKY_ASSERT((uint32_t)map->unsent[place] >> TAKEN_SHIFT <= SKY_MAP_BURST);
    return true;
}

bool SKY_Map_Take(SKY_Map_t *map, uint64_t now_us, const SKY_LinkState_t *state, SKY_LinkId_t link)
{
    uint32_t place;
    bool     is_own;
    SKY_ASSERT(link < SKY_ISL_COUNT);

    if (!SKY_Torus_Contains(&map->torus, state->addr) || state->sequence == 0u || state->sequence == UINT32_MAX ||
        (state->down & ~SKY_ISL_MASK) != 0u || IsTooFarAhead(map, PlaceOf(map, state->addr), state->sequence))
    {
        return false;
    }
    place  = PlaceOf(map, state->addr);
    is_own = place == map->self;
    SKY_ASSERT(place < map->satellites);
    if (map->sequence[place] == state->sequence && map->down[place] == state->down)
    {
        MarkSent(map, place, link); /* the neighbour that told us knows it */
    }
    else if (IsNewer(map->sequence[place], is_own ? 0u : map->down[place], state->sequence, is_own ? 0u : state->down))
    {
        MarkUnsent(map, place, Used(map) & 1u << link);
    }
    else if (!MayTake(map, now_us, place))
    {
        return true; /* digests differ, so the neighbour will tell it again */
    }
    else if (is_own)
    {
        Originate(map, state->sequence, map->down[place]); /* the state is of an earlier life, or somebody else forged it */
    }
    else
    {
        Write(map, place, state->sequence, state->down);
        MarkUnsent(map, place, Used(map));
        MarkSent(map, place, link);
    }
    SKY_ASSERT(map->sequence[place] != 0u);
    return true;
}

/* ---- ways ------------------------------------------------------------------------------------------------------------ */

/*
 * The queue holds each distance grouped by first link, in the order in which the links of this satellite are looked at. So a
 * satellite that is found has the foremost first link of all its shortest ways.
 */
static void Search(SKY_Map_t *map)
{
    /* The order is planes before slots, and the winner of a tie first, as in SKY_Torus_NextHop. */
    static const SKY_LinkId_t order[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_NORTH, SKY_LINK_EAST, SKY_LINK_WEST};

    uint32_t found = 1;

    (void)memset(map->first, SKY_LINK_NONE, map->satellites);
    map->first[map->self] = SKY_LINK_GROUND; /* not NONE, as this satellite is found */
    map->hops[map->self]  = 0;
    map->queue[0]         = map->self;
    for (uint32_t head = 0; head < found; ++head) /* the loop ends, because each satellite is found once */
    {
        const uint32_t   place = map->queue[head];
        const SKY_Addr_t addr  = AddrOf(map, place);

        for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
        {
            const SKY_LinkId_t link  = order[i];
            const SKY_Addr_t   there = SKY_Torus_Neighbour(&map->torus, addr, link);
            uint32_t           next;

            if (there.plane == 0u || (map->down[place] & BIT(link)) != 0u)
            {
                continue;
            }
            next = PlaceOf(map, there);
            if (map->first[next] != SKY_LINK_NONE || (map->down[next] & BIT(opposite[link])) != 0u)
            {
                continue;
            }
            map->first[next] = place == map->self ? (uint8_t)link : map->first[place];
            map->hops[next]  = (uint8_t)(map->hops[place] == UINT8_MAX ? UINT8_MAX : map->hops[place] + 1u);
            SKY_ASSERT(found < map->satellites); /* each satellite is found once */
            map->queue[found++] = next;
        }
    }
    SKY_ASSERT(found <= map->satellites);
    SKY_ASSERT(map->hops[map->self] == 0u);
    SKY_ASSERT(map->first[map->self] == SKY_LINK_GROUND);
    map->is_stale  = false;
    map->is_urgent = false;
}

SKY_LinkId_t SKY_Map_FirstHop(SKY_Map_t *map, uint64_t now_us, SKY_Addr_t to, uint32_t *hops)
{
    const uint32_t place = PlaceOf(map, to);

    if (map->is_urgent || (map->is_stale && now_us - map->searched_us >= SKY_MAP_SEARCH_US))
    {
        Search(map);
        map->searched_us = now_us;
    }
    SKY_ASSERT(place < map->satellites);
    SKY_ASSERT(map->hops[map->self] == 0u);
    *hops = map->hops[place];
    SKY_ASSERT(!map->is_urgent);
    SKY_ASSERT(map->first[place] <= SKY_LINK_NONE);
    return place == map->self ? SKY_LINK_NONE : (SKY_LinkId_t)map->first[place];
}
