/**
 * @file
 * Which satellites are asked whether what a host knows is still there, and how long they are left alone when they do not answer. Part of
 * the host: missions do not compile it.
 *
 * These questions are asked before somebody counts on blocks, and nobody is to wait long for them. So who has not answered is not asked
 * for a while. If nobody has, it may be this host that stood still, so that happens only the second time. It says nothing of who is
 * lost (sky_reach.h).
 */
#ifndef SKY_PRESENCE_H
#define SKY_PRESENCE_H

#include "sky_torus.h"

#define SKY_PRESENCE_QUIET_TIMES 100u /**< left alone so many times as long as was waited: that costs a hundredth of the time */

/** What is known of a satellite. */
typedef struct
{
    uint64_t until_us;  /**< it is left alone until then */
    bool     is_silent; /**< used within a call */
} SKY_PresenceSatellite_t;

typedef struct
{
    SKY_Torus_t              torus;
    SKY_PresenceSatellite_t *satellites;
    bool                     is_heard; /**< somebody answered when satellites were asked last */
} SKY_Presence_t;

/** @param satellites  room for planes x slots */
void SKY_Presence_Init(SKY_Presence_t *presence, const SKY_Torus_t *torus, SKY_PresenceSatellite_t *satellites);
/** May this satellite be asked? The clock of now_us never goes back. */
bool SKY_Presence_IsAwake(const SKY_Presence_t *presence, uint64_t now_us, SKY_Addr_t satellite);
/**
 * Is a server to be asked for its share of a block? Of a share that may be at several places nobody can say that it is gone while one
 * of them is silent. No server has more chunks than the first one, nor evicts sooner; so that one alone is asked where a quick word is
 * enough.
 * @param everywhere  all servers that have a share are asked about this block
 * @param places      of the share
 */
bool SKY_Presence_Asks(const SKY_Presence_t *presence, uint64_t now_us, uint32_t chunk_total, uint32_t server, bool everywhere,
                       const SKY_Addr_t *places, uint32_t count);
/**
 * Satellites were asked.
 * @param waited_us  so long
 * @param first      of each share the satellite that was asked first
 * @param silent     those that said nothing
 */
void SKY_Presence_Told(SKY_Presence_t *presence, uint64_t now_us, uint64_t waited_us, const SKY_Addr_t *first,
                       uint32_t first_count, const SKY_Addr_t *silent, uint32_t silent_count);

#endif
