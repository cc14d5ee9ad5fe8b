/**
 * @file
 * Presence of blocks that a host knows: which satellites are asked for them, and how long silent ones are left alone. Part of the host:
 * missions do not compile it.
 *
 * These questions are asked before somebody counts on blocks, and nobody is to wait long for them. So a satellite that has not answered
 * is not asked for a while. If none has answered, it may be this host that stood still, so that happens only the second time. It does
 * not say who is lost (sky_reach.h).
 */
#ifndef SKY_PRESENCE_H
#define SKY_PRESENCE_H

#include "sky_torus.h"

#define SKY_PRESENCE_QUIET_TIMES 100u /**< left alone so many times as long as was waited: that costs a hundredth of the time */

/** Knowledge of a satellite. */
typedef struct
{
    uint64_t until_us;  /**< time until which it is left alone */
    bool     is_silent; /**< for use within a call */
} SKY_PresenceSatellite_t;

typedef struct
{
    SKY_Torus_t              torus;
    SKY_PresenceSatellite_t *satellites;
    bool                     is_heard; /**< a satellite answered the last questions */
} SKY_Presence_t;

/** Begin. @param satellites  room for planes x slots */
void SKY_Presence_Init(SKY_Presence_t *presence, const SKY_Torus_t *torus, SKY_PresenceSatellite_t *satellites);
/** Return true if this satellite may be asked. The clock of now_us never goes back. */
bool SKY_Presence_IsAwake(const SKY_Presence_t *presence, uint64_t now_us, SKY_Addr_t satellite);
/**
 * Return true if a share of a block is to be asked for. A share with several places cannot be known to be gone while one of
 * them is silent. No share has more chunks than share 0, and no server evicts sooner, so that one alone is asked for if a quick word is
 * enough.
 * @param everywhere  true if all shares of this block are asked for
 * @param places      places of the share
 */
bool SKY_Presence_Asks(const SKY_Presence_t *presence, uint64_t now_us, uint32_t chunk_total, uint32_t share, bool everywhere,
                       const SKY_Addr_t *places, uint32_t count);
/**
 * Take in the outcome of questions.
 * @param waited_us  time that was waited for answers
 * @param first      satellite of each share that was asked first
 * @param silent     satellites that said nothing
 */
void SKY_Presence_Told(SKY_Presence_t *presence, uint64_t now_us, uint64_t waited_us, const SKY_Addr_t *first,
                       uint32_t first_count, const SKY_Addr_t *silent, uint32_t silent_count);

#endif
