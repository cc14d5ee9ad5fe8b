/**
 * @file
 * Link states of all satellites, and the search for ways around links that are down.
 */
#include "sky_map.h"

#include <string.h>

#define ISL_MASK  ((1u << SKY_ISL_COUNT) - 1u)
#define HALF_RING 0x80000000u /* of sequence numbers */
#define BIT(link) ((uint8_t)(1u << (link)))

static const SKY_LinkId_t opposite[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_WEST, SKY_LINK_NORTH, SKY_LINK_EAST};

static SKY_Addr_t AddrOf(const SKY_Map_t *map, uint32_t place)
{
    const SKY_Addr_t addr = {(uint16_t)(place / map->torus.slots + 1u), (uint16_t)(place % map->torus.slots + 1u)};

    return addr;
}

static uint32_t PlaceOf(const SKY_Map_t *map, SKY_Addr_t addr)
{
    return (addr.plane - 1u) * map->torus.slots + addr.slot - 1u;
}

/* Bits of the ISLs that a satellite has by its place on the torus. */
static uint32_t LinksOf(const SKY_Map_t *map, uint32_t place)
{
    uint32_t links = 0;

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
    map->is_stale   = true;
    map->sequence   = memory;
    map->queue      = &map->sequence[map->satellites];
    map->down       = (uint8_t *)&map->queue[map->satellites];
    map->unsent     = &map->down[map->satellites];
    map->first      = &map->unsent[map->satellites];
    map->hops       = &map->first[map->satellites];
    return true;
}

/* ---- what is to be told ---------------------------------------------------------------------------------------------- */

static void MarkUnsent(SKY_Map_t *map, uint32_t place, uint32_t links)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        if ((links & ~(uint32_t)map->unsent[place] & (1u << link)) != 0u)
        {
            map->unsent[place] |= BIT(link);
            ++map->unsent_count[link];
        }
    }
}

static void MarkSent(SKY_Map_t *map, uint32_t place, uint32_t link)
{
    if ((map->unsent[place] & BIT(link)) != 0u)
    {
        map->unsent[place] &= (uint8_t)~BIT(link);
        --map->unsent_count[link];
    }
}

/* Links over which news goes: those that are in use. Who comes up later is told everything then. */
static uint32_t Used(const SKY_Map_t *map)
{
    return LinksOf(map, map->self) & ~(uint32_t)map->down[map->self];
}

void SKY_Map_Tell(SKY_Map_t *map, SKY_LinkId_t link)
{
    for (uint32_t place = 0; place < map->satellites; ++place)
    {
        if (map->sequence[place] != 0u)
        {
            MarkUnsent(map, place, Used(map) & 1u << link);
        }
    }
}

static void Read(const SKY_Map_t *map, uint32_t place, SKY_LinkState_t *state)
{
    state->addr     = AddrOf(map, place);
    state->sequence = map->sequence[place];
    state->down     = map->down[place];
}

bool SKY_Map_Own(const SKY_Map_t *map, SKY_LinkState_t *state)
{
    Read(map, map->self, state);
    return state->sequence != 0u;
}

uint32_t SKY_Map_Next(SKY_Map_t *map, SKY_LinkId_t link, SKY_LinkState_t *states, uint32_t most)
{
    uint32_t count = 0;

    for (uint32_t looked = 0; looked < map->satellites && count < most && map->unsent_count[link] > 0u; ++looked)
    {
        const uint32_t place = map->unsent_next[link];

        map->unsent_next[link] = place + 1u == map->satellites ? 0u : place + 1u;
        if ((map->unsent[place] & BIT(link)) != 0u)
        {
            MarkSent(map, place, link);
            Read(map, place, &states[count++]);
        }
    }
    return count;
}

/* ---- what is known --------------------------------------------------------------------------------------------------- */

/* A number for a link state in which every bit counts, so that sums of them differ where sets of link states do. */
static uint64_t Digest(uint32_t place, uint32_t sequence, uint32_t down)
{
    uint64_t mixed = ((uint64_t)sequence << 32 | (uint64_t)place << SKY_ISL_COUNT | down) + UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

static void Write(SKY_Map_t *map, uint32_t place, uint32_t sequence, uint32_t down)
{
    if (map->sequence[place] != 0u)
    {
        map->digest -= Digest(place, map->sequence[place], map->down[place]);
    }
    map->digest += Digest(place, sequence, down);
    map->exceptions += (down != 0u ? 1u : 0u) - (map->down[place] != 0u ? 1u : 0u);
    map->is_stale        = map->is_stale || map->down[place] != down;
    map->sequence[place] = sequence;
    map->down[place]     = (uint8_t)down;
}

/* A new link state of our own, above @p sequence. */
static void Originate(SKY_Map_t *map, uint32_t sequence, uint32_t down)
{
    Write(map, map->self, sequence + 1u == 0u ? 1u : sequence + 1u, down);
    MarkUnsent(map, map->self, Used(map));
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
                MarkSent(map, place, link); /* nobody is there to be told */
            }
        }
    }
}

