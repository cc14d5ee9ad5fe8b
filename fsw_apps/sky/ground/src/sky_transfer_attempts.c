/**
 * @file
 * Choice of a ground host's next attempt, and meaning of a denied share: see sky_transfer_attempts.h.
 */
#include "sky_transfer_attempts.h"

#include <string.h>

#include "sky_assert.h"

#define GETS_MAX 3u /* attempts before a search: around satellites found lost, after a window that has moved on */

SKY_Verdict_t SKY_Verdict_Of(const SKY_Denied_t *denied)
{
    if (denied->has_moved)
    {
        return SKY_VERDICT_KEEP;
    }
    return denied->at_stand_in || denied->is_unsettled || !denied->is_certain || denied->is_other || denied->is_blind ||
                   denied->is_aside || !denied->lazy_purge
               ? SKY_VERDICT_FORGET
               : SKY_VERDICT_PURGE;
}

bool SKY_Verdict_MayPurge(const SKY_Denied_t *denied)
{
    SKY_Denied_t settled = *denied;

    settled.is_unsettled = false;
    return SKY_Verdict_Of(&settled) == SKY_VERDICT_PURGE;
}

bool SKY_Verdict_IsAside(uint32_t spares, uint32_t denials)
{
    SKY_ASSERT(denials <= spares);
    return spares == 0u || denials < spares;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

/* Return true for ends that say nothing of the block: a satellite or a link may be lost. */
static bool IsNoWay(uint32_t status)
{
    return status == SKY_STATUS_EXPIRED || status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_HOP_LIMIT;
}

/* Return the step after the current places were asked often enough. */
static uint32_t Rest(const SKY_TransferAttempts_t *attempts)
{
    SKY_ASSERT(attempts->status != SKY_STATUS_RUNNING); /* an attempt has ended */
    SKY_ASSERT(attempts->searches <= SKY_ATTEMPT_SEARCHES_MAX);
    if (attempts->is_get && attempts->status == SKY_STATUS_BAD_KEY) /* another host may have put another block of the name */
    {
        return SKY_ATTEMPT_CONFIRM;
    }
    if (!attempts->is_get || (attempts->status != SKY_STATUS_MISS && !IsNoWay(attempts->status)))
    {
        return SKY_ATTEMPT_END;
    }
    if (attempts->may_search && !attempts->is_searched) /* who could not hand over to a silent satellite still has its share */
    {
        return SKY_ATTEMPT_SEARCH;
    }
    return attempts->status == SKY_STATUS_MISS && SKY_Verdict_MayPurge(&attempts->denied) ? SKY_ATTEMPT_CONFIRM : SKY_ATTEMPT_END;
}

/* Return the step after all places have denied a share. */
static uint32_t AfterDenial(const SKY_TransferAttempts_t *attempts)
{
    SKY_ASSERT(attempts->asks >= 1u);
    SKY_ASSERT(attempts->asks <= GETS_MAX + SKY_ATTEMPT_SEARCHES_MAX);
    return attempts->denied.has_moved && attempts->asks < GETS_MAX ? (uint32_t)SKY_ATTEMPT_ASK : Rest(attempts);
}

/* Return the step after an attempt that followed a search. */
static uint32_t AfterSearch(SKY_TransferAttempts_t *attempts, uint32_t row)
{
    SKY_ASSERT(attempts->searches >= 1u);
    if (attempts->status != SKY_STATUS_MISS || row == attempts->known_row)
    {
        return Rest(attempts);
    }
    if (attempts->searches < SKY_ATTEMPT_SEARCHES_MAX)
    {
        return SKY_ATTEMPT_SEARCH;
    }
    attempts->status = SKY_STATUS_EXPIRED; /* the window may have moved on each time */
    return SKY_ATTEMPT_END;
}

/* Return true if a share may be at a place of a row that was not asked. */
static bool AreOthers(const SKY_TransferAttempts_t *attempts, const SKY_Rows_t *rows)
{
    SKY_ASSERT(attempts->row_count <= SKY_PLACES_ROWS_MAX);
    SKY_ASSERT(rows->count <= SKY_PLACES_ROWS_MAX);
    for (uint32_t i = 0; i < rows->count; ++i)
    {
        uint32_t at = 0;

        while (at < attempts->row_count && attempts->rows[at] != rows->rows[i])
        {
            ++at;
        }
        if (at == attempts->row_count)
        {
            return true;
        }
    }
    return false;
}

/* ---- what happens ---------------------------------------------------------------------------------------------------- */

void SKY_TransferAttempts_InitGet(SKY_TransferAttempts_t *attempts, const SKY_Late_t *late, uint32_t row, bool lazy_purge)
{
    const bool is_over = late->is_known && late->is_over;

    (void)memset(attempts, 0, sizeof(*attempts));
    attempts->is_get            = true;
    attempts->step              = SKY_ATTEMPT_ASK;
    attempts->status            = SKY_STATUS_RUNNING;
    attempts->known_row         = row;
    attempts->may_search        = !is_over;
    attempts->denied.is_certain = is_over && late->is_certain;
    attempts->denied.lazy_purge = lazy_purge;
    SKY_ASSERT(!attempts->may_search || !attempts->denied.is_certain); /* only a search that is over is certain */
}

void SKY_TransferAttempts_InitPut(SKY_TransferAttempts_t *attempts)
{
    (void)memset(attempts, 0, sizeof(*attempts));
    attempts->step   = SKY_ATTEMPT_ASK;
    attempts->status = SKY_STATUS_RUNNING;
}

SKY_AttemptStep_t SKY_TransferAttempts_Next(SKY_TransferAttempts_t *attempts)
{
    const SKY_AttemptStep_t step = (SKY_AttemptStep_t)attempts->step;

    if (step == SKY_ATTEMPT_LOOK || step == SKY_ATTEMPT_DOUBT)
    {
        SKY_ASSERT(attempts->asks > 0u);
        attempts->step = attempts->asks == 1u ? (uint32_t)SKY_ATTEMPT_ASK : AfterDenial(attempts);
    }
    return step;
}

bool SKY_TransferAttempts_Begin(SKY_TransferAttempts_t *attempts, const SKY_Rows_t *rows, uint32_t ways)
{
    SKY_ASSERT(attempts->step == SKY_ATTEMPT_ASK);
    SKY_ASSERT(rows->count <= SKY_PLACES_ROWS_MAX);
    SKY_ASSERT(attempts->asks < GETS_MAX + SKY_ATTEMPT_SEARCHES_MAX);
    SKY_ASSERT(ways != 0u); /* 0 means no way was tried */
    if (ways == attempts->ways && !attempts->is_searched)
    {
        attempts->step = Rest(attempts);
        return false;
    }
    attempts->ways      = ways;
    attempts->row_count = rows->count;
    for (uint32_t i = 0; i < attempts->row_count; ++i)
    {
        attempts->rows[i] = rows->rows[i];
    }
    ++attempts->asks;
    SKY_ASSERT(attempts->row_count <= SKY_PLACES_ROWS_MAX);
    SKY_ASSERT(attempts->asks <= GETS_MAX + SKY_ATTEMPT_SEARCHES_MAX);
    return true;
}

void SKY_TransferAttempts_GiveUp(SKY_TransferAttempts_t *attempts)
{
    attempts->denied.is_certain = false; /* a satellite that was to be asked was not */
    attempts->step              = SKY_ATTEMPT_END;
}

void SKY_TransferAttempts_Ended(SKY_TransferAttempts_t *attempts, uint32_t status, bool at_stand_in, bool is_unsettled,
                                const SKY_Rows_t *rows, uint32_t row)
{
    const bool is_denied = status == SKY_STATUS_MISS;
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    SKY_ASSERT(rows->count <= SKY_PLACES_ROWS_MAX);

    SKY_ASSERT(attempts->step == SKY_ATTEMPT_ASK);
    SKY_ASSERT(attempts->asks > 0u);
    attempts->status              = status;
    attempts->denied.at_stand_in  = is_denied && at_stand_in;
    attempts->denied.is_unsettled = is_unsettled;
    attempts->denied.has_moved    = is_denied && AreOthers(attempts, rows);
    if (row != attempts->known_row) /* in a new row other satellites may have something to hand over */
    {
        attempts->may_search        = true;
        attempts->denied.is_certain = false;
    }
    if (attempts->is_searched)
    {
        attempts->step = AfterSearch(attempts, row);
    }
    else if (IsNoWay(status))
    {
        attempts->step = SKY_ATTEMPT_LOOK;
    }
    else if (attempts->denied.at_stand_in)
    {
        attempts->step = SKY_ATTEMPT_DOUBT;
    }
    else
    {
        attempts->step = AfterDenial(attempts);
    }
    SKY_ASSERT(attempts->step != SKY_ATTEMPT_SEARCH || attempts->is_get);  /* a put looks for nothing */
    SKY_ASSERT(attempts->step != SKY_ATTEMPT_CONFIRM || attempts->is_get); /* a put confirms nothing */
}

void SKY_TransferAttempts_Searched(SKY_TransferAttempts_t *attempts, const SKY_Late_t *late, uint32_t row)
{
    SKY_ASSERT(attempts->step == SKY_ATTEMPT_SEARCH);
    SKY_ASSERT(attempts->searches < SKY_ATTEMPT_SEARCHES_MAX);
    SKY_ASSERT(attempts->is_get);
    SKY_ASSERT(attempts->asks >= 1u);
    ++attempts->searches;
    attempts->is_searched       = true;
    attempts->known_row         = row;
    attempts->denied.is_certain = late->is_known && late->is_over && late->is_certain;
    /* A silent satellite is not asked twice in vain. What was denied may have come by now. */
    attempts->step = (uint32_t)SKY_ATTEMPT_ASK;
    if (IsNoWay(attempts->status) && late->is_known && late->is_over)
    {
        attempts->step = (uint32_t)SKY_ATTEMPT_END;
    }
    SKY_ASSERT(attempts->searches <= SKY_ATTEMPT_SEARCHES_MAX);
}

void SKY_TransferAttempts_Confirmed(SKY_TransferAttempts_t *attempts, bool is_other, bool is_blind, bool is_aside)
{
    SKY_ASSERT(attempts->step == SKY_ATTEMPT_CONFIRM);
    SKY_ASSERT(attempts->is_get);
    SKY_ASSERT(attempts->searches <= SKY_ATTEMPT_SEARCHES_MAX);
    attempts->denied.is_other = is_other;
    attempts->denied.is_blind = is_blind;
    attempts->denied.is_aside = is_aside;
    attempts->step            = SKY_ATTEMPT_END;
    if (is_other && !attempts->is_renewed)
    {
        attempts->denied.is_other = false;
        attempts->is_renewed      = true;
        attempts->is_searched     = false;
        attempts->asks            = 0;
        attempts->searches        = 0;
        attempts->ways            = 0;
        attempts->step            = SKY_ATTEMPT_ASK;
    }
}

void SKY_TransferAttempts_Doubt(SKY_TransferAttempts_t *attempts)
{
    SKY_ASSERT(attempts->is_get);
    if (attempts->step == SKY_ATTEMPT_END && attempts->status == SKY_STATUS_MISS)
    {
        attempts->step = SKY_ATTEMPT_CONFIRM;
    }
    SKY_ASSERT(attempts->step <= SKY_ATTEMPT_END);
}

SKY_Verdict_t SKY_TransferAttempts_Verdict(const SKY_TransferAttempts_t *attempts)
{
    if (attempts->is_get && attempts->status == SKY_STATUS_BAD_KEY)
    {
        return SKY_VERDICT_FORGET;
    }
    return attempts->is_get && attempts->status == SKY_STATUS_MISS ? SKY_Verdict_Of(&attempts->denied) : SKY_VERDICT_KEEP;
}
