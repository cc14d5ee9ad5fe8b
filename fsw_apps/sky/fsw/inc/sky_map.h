/**
 * @file
 * Map of the links that are down anywhere in the constellation, and of the shortest ways around them.
 *
 * Each satellite tells which of its own links it does not use: a link state, with a sequence number that grows with each change.
 * A link is used only if neither of its ends says that it is down. So a dead satellite is known by what its neighbours say.
 *
 * Link states are flooded: a newer one than the known one goes on over all other links, and an older one is answered with the
 * newer one. A satellite that hears an old link state of its own, from before its restart, originates one above it. The map
 * itself sends nothing: SKY_Map_Next hands out what is still to be told over a link (sky_hello.h).
 *
 * Sequence numbers do not wrap: the larger one is newer. So the number that a satellite holds only grows, and every flood ends. Forged
 * link states cannot use the numbers up at once: one that is more than SKY_MAP_AHEAD_MAX above the known one is refused. Of each
 * satellite SKY_MAP_BURST changes are taken at once and then one in a second. Changes left out in this way are told again after the
 * next greeting, because the digests differ.
 *
 * There is room for one link state of every satellite, so nothing is ever forgotten and nothing has to make room. The memory is the
 * caller's. A constellation that is larger than the memory has no map; there the router keeps to its own links (sky_router.h).
 *
 * Routes are one breadth-first search, made when a route is asked for after the map has changed. News from others causes at most one
 * search in SKY_MAP_SEARCH_US; until then the old routes stay. A change of the satellite's own links counts at once. Every satellite
 * on a shortest way is one hop nearer to its end, so among satellites that know the same no packet is ever twice at the same place.
 */
#ifndef SKY_MAP_H
#define SKY_MAP_H

#include "sky_torus.h"

#define SKY_MAP_SATELLITES_MAX  (1u << 20)
#define SKY_MAP_SATELLITE_BYTES 12u        /**< of memory for each satellite */
#define SKY_MAP_AHEAD_MAX       (1u << 24) /**< 194 days of one change in a second */
#define SKY_MAP_BURST           4u         /**< changes of one satellite's link state that are taken at once */
#define SKY_MAP_SEARCH_US       20000u     /**< shortest time between two searches for what others have told */

/** Links of a satellite that are down, by its own word. */
typedef struct
{
    SKY_Addr_t addr;
    uint32_t   sequence; /**< from 1 to UINT32_MAX - 1 */
    uint16_t   down;     /**< bit (1 << link) of each ISL that the satellite does not use */
} SKY_LinkState_t;

typedef struct
{
    SKY_Torus_t torus;
    uint32_t    satellites;
    uint32_t    self; /**< place of this satellite: (plane - 1) x slots + slot - 1, as in all arrays */
    uint64_t    digest;
    uint32_t    exceptions; /**< satellites with a link that is down */
    uint32_t    links_down; /**< links that are down by the word of either end, each counted once */
    bool        is_stale;   /**< the routes are older than the map */
    bool        is_urgent;  /**< there are no routes, or they are older than the own links */
    uint64_t    searched_us;
    uint64_t    second_us; /**< begin of the second in which changes are counted */
    uint32_t    unsent_count[SKY_ISL_COUNT];
    uint32_t    unsent_next[SKY_ISL_COUNT]; /**< place where the search for unsent ones goes on */
    uint32_t   *sequence;                   /**< 0: nothing was heard of this satellite */
    uint32_t   *queue;                      /**< queue of the search */
    uint8_t    *down;
    uint8_t    *unsent; /**< bit (1 << link) of each ISL over which its link state is still to be told; above these bits,
                             how many of its changes were taken lately */
    uint8_t    *first;  /**< first link of the way to each satellite */
    uint8_t    *hops;   /**< hops to each satellite; UINT8_MAX: so many or more */
} SKY_Map_t;

/** Return the bytes of memory for a constellation; 0 if it is larger than SKY_MAP_SATELLITES_MAX. */
size_t SKY_Map_MemoryBytes(const SKY_Torus_t *torus);
/**
 * Begin an empty map: all links are up.
 * @param memory  aligned for uint32_t; stays with the map
 * @return false: @p self is not on the torus, or @p bytes are too few
 */
bool SKY_Map_Init(SKY_Map_t *map, const SKY_Torus_t *torus, SKY_Addr_t self, void *memory, size_t bytes);

/** Set the satellite's own links. A link that comes up is told everything that is known. @param usable  bit (1 << link) */
void SKY_Map_SetOwn(SKY_Map_t *map, uint32_t usable);
/**
 * Take in a link state that a neighbour has told. Nothing of it is trusted.
 * @param link  ISL that it came over
 * @return false: it names no satellite of the constellation, or a link that is no ISL, or its sequence number cannot be true
 */
bool SKY_Map_Take(SKY_Map_t *map, uint64_t now_us, const SKY_LinkState_t *state, SKY_LinkId_t link);
/** Get the satellite's own link state. @return false if it has none, as no link of it was ever down */
bool SKY_Map_Own(const SKY_Map_t *map, SKY_LinkState_t *state);
/** Tell everything that is known over @p link. The digest is computed anew. */
void SKY_Map_Tell(SKY_Map_t *map, SKY_LinkId_t link);
/** Get link states that are still to be told over @p link; they count as told. @return number of them, at most @p most */
uint32_t SKY_Map_Next(SKY_Map_t *map, SKY_LinkId_t link, SKY_LinkState_t *states, uint32_t most);

/**
 * Return the first link of a shortest way to @p to: planes before slots, south before north and east before west. If nothing is
 * down that is the link of SKY_Torus_NextHop.
 * @param hops  receives the length of the way, at most UINT8_MAX
 * @return SKY_LINK_NONE if no way leads there, or @p to is this satellite
 */
SKY_LinkId_t SKY_Map_FirstHop(SKY_Map_t *map, uint64_t now_us, SKY_Addr_t to, uint32_t *hops);

#endif
