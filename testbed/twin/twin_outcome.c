/**
 * @file
 * Outcomes of operations in the light of the truth about their blocks: why a get may miss, and why an operation may fail. With parity
 * twin_rows.c says whether enough chunks of each row are held.
 */
#include "twin_priv.h"

/* Return true for causes that take some chunks of a block, which its parity may bear. */
static bool may_be_borne(SKYT_Cause_t cause)
{
    return cause == SKYT_CAUSE_CRASHED || cause == SKYT_CAUSE_EVICTED || cause == SKYT_CAUSE_SCRUBBED;
}

/* Return why a get might miss, as things are now; NONE means that it must not. */
static SKYT_Cause_t excuse(const SKYT_Twin_t *twin, uint32_t block)
{
    const SKYT_Truth_t *truth = &twin->truth[block];

    static const SKYT_Cause_t order[] = {SKYT_CAUSE_PURGED, SKYT_CAUSE_CRASHED, SKYT_CAUSE_EVICTED, SKYT_CAUSE_SCRUBBED,
                                         SKYT_CAUSE_REPLACED};

    if (!truth->is_held)
    {
        return SKYT_CAUSE_ABSENT;
    }
    for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i)
    {
        if ((truth->taint & SKYT_BIT(order[i])) != 0 &&
            !(twin->config.parity > 0u && may_be_borne(order[i]) && SKYT_Rows_CanBeHad(twin, block)))
        {
            return order[i];
        }
    }
    return SKYT_CAUSE_NONE;
}

static bool is_whole(const SKYT_Twin_t *twin, uint32_t block)
{
    if (twin->config.parity > 0u)
    {
        return SKYT_Rows_CanBeHad(twin, block);
    }
    for (uint32_t chunk = 0; chunk < SKYT_Content_Total(twin, block); ++chunk)
    {
        if (SKYT_Truth_Holder(twin, block, chunk, false) == SKYT_NONE)
        {
            return false;
        }
    }
    return true;
}

/* Return true if a lazy purge spares the block: it waits for a later row than that names. */
static bool is_spared(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t epoch = twin->truth[active->block].epoch;

    return epoch > active->epoch && epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
}

void SKYT_Outcome_Begin(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKYT_Truth_t *truth = &twin->truth[active->block];

    active->packets_before = twin->counters.packets;
    active->crowded_before = twin->counters.lost_queue;
    switch (active->kind)
    {
        case SKYT_OP_PUT:
            truth->put_us = twin->now_us;
            if (truth->putting++ == 0)
            {
                /* Packets of a purge, or copies of them, may still be about. */
                const bool is_purged =
                    truth->purging > 0 || (truth->purged_us != 0 && twin->now_us < truth->purged_us + SKYT_PURGE_ECHO_US);

                /* Of a value satellites may hold several versions, so its chunks are not followed: twin_version.c has what must hold. */
                truth->fresh = (uint16_t)((is_purged ? SKYT_BIT(SKYT_CAUSE_PURGED) : 0u) |
                                          (SKYT_Version_IsValue(twin, active->block) ? SKYT_BIT(SKYT_CAUSE_REPLACED) : 0u));
            }
            break;
        case SKYT_OP_PURGE:
            /* Holders that the host could not ask are an excuse, but not those that it has to ask before. */
            if (active->is_lazy && active->excuse == SKYT_CAUSE_NONE && excuse(twin, active->block) == SKYT_CAUSE_NONE &&
                (!active->is_stray || SKYT_ShareRecord_IsAside(twin, active)) && !is_spared(twin, active) &&
                is_whole(twin, active->block))
            {
                SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied,
                                twin->config.parity > 0u ? "a host purged the rest of a block that could be decoded"
                                                         : "a host purged the rest of a block that is whole");
            }
            if (active->is_lazy && active->is_unsettled)
            {
                SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied,
                                "a host purged the rest of a block by the word of a satellite that was not settled");
            }
            ++truth->purging;
            if (!active->is_lazy)
            {
                SKYT_Register_Purged(twin, active);
            }
            SKYT_Truth_Taint(twin, active->block, SKYT_CAUSE_PURGED);
            break;
        default:
            active->excuse = excuse(twin, active->block);
            if (active->excuse == SKYT_CAUSE_NONE && truth->prefetched_us != 0u && SKYT_Ahead_Waits(twin, active->block))
            {
                active->excuse = SKYT_CAUSE_PREFETCHED;
            }
            break;
    }
}

