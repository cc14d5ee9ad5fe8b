/**
 * @file
 * Older versions of a value that was put. A PUT replaces what there is at its own places. A look-up also asks satellites behind the first server, and
 * those that were servers in rows before: they are told to forget what is older. Nothing depends on their answers, as who is silent now gives an
 * older version up when it hands it over. After a deletion all servers are told, so that the memory of the value is free at once.
 *
 * Mostly all of these have just got a share, and nobody is asked.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

#define ROUNDS 2u /* places of a share, and those of who stood in for it */

/* Return true if a share went to a satellite. */
static bool HasGot(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, SKY_Addr_t satellite)
{
    const uint32_t servers = ground->limits.servers;
    const uint32_t total   = op->facts.stripe.chunk_total;
    bool           has_got = false;

    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(total >= 1u);
    for (uint32_t round = 0; round < ROUNDS; ++round)
    {
        for (uint32_t share = 0; share < servers && share < total; ++share)
        {
            const SKY_HostPlace_t *place = &op->places[(size_t)round * servers + share];

            has_got = has_got || (place->plane == satellite.plane && place->slot == satellite.slot);
        }
    }
    return has_got;
}

/* Add some servers of the row whose satellites are in `placed`, from the first of the key on. */
static void AddServers(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t count)
{
    const uint32_t servers = ground->limits.servers;

    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(count <= servers);
    for (uint32_t behind = 0; behind < count; ++behind)
    {
        const uint32_t   server    = SKY_Spread_OfKey(op->key, servers) + behind;
        const SKY_Addr_t satellite = ground->placed[server < servers ? server : server - servers];

        if (!HasGot(ground, op, satellite))
        {
            SKY_GroundAsk_Add(ground, op, satellite);
        }
    }
}

/* Find the satellites that may tell of an older version: those that a look-up asks, all places of the first server's shares, all servers after a
 * deletion. */
static void FindAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Places_t places = SKY_GroundWays_Rule(ground);
    const uint32_t     now    = SKY_GroundWays_Row(ground);
    uint32_t           rows[SKY_PLACES_ROWS_MAX];
    const uint32_t     count = SKY_Places_Rows(&places, ground->now_us, 0, rows);
    const uint32_t     looks = SKY_Places_IsMoving(&places, ground->now_us) ? count : 1u;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(looks <= count);
    op->asks = 0;
    for (uint32_t i = 0; i < count; ++i)
    {
        const uint32_t asked = i < looks ? ground->sky.parity + 1u : 1u;

        SKY_GroundWays_Servers(ground, rows[i]);
        AddServers(ground, op, op->is_deletion && rows[i] == now ? ground->limits.servers : asked);
    }
}

bool SKY_GroundOlder_Asks(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_HostQuestion_t what;

    SKY_ASSERT(op->kind == SKY_GROUND_PUT);
    SKY_ASSERT(op->outcome == SKY_STATUS_DONE);
    if (op->has_asked || op->facts.version <= 1u)
    {
        return false;
    }
    op->has_asked = true;
    FindAll(ground, op);
    (void)memset(&what, 0, sizeof(what));
    what.op            = SKY_OP_PURGE;
    what.block_version = op->facts.version - 1u;
    what.epoch         = SKY_SCHEDULE_STAYS;
    return SKY_GroundAsk_All(ground, op, &what, SKY_GroundAsk_WaitUs(ground, op, true));
}