/* Numbers go round. Half way round either could be the newer one; there the larger one is, so that all decide alike. Two of the
 * same number are of two lives of a satellite: the one that warns of more counts until the satellite itself has heard of it. */
static bool IsNewer(uint32_t sequence, uint32_t down, uint32_t than_sequence, uint32_t than_down)
{
    const uint32_t ahead = sequence - than_sequence;

    if (ahead == 0u)
    {
        return down > than_down;
    }
    return ahead < HALF_RING || (ahead == HALF_RING && sequence > than_sequence);
}

bool SKY_Map_Take(SKY_Map_t *map, const SKY_LinkState_t *state, SKY_LinkId_t link)
{
    uint32_t place;
    bool     is_own;

    if (!SKY_Torus_Contains(&map->torus, state->addr) || state->sequence == 0u || (state->down & ~ISL_MASK) != 0u)
    {
        return false;
    }
    place  = PlaceOf(map, state->addr);
    is_own = place == map->self;
    if (map->sequence[place] == state->sequence && map->down[place] == state->down)
    {
        MarkSent(map, place, link); /* the neighbour knows */
    }
    else if (map->sequence[place] != 0u &&
             IsNewer(map->sequence[place], is_own ? 0u : map->down[place], state->sequence, is_own ? 0u : state->down))
    {
        MarkUnsent(map, place, Used(map) & 1u << link);
    }
    else if (is_own)
    {
        Originate(map, state->sequence, map->down[place]); /* that one is of a life before, or somebody else's */
    }
    else
    {
        Write(map, place, state->sequence, state->down);
        MarkUnsent(map, place, Used(map));
        MarkSent(map, place, link);
    }
    return true;
}

/* ---- ways ------------------------------------------------------------------------------------------------------------ */

/*
 * The queue holds each distance grouped by first link, in the order in which the links of this satellite are looked at. So a
 * satellite that is found has the foremost first link of all its shortest ways.
 */
static void Search(SKY_Map_t *map)
{
    /* Planes before slots, and the winner of a tie first: as SKY_Torus_NextHop. */
    static const SKY_LinkId_t order[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_NORTH, SKY_LINK_EAST, SKY_LINK_WEST};

    uint32_t found = 1;

    (void)memset(map->first, SKY_LINK_NONE, map->satellites);
    map->first[map->self] = SKY_LINK_GROUND; /* not NONE: it is found */
    map->hops[map->self]  = 0;
    map->queue[0]         = map->self;
    for (uint32_t head = 0; head < found; ++head) /* ends: each satellite is found once */
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
            map->first[next]    = place == map->self ? (uint8_t)link : map->first[place];
            map->hops[next]     = (uint8_t)(map->hops[place] == UINT8_MAX ? UINT8_MAX : map->hops[place] + 1u);
            map->queue[found++] = next;
        }
    }
    map->is_stale = false;
}

SKY_LinkId_t SKY_Map_FirstHop(SKY_Map_t *map, SKY_Addr_t to, uint32_t *hops)
{
    const uint32_t place = PlaceOf(map, to);

    if (map->is_stale)
    {
        Search(map);
    }
    *hops = map->hops[place];
    return place == map->self ? SKY_LINK_NONE : (SKY_LinkId_t)map->first[place];
}

uint32_t SKY_Map_LinksDown(const SKY_Map_t *map)
{
    uint32_t count = 0;

    for (uint32_t place = 0; map->exceptions > 0u && place < map->satellites; ++place)
    {
        /* Each link once: from its northern or western end. */
        const SKY_LinkId_t ahead[2] = {SKY_LINK_SOUTH, SKY_LINK_EAST};

        for (uint32_t i = 0; i < 2u; ++i)
        {
            const SKY_Addr_t there = SKY_Torus_Neighbour(&map->torus, AddrOf(map, place), ahead[i]);

            if (there.plane != 0u &&
                ((map->down[place] & BIT(ahead[i])) != 0u || (map->down[PlaceOf(map, there)] & BIT(opposite[ahead[i]])) != 0u))
            {
                ++count;
            }
        }
    }
    return count;
}
