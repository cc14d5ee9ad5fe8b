/**
 * @file
 * A value is a register: hosts put it, delete it and get it under one key. Each put of a run is written down: version, begin, end, and what crashes
 * took since. Each get, and each look-up, is judged by that (docs/design.md, what a put, a get and a deletion mean):
 *
 *     what it brings   was put by somebody, who has begun. It is none older than the newest that was acknowledged to any host before the get began,
 *                      nor than the newest that its own host knew then
 *     absent           is older than each version, and allowed where a deletion is the newest, or may be, and while a newer put has not ended well
 *     an error         says nothing. A put that failed, or was called back, may take effect or not
 *
 * It is promised as long as no more homes of the first row are away than hold parity. A home is away that is down, or lost or silent to the host. One
 * that does not tell the version is away only for a reason: its share was lost in a crash, it says itself that it has not caught up, or somebody
 * keeps a chunk for it. A home without a reason that does not tell the version is a fault of whoever left it without.
 */
#include <stdlib.h>

#include "twin_priv.h"

#define PUTS_OF_ONE 2u         /* of an operation: one whose way a newer version is in is repeated above that */
#define ALL_SHARES  UINT32_MAX /* a store made room: nothing is promised any more */
#define WHOLE_WORD  (SKY_WORD_SETTLED | SKY_WORD_CAUGHT_UP)

bool SKYT_Register_Init(SKYT_Twin_t *twin, uint32_t ops)
{
    twin->known  = SKYT_Take(twin, (size_t)twin->config.hosts * twin->block_count + 1u, sizeof(*twin->known));
    twin->writes = SKYT_Take(twin, (size_t)PUTS_OF_ONE * ops + 1u, sizeof(*twin->writes));
    return !twin->is_short;
}

static uint64_t *known_by(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->known[(size_t)(active->host - 1u) * twin->block_count + active->block];
}

uint64_t SKYT_Register_Known(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return SKYT_Version_IsValue(twin, active->block) ? *known_by(twin, active) : 0u;
}

/* ---- what is written down ---------------------------------------------------------------------------------------------- */

/* Return the put of a value that was written down last, and with one of them the one before it; NULL: there is none. */
static SKYT_Write_t *last_of(const SKYT_Twin_t *twin, uint32_t block)
{
    return twin->truth[block].written == 0u ? NULL : &twin->writes[twin->truth[block].written - 1u];
}
static SKYT_Write_t *before(const SKYT_Twin_t *twin, const SKYT_Write_t *write)
{
    return write->before == 0u ? NULL : &twin->writes[write->before - 1u];
}

/* Find the put of a version that began first. @return NULL: nobody has put it */
static SKYT_Write_t *write_of(const SKYT_Twin_t *twin, uint32_t block, uint64_t version)
{
    SKYT_Write_t *found = NULL;

    for (SKYT_Write_t *write = last_of(twin, block); write != NULL; write = before(twin, write))
    {
        found = write->version == version ? write : found;
    }
    return found;
}

void SKYT_Register_Put(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t number = PUTS_OF_ONE * active->op + (active->is_above ? 1u : 0u);

    if (active->version != 0u)
    {
        twin->writes[number]               = (SKYT_Write_t){active->version, twin->truth[active->block].written, 0u, 0u};
        twin->truth[active->block].written = number + 1u;
    }
}

void SKYT_Register_Gone(SKYT_Twin_t *twin, uint32_t block, uint32_t shares)
{
    for (SKYT_Write_t *write = last_of(twin, block); write != NULL; write = before(twin, write))
    {
        write->gone |= shares;
    }
}

void SKYT_Register_MadeRoom(SKYT_Twin_t *twin, uint32_t block)
{
    SKYT_Register_Gone(twin, block, ALL_SHARES);
}

void SKYT_Register_Purged(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    SKYT_Truth_t *truth = &twin->truth[active->block];

    truth->purged       = active->version > truth->purged ? active->version : truth->purged;
    truth->acknowledged = truth->acknowledged > truth->purged ? truth->acknowledged : 0u;
}

/* ---- what is promised -------------------------------------------------------------------------------------------------- */

/* Return true if somebody else keeps a chunk for its home. */
static bool is_owed(const SKYT_Twin_t *twin, uint32_t home, uint32_t block, uint64_t version, uint32_t chunk)
{
    bool is = false;

    for (uint32_t node = 0; !is && node < twin->node_count; ++node)
    {
        is = node != home && SKYT_Truth_Holds(twin, node, block, chunk) && SKYT_VersionAt(twin, node, block) >= version;
    }
    return is;
}

