/**
 * @file
 * Inquiries of the ground, one at a time, and the operations that wait for the result.
 *
 *     LOOK  after an answer that did not come: which satellites do not answer at all?   sky_ground_look.c
 *     BACK  are lost satellites back?                                                   sky_ground_back.c
 *     LATE  which satellites have something left to hand over?                          sky_ground_late.c
 *     BLIND do servers follow a schedule, though this host follows none?                sky_ground_blind.c
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* ---- inquiries ------------------------------------------------------------------------------------------------------- */

/* Return true if the answer that an operation waits for is known already. */
static bool IsKnown(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    return (op->waits == SKY_GROUND_WAIT_LATE && SKY_GroundWays_Late(ground).is_known) ||
           (op->waits == SKY_GROUND_WAIT_LOOK && op->failed_on.plane != 0u && SKY_Ground_IsLost(ground, op->failed_on));
}

static void Resume(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(!op->is_due);
    SKY_ASSERT(op->asking == 0u);
    op->waits  = SKY_GROUND_WAIT_NOT;
    op->is_due = true;
}

/* Begin an inquiry. @param failed  satellite that a look is about besides @param doubts  as for SKY_GroundBack_Begin @return false if there is
 * nothing to ask */
static bool BeginInquiry(SKY_Ground_t *ground, SKY_GroundWait_t kind, SKY_Addr_t failed, bool doubts)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(kind != SKY_GROUND_WAIT_NOT);
    inquiry->kind    = kind;
    inquiry->round   = 0;
    inquiry->running = 0;
    inquiry->failed  = failed;
    ++inquiry->number;
    switch (inquiry->kind)
    {
        case SKY_GROUND_WAIT_LOOK:
            return SKY_GroundLook_Begin(ground);
        case SKY_GROUND_WAIT_BACK:
            return SKY_GroundBack_Begin(ground, doubts);
        case SKY_GROUND_WAIT_BLIND:
            return SKY_GroundBlind_Begin(ground);
        default:
            SKY_GroundLate_Begin(ground);
            return true;
    }
}

/* End an inquiry of which all have answered, or whose time is over. @return true if it is over */
static bool EndStep(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.running == 0u);
    SKY_ASSERT(ground->inquiry.kind != SKY_GROUND_WAIT_NOT);
    switch (ground->inquiry.kind)
    {
        case SKY_GROUND_WAIT_LOOK:
            return SKY_GroundLook_End(ground);
        case SKY_GROUND_WAIT_BACK:
            SKY_GroundBack_End(ground);
            return true;
        case SKY_GROUND_WAIT_BLIND:
            SKY_GroundBlind_End(ground);
            return true;
        default:
            return SKY_GroundLate_End(ground);
    }
}

/* Let the operations go on that waited for the inquiry before it began. */
static void EndInquiry(SKY_Ground_t *ground)
{
    const SKY_GroundWait_t kind = ground->inquiry.kind;

    SKY_ASSERT(kind != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(ground->inquiry.running == 0u);
    ground->inquiry.kind = SKY_GROUND_WAIT_NOT;
    for (SKY_GroundOp_t *op = ground->first; op != NULL; op = op->next)
    {
        if (op->waits == kind && op->waits_for <= ground->inquiry.number)
        {
            Resume(op);
        }
        op->is_due =
            op->is_due || (kind == SKY_GROUND_WAIT_LOOK && op->find.is_open && op->asking > 0u); /* it asks around who is lost */
    }
}

/* Begin a look that no operation waits for: satellites are suspected. @return false if there is nobody to ask */
static bool BeginLook(SKY_Ground_t *ground)
{
    const SKY_Addr_t nobody = {0, 0};
    const uint32_t   away   = SKY_Reach_Away(&ground->reach, ground->away);
    uint32_t         at     = 0;

    SKY_ASSERT(ground->reach.suspects > 0u);
    while (at < away && SKY_Ground_IsLost(ground, ground->away[at]))
    {
        ++at;
    }
    SKY_ASSERT(at < away);
    if (!BeginInquiry(ground, SKY_GROUND_WAIT_LOOK, at < away ? ground->away[at] : nobody, false))
    {
        SKY_Reach_Trust(&ground->reach);
        return false;
    }
    return true;
}

static SKY_GroundOp_t *FirstWaiting(const SKY_Ground_t *ground)
{
    SKY_GroundOp_t *op = ground->first;

    SKY_ASSERT((op == NULL) == (ground->running == 0u));
    while (op != NULL && op->waits == SKY_GROUND_WAIT_NOT)
    {
        op = op->next;
    }
    SKY_ASSERT(op == NULL || op->waits_for >= 1u);
    return op;
}

/* Return true if a satellite is doubted that a look may find lost. */
static bool IsLookDue(const SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_NOT);
    return ground->doubted.plane != 0u && ground->sky.schedule != NULL && ground->reach.pause_us == 0u &&
           !SKY_Ground_IsLost(ground, ground->doubted);
}

/* Begin the next inquiry: what the first operation waits for that waits, or a look at the satellite that is doubted. @return false if there is
 * none */
static bool BeginNext(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Addr_t doubted = ground->doubted;

    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_NOT);
    if (op != NULL && IsKnown(ground, op))
    {
        Resume(op);
        return true;
    }
    if (op != NULL)
    {
        SKY_ASSERT(op->waits_for <= ground->inquiry.number + 1u);
        if (!BeginInquiry(ground, op->waits, op->failed_on, op->doubts))
        {
            EndInquiry(ground);
        }
        return true;
    }
    if (ground->reach.suspects > 0u)
    {
        if (!BeginLook(ground))
        {
            EndInquiry(ground);
        }
        return true;
    }
    const bool is_due = IsLookDue(ground);

    ground->doubted = (SKY_Addr_t){0, 0};
    if (is_due && !BeginInquiry(ground, SKY_GROUND_WAIT_LOOK, doubted, false))
    {
        EndInquiry(ground);
    }
    return is_due;
}

bool SKY_GroundInquiry_Run(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    SKY_GroundOp_t      *op      = FirstWaiting(ground);

    SKY_ASSERT(inquiry->running <= inquiry->count);
    SKY_ASSERT(inquiry->running == 0u || inquiry->kind != SKY_GROUND_WAIT_NOT);
    if (inquiry->kind == SKY_GROUND_WAIT_NOT)
    {
        return BeginNext(ground, op);
    }
    if (inquiry->running > 0u)
    {
        return false;
    }
    if (EndStep(ground))
    {
        EndInquiry(ground);
    }
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

void SKY_GroundInquiry_Wait(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundWait_t what)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(what != SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->status == SKY_STATUS_RUNNING);
    op->waits     = what;
    op->waits_for = ground->inquiry.number + 1u;
}

SKY_GroundMay_t SKY_GroundInquiry_May(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    switch (SKY_Reach_May(&ground->reach, ground->now_us))
    {
        case SKY_REACH_SILENT:
            return SKY_GROUND_MAY_NOT;
        case SKY_REACH_LOOK:
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
            return SKY_GROUND_MAY_LATER;
        default:
            break;
    }
    if (ground->reach.lost_count > 0u && !op->has_asked_lost)
    {
        op->has_asked_lost = true;
        op->doubts         = false;
        SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_BACK);
        return SKY_GROUND_MAY_LATER;
    }
    return SKY_GROUND_MAY_NOW;
}

bool SKY_GroundInquiry_WaitsLate(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind != SKY_GROUND_PUT);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (op->has_searched || ground->reach.pause_us > 0u || SKY_GroundWays_Late(ground).is_known)
    {
        return false;
    }
    op->has_searched = true;
    SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LATE);
    return true;
}