/* Return true if links had no room for more packets than are lost by chance now and then, since an operation began. */
static bool is_crowded(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint64_t packets = twin->counters.packets - active->packets_before;

    return (twin->counters.lost_queue - active->crowded_before) * PPM > SKYT_LOSS_PPM * packets;
}

/* Return true if a fault that keeps packets from getting through explains why an operation expired or was unreachable, or a sky
 * whose links are behind the earth. Disorder, copies or a packet lost now and then explain neither. */
static bool is_explained(const SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause)
{
    const bool is_hard = SKYT_Fault_Since(&twin->hard, SKYT_SettlingSince(active));

    switch (cause)
    {
        case SKYT_CAUSE_NOBODY:
        case SKYT_CAUSE_REPLACED:
        case SKYT_CAUSE_CANCELLED:
            return true;
        case SKYT_CAUSE_UNREACHABLE:
            return is_hard || twin->sky_links_down > 0;
        case SKYT_CAUSE_EXPIRED:
            return is_hard || SKYT_Fault_Since(&twin->lossy, SKYT_SettlingSince(active)) || is_crowded(twin, active) ||
                   active->core.attempts.searches == SKY_ATTEMPT_SEARCHES_MAX; /* a row began during each search */
        default:
            return false;
    }
}

/* Return true if nothing but crashes is wrong with the sky, so that parity bears what is wrong: hosts have a direct link to each satellite. */
static bool only_crashes(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return twin->config.parity > 0u && twin->config.uplink == SKYT_UPLINK_DIRECT &&
           !SKYT_Fault_Since(&twin->lossy, SKYT_SettlingSince(active)) &&
           !SKYT_Fault_Since(&twin->mute, SKYT_SettlingSince(active));
}

/* Return true if one of the servers that a look-up asks has held its share since before that began, and may be asked. */
static bool was_there(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];
    const uint32_t       row    = SKY_Schedule_RowAt(&twin->schedule, active->started_us);
    bool                 was    = false;

    for (uint32_t i = 0; !was && row == SKY_Schedule_RowAt(&twin->schedule, twin->now_us) && i <= twin->config.parity; ++i)
    {
        const uint32_t   chunk     = SKYT_Content_Asked(twin, active->block, i);
        const SKY_Addr_t satellite = SKYT_Content_Home(twin, row, active->block, 0, chunk);
        const uint32_t   home      = SKYT_NodeOf(twin, satellite);

        was = SKYT_Truth_Holds(twin, home, active->block, chunk) && !SKYT_Truth_IsAside(twin, active->block, home) &&
              SKYT_Use_TakenUs(twin, home, active->block) < active->started_us && !SKY_Ground_IsLost(&ground->core, satellite);
    }
    return was;
}

/* Judge a transfer or a look-up that expired, or reached nobody. With parity a get has to bring a block of which enough chunks are where it
 * asks. */
static SKYT_Cause_t judge_transfer(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause)
{
    const bool needs_all = active->is_missed && SKYT_Version_IsValue(twin, active->block); /* of a value one word is not enough */
    const bool is_late   = active->kind == SKYT_OP_GET && !needs_all && only_crashes(twin, active) &&
                         active->core.attempts.searches < SKY_ATTEMPT_SEARCHES_MAX &&
                         (cause == SKYT_CAUSE_EXPIRED || cause == SKYT_CAUSE_UNREACHABLE);

    if (is_late && (active->is_missed ? was_there(twin, active) : SKYT_Rows_AreReachable(twin, active)))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied,
                        "a get expired although enough chunks of each row are at hand");
        return SKYT_CAUSE_UNEXPLAINED;
    }
    if (is_explained(twin, active, cause))
    {
        return is_late && SKYT_Rows_CanBeHad(twin, active->block) ? SKYT_CAUSE_STRANDED : cause;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied,
                    cause == SKYT_CAUSE_EXPIRED ? "an operation expired without a fault that explains it"
                                                : "an operation failed without a fault that explains it");
    return SKYT_CAUSE_UNEXPLAINED;
}

/* Return true if a get may miss a chunk that somebody holds. The cause why a block is not whole does not explain that. But a
 * chunk that a purge is after, or that a put has brought which began or ended meanwhile, may have been missed. */