static bool is_away(const SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKYT_Write_t *write, uint32_t chunk)
{
    const uint32_t     row  = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const SKY_Addr_t   addr = SKYT_Content_Home(twin, row, active->block, write->version, chunk);
    const uint32_t     home = SKYT_NodeOf(twin, addr);
    const SKYT_Node_t *node = &twin->nodes[home];

    if (!node->is_up || node->up_us > active->started_us || SKY_Ground_IsLost(&twin->grounds[active->host - 1u].core, addr))
    {
        return true;
    }
    const uint64_t told = SKYT_VersionAt(twin, home, active->block);
    const bool lacks = told < write->version || (told == write->version && !SKYT_Truth_Holds(twin, home, active->block, chunk));

    return lacks &&
           ((write->gone & SKYT_ShareRecord_Bit(twin, chunk)) != 0u || (node->service.core.word & WHOLE_WORD) != WHOLE_WORD ||
            node->late != NULL || is_owed(twin, home, active->block, write->version, chunk));
}

/* Return true if the promise holds now of a version that was acknowledged. */
static bool is_promised(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version)
{
    const SKYT_Write_t   *write  = write_of(twin, active->block, version);
    const SKY_Stripe_t    stripe = SKYT_Content_Stripe(twin, active->block, version);
    const SKY_StripeRow_t first  = SKY_Stripe_Row(&stripe, 0);
    uint32_t              away   = active->silences + active->core.find.one.silences;

    if (version == 0u || version <= twin->truth[active->block].purged || write->gone == ALL_SHARES)
    {
        return false;
    }
    for (uint32_t chunk = 0; away <= twin->config.parity && chunk < first.data + first.parity; ++chunk)
    {
        away += is_away(twin, active, write, chunk) ? 1u : 0u;
    }
    return away <= twin->config.parity;
}

/* Return true if a deletion from this version on is the newest, or may be; or if a put above it had not ended well before the get began: that leaves the older version, its
 * own or nothing, as it replaces share by share. */
static bool may_be_absent(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    bool may = false;

    for (const SKYT_Write_t *write = last_of(twin, active->block); !may && write != NULL; write = before(twin, write))
    {
        may = write->version >= active->promised &&
              (write->done_us == 0u || write->done_us >= active->started_us || SKYT_Version_IsDeletion(write->version));
    }
    return may;
}

/* ---- gets -------------------------------------------------------------------------------------------------------------- */

void SKYT_Register_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const bool is_value = SKYT_Version_IsValue(twin, active->block);

    active->known        = SKYT_Register_Known(twin, active);
    active->acknowledged = is_value ? twin->truth[active->block].acknowledged : 0u;
    active->promised     = is_value && is_promised(twin, active, active->acknowledged) ? active->acknowledged : 0u;
}

static void fail(SKYT_Twin_t *twin, const SKYT_Active_t *active, const char *text)
{
    SKYT_Check_Fail(twin, SKYT_INVARIANT_VERSION, SKYT_NONE, active->op, active->block, SKYT_NONE, text);
}

void SKYT_Register_Got(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version)
{
    const uint32_t row        = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    const bool     is_one_row = row == SKY_Schedule_RowAt(&twin->schedule, active->started_us);

    SKYT_Words_Check(twin, active, version);
    if (version != 0u && write_of(twin, active->block, version) == NULL)
    {
        fail(twin, active, "satellites tell a version of a value that nobody has put");
    }
    if (version < active->promised && is_one_row && is_promised(twin, active, active->promised) &&
        !(version == 0u && may_be_absent(twin, active)))
    {
        fail(twin, active, "a host gets an older version of a value than was acknowledged before, or none");
    }
}

bool SKYT_Register_Take(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_BlockFacts_t *facts = &active->core.facts;

    SKYT_Register_Got(twin, active, facts->version);
    if (facts->version < *known_by(twin, active))
    {
        return false;
    }
    if (facts->stripe.block_len != SKYT_Content_Stripe(twin, active->block, facts->version).block_len)
    {
        fail(twin, active,
             "satellites tell another length of a value than its version has, so they mistake whether it is deleted");
    }
    active->version = facts->version;
    active->epoch   = facts->epoch;
    return true;
}

void SKYT_Register_Ended(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    SKYT_Truth_t *truth = &twin->truth[active->block];
    uint64_t     *known = known_by(twin, active);

    if (active->version == 0)
    {
        return;
    }
    if (active->kind == SKYT_OP_PUT)
    {
        write_of(twin, active->block, active->version)->done_us = twin->now_us;
        truth->acknowledged =
            active->version > truth->acknowledged && active->version > truth->purged ? active->version : truth->acknowledged;
    }
    if (active->kind == SKYT_OP_GET)
    {
        SKYT_Register_Got(twin, active, active->version);
    }
    if (active->kind == SKYT_OP_GET && active->version < active->known) /* a put of the host may have ended since */
    {
        fail(twin, active, "a get brought an older version of a value than the host knows");
    }
    *known = active->version > *known ? active->version : *known;
}