static bool may_miss_anything(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth = &twin->truth[active->block];

    return !truth->is_held || truth->putting > 0 || truth->put_us >= active->started_us ||
           (truth->taint & (SKYT_BIT(SKYT_CAUSE_PURGED) | SKYT_BIT(SKYT_CAUSE_REPLACED))) != 0 ||
           active->excuse == SKYT_CAUSE_PURGED || active->excuse == SKYT_CAUSE_ABSENT;
}

/* Return true if a holder keeps the block for a later row than satellites have named to the host. */
static bool waits_otherwise(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t holder)
{
    const uint32_t epoch = SKYT_Use_Epoch(twin, holder, active->block);

    return active->core.is_ahead && epoch != active->epoch && epoch > SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
}

/* Judge a miss: no satellite that was asked held a chunk. */
static SKYT_Cause_t judge_miss(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Cause_t now = excuse(twin, active->block);
    const SKYT_Cause_t why = now != SKYT_CAUSE_NONE ? now : active->excuse;

    if (twin->config.parity > 0u)
    {
        return SKYT_Rows_JudgeMiss(twin, active, why, may_miss_anything(twin, active),
                                   SKYT_Fault_Since(&twin->hard, SKYT_SettlingSince(active)));
    }
    const uint32_t holder = SKYT_Truth_Holder(twin, active->block, active->denied, false);

    if (why != SKYT_CAUSE_NONE && (may_miss_anything(twin, active) || holder == SKYT_NONE))
    {
        return why;
    }
    if (holder == SKYT_NONE ? SKYT_Ahead_IsUnknown(twin, active->block, active->denied) : waits_otherwise(twin, active, holder))
    {
        return SKYT_CAUSE_PREFETCHED;
    }
    if (holder == SKYT_NONE)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, active->denied,
                        "a chunk is held nowhere, and no fault took it");
        return SKYT_CAUSE_UNEXPLAINED;
    }
    if (SKYT_Fault_Since(&twin->hard, SKYT_SettlingSince(active)) || active->is_stray)
    {
        const uint32_t passed_over = SKYT_ShareRecord_PassedOver(twin, active, active->denied);

        if (passed_over == SKYT_NONE)
        {
            return SKYT_CAUSE_STRANDED; /* the holders of the chunk could not be asked */
        }
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, passed_over, active->op, active->block, active->denied,
                        "a get missed a chunk that this satellite was about to hand over, and did not ask it");
        return SKYT_CAUSE_UNEXPLAINED;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, holder, active->op, active->block, active->denied,
                    "a get missed a chunk that this satellite holds");
    return SKYT_CAUSE_UNEXPLAINED;
}

/* Return a holder of a chunk that a look-up asks for: the server that it asks, if that is one. A host need not ask a stand-in that has kept an
 * old copy. With parity the host asks several servers, so that the first one of them that is a holder is meant. */
static uint32_t first_holder(const SKYT_Twin_t *twin, uint32_t block)
{
    const uint32_t row    = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    uint32_t       holder = SKYT_NONE;

    for (uint32_t i = 0; i <= twin->config.parity; ++i)
    {
        const uint32_t chunk = SKYT_Content_Asked(twin, block, i);
        const uint32_t home  = SKYT_NodeOf(twin, SKYT_Content_Home(twin, row, block, 0, chunk));

        if (SKYT_Truth_Holds(twin, home, block, chunk) && !SKYT_Truth_IsAside(twin, block, home))
        {
            return home;
        }
        holder = holder == SKYT_NONE ? SKYT_Truth_Holder(twin, block, chunk, false) : holder;
    }
    return holder;
}

/* Return true if of the chunks that a look-up asks for only former stand-ins have some, of a put before the last one. */
static bool is_kept_aside(const SKYT_Twin_t *twin, uint32_t block)
{
    bool is_kept = true;

    for (uint32_t asked = 0; is_kept && asked <= twin->config.parity; ++asked)
    {
        const uint32_t chunk = SKYT_Content_Asked(twin, block, asked);
        uint32_t       holders[SKY_HOST_LATE];
        const uint32_t count = SKYT_Holders(twin, block, chunk, holders, SKY_HOST_LATE);

        for (uint32_t i = 0; is_kept && i < count; ++i)
        {
            is_kept = SKYT_ShareRecord_IsKept(twin, block, chunk, holders[i]);
        }
    }
    return is_kept;
}

/* Judge a look-up: satellites deny a block of which all chunks are held. A host that knows only its key does not ask where it
 * waits for a later row. */
static SKYT_Cause_t judge_denial(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t holder = first_holder(twin, active->block);

    if (SKYT_Use_Epoch(twin, holder, active->block) > SKY_Schedule_RowAt(&twin->schedule, active->started_us))
    {
        return SKYT_CAUSE_PREFETCHED;
    }
    if ((SKYT_Fault_Since(&twin->hard, SKYT_SettlingSince(active)) || twin->truth[active->block].astray != 0u ||
         is_kept_aside(twin, active->block) ||
         SKY_Ground_IsLost(&twin->grounds[active->host - 1u].core, SKYT_AddrOf(twin, holder))) &&
        !(only_crashes(twin, active) && was_there(twin, active)))
    {
        return SKYT_CAUSE_STRANDED;
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, holder, active->op, active->block, 0,
                    "a look-up missed a block that is whole, of which this satellite holds a chunk");
    return SKYT_CAUSE_UNEXPLAINED;
}

SKYT_Cause_t SKYT_Outcome_Missed(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth = &twin->truth[active->block];
    const SKYT_Cause_t  now   = excuse(twin, active->block);
    const SKYT_Cause_t  why   = now != SKYT_CAUSE_NONE ? now : active->excuse;

    if (why != SKYT_CAUSE_NONE)
    {
        return why;
    }
    if (truth->putting > 0 || truth->put_us >= active->started_us)
    {
        return SKYT_CAUSE_ABSENT;
    }
    if (SKYT_Ahead_Explains(twin, active))
    {
        return SKYT_CAUSE_PREFETCHED;
    }
    for (uint32_t chunk = 0; twin->config.parity == 0u && chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        if (SKYT_Ahead_IsUnknown(twin, active->block, chunk))
        {
            return SKYT_CAUSE_PREFETCHED;
        }
        if (SKYT_Truth_Holder(twin, active->block, chunk, false) == SKYT_NONE)
        {
            SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, chunk,
                            "a chunk is held nowhere, and no fault took it");
            return SKYT_CAUSE_UNEXPLAINED;
        }
    }
    if (twin->config.parity > 0u && !SKYT_Rows_CanBeHad(twin, active->block))
    {
        return SKYT_Rows_JudgeMiss(twin, active, why, false, false);
    }
    return judge_denial(twin, active);
}

/* Judge a put that has left out chunks, as parity bears it. */
static SKYT_Cause_t judge_degraded(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    if (!is_explained(twin, active, SKYT_CAUSE_EXPIRED))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_KEPT, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a put left out chunks without a fault that explains it");
    }
    return SKYT_CAUSE_NONE;
}

SKYT_Cause_t SKYT_Outcome_End(SKYT_Twin_t *twin, const SKYT_Active_t *active, SKYT_Cause_t cause)
{
    SKYT_Truth_t *truth = &twin->truth[active->block];

    switch (active->kind)
    {
        case SKYT_OP_PUT:
            --truth->putting;
            truth->put_us = twin->now_us;
            truth->astray = active->astray | (cause != SKYT_CAUSE_NONE || truth->putting > 0 ? truth->astray : 0u);
            if (cause == SKYT_CAUSE_NONE)
            {
                truth->is_held     = true;
                truth->taint       = truth->fresh;
                truth->epoch       = active->epoch;
                truth->is_degraded = active->core.block.lost > 0u || (truth->putting > 0 && truth->is_degraded);
                return active->core.block.lost > 0u ? judge_degraded(twin, active) : cause;
            }
            truth->taint |= truth->fresh;
            return judge_transfer(twin, active, cause);
        case SKYT_OP_PURGE:
            --truth->purging;
            truth->purged_us = twin->now_us;
            SKYT_Truth_Taint(twin, active->block, SKYT_CAUSE_PURGED);
            return cause;
        default:
            if (cause == SKYT_CAUSE_NONE)
            {
                return cause;
            }
            if (cause == SKYT_CAUSE_ABSENT)
            {
                return SKYT_Ahead_Explains(twin, active) ? SKYT_CAUSE_PREFETCHED : judge_miss(twin, active);
            }
            return judge_transfer(twin, active, cause);
    }
}
