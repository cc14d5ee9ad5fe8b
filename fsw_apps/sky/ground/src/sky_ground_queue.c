/**
 * @file
 * Operations that wait for their beginning, and the order in which they begin.
 *
 * Tenants take turns, and so do the classes of a tenant: who has begun the fewest bytes, by weight, is next. That is deficit round robin with
 * deficits that are counted as debts, so that no rounds are spent on who cannot pay for its block yet. Within a class small operations go ahead of large ones,
 * until AHEAD_BYTES of them have done so since the last large one. Small ones are bounded by their number alone; large ones by their bytes,
 * too, and they leave a quarter of all places to small ones.
 *
 * Nobody starves. What begins adds to the debt of its tenant and its class, and who comes to an empty line has no less debt than the last one
 * that began: so after a bounded number of bytes all others have more debt than one that waits. Calm ones are ahead of nobody before
 * CALM_BYTES of others. A large operation that is next and finds no room holds up all large ones behind it (its own tenant's, if only
 * that has no room) until those before it have ended, which their deadlines bring about; so a block longer than a limit finds itself
 * alone. Calm ones have a limit of their own, and one of them is always within that.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

#define OP_BYTES    1024u    /* that an operation costs besides its block */
#define AHEAD_BYTES 262144u  /* small operations cost so much, and a large one that waits is next */
#define CALM_BYTES  4194304u /* others of a tenant begin, and a calm one that waits is next */
#define CALM_PART   4u       /* large calm ones have this part of a tenant's bytes */

/* What a byte of each class costs. */
static const uint64_t COSTS[SKY_GROUND_CLASSES] = {1, 4, 16};

/* ---- lines ------------------------------------------------------------------------------------------------------------- */

static uint64_t BytesOf(const SKY_GroundOp_t *op)
{
    return op->kind == SKY_GROUND_GET || op->kind == SKY_GROUND_PUT ? op->facts.stripe.block_len : 0u;
}

static SKY_GroundClass_t ClassOf(const SKY_GroundOp_t *op)
{
    if (op->is_calm)
    {
        return SKY_GROUND_CLASS_CALM;
    }
    return op->kind == SKY_GROUND_PUT || op->kind == SKY_GROUND_PURGE ? SKY_GROUND_CLASS_PUT : SKY_GROUND_CLASS_GET;
}

static bool HasAny(const SKY_GroundLines_t *lines)
{
    SKY_ASSERT((lines->small.first == NULL) == (lines->small.last == NULL));
    SKY_ASSERT((lines->large.first == NULL) == (lines->large.last == NULL));
    return lines->small.first != NULL || lines->large.first != NULL;
}

static uint64_t MoreOf(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Return the time at which an operation ends whether its turn has come or not. */
static uint64_t EndOf(const SKY_GroundOp_t *op)
{
    return op->kind == SKY_GROUND_EXCHANGE && op->deadline_ms != 0u ? op->submitted_us + SKY_GROUND_US_PER_MS * op->deadline_ms
                                                                    : UINT64_MAX;
}

/* Return the number of a tenant's account: its own, or a free one, or one that it shares. */
static uint32_t AccountOf(const SKY_Ground_t *ground, uint32_t tenant)
{
    uint32_t found  = tenant % ground->limits.tenants;
    bool     is_own = false;

    for (uint32_t i = 0; i < ground->limits.tenants && !is_own; ++i)
    {
        const SKY_GroundAccount_t *account = &ground->queue.accounts[i];
        const SKY_GroundAccount_t *other   = &ground->queue.accounts[found];

        is_own = account->tenant == tenant;
        if (is_own || (account->waiting + account->running == 0u && other->waiting + other->running > 0u))
        {
            found = i;
        }
    }
    SKY_ASSERT(found < ground->limits.tenants);
    return found;
}

static SKY_GroundLine_t *LineOf(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->account < ground->limits.tenants);
    SKY_ASSERT(op->class < SKY_GROUND_CLASSES);
    SKY_GroundLines_t *lines = &ground->queue.accounts[op->account].classes[op->class];

    return op->is_small ? &lines->small : &lines->large;
}

void SKY_GroundQueue_Add(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    op->is_queued                = true;
    op->bytes                    = BytesOf(op);
    op->is_small                 = op->bytes <= op->facts.stripe.chunk_len;
    op->class                    = (uint32_t)ClassOf(op);
    op->account                  = AccountOf(ground, op->tenant);
    SKY_GroundAccount_t *account = &ground->queue.accounts[op->account];
    SKY_GroundLines_t   *lines   = &account->classes[op->class];
    SKY_GroundLine_t    *line    = LineOf(ground, op);

    account->tenant = account->waiting + account->running == 0u ? op->tenant : account->tenant;
    account->used   = account->waiting == 0u ? MoreOf(account->used, ground->queue.clock) : account->used;
    lines->used     = HasAny(lines) ? lines->used : MoreOf(lines->used, account->clock + (op->is_calm ? CALM_BYTES : 0u));
    op->next        = NULL;
    op->previous    = line->last;
    *(line->last == NULL ? &line->first : &line->last->next) = op;
    line->last                                               = op;
    ++account->waiting;
    ++ground->queue.waiting;
    ground->queue.expires_us = EndOf(op) < ground->queue.expires_us ? EndOf(op) : ground->queue.expires_us;
    SKY_ASSERT(ground->queue.waiting <= ground->limits.queued);
    SKY_ASSERT(account->waiting <= ground->queue.waiting);
}

void SKY_GroundQueue_Remove(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundLine_t *line = LineOf(ground, op);

    SKY_ASSERT(op->is_queued);
    SKY_ASSERT(ground->queue.waiting >= 1u);
    SKY_ASSERT(ground->queue.accounts[op->account].waiting >= 1u);
    *(op->previous == NULL ? &line->first : &op->previous->next) = op->next;
    *(op->next == NULL ? &line->last : &op->next->previous)      = op->previous;
    op->is_queued                                                = false;
    --ground->queue.accounts[op->account].waiting;
    --ground->queue.waiting;
    ground->queue.expires_us = ground->queue.waiting == 0u ? UINT64_MAX : ground->queue.expires_us;
}

/* Move those of a line whose deadlines have passed to others. @return when the next one of the line has its deadline */
static uint64_t TakeLateOf(SKY_Ground_t *ground, const SKY_GroundLine_t *line, SKY_GroundOp_t **late)
{
    uint64_t        next_us = UINT64_MAX;
    SKY_GroundOp_t *next    = NULL;

    for (SKY_GroundOp_t *op = line->first; op != NULL; op = next)
    {
        const uint64_t end_us = EndOf(op);

        next = op->next;
        SKY_ASSERT(op->is_queued);
        SKY_ASSERT(op->is_small || end_us == UINT64_MAX);
        if (end_us <= ground->now_us)
        {
            SKY_GroundQueue_Remove(ground, op);
            op->next = *late;
            *late    = op;
        }
        else
        {
            next_us = end_us < next_us ? end_us : next_us;
        }
    }
    return next_us;
}

SKY_GroundOp_t *SKY_GroundQueue_TakeLate(SKY_Ground_t *ground)
{
    SKY_GroundOp_t *late    = NULL;
    uint64_t        next_us = UINT64_MAX;

    if (ground->now_us < ground->queue.expires_us)
    {
        return NULL;
    }
    for (uint32_t i = 0; i < ground->limits.tenants; ++i)
    {
        for (uint32_t class = 0; class < SKY_GROUND_CLASSES; ++class)
        {
            const SKY_GroundLine_t *line = &ground->queue.accounts[i].classes[class].small; /* a large one has no deadline here */
            const uint64_t          one_us = TakeLateOf(ground, line, &late);

            next_us = one_us < next_us ? one_us : next_us;
        }
    }
    ground->queue.expires_us = next_us;
    SKY_ASSERT(next_us > ground->now_us);
    SKY_ASSERT(late == NULL || !late->is_queued);
    return late;
}

/* ---- turns ------------------------------------------------------------------------------------------------------------- */

/* Return true if so many more bytes are within a limit, or would be alone. */
static bool Fits(uint64_t bytes, uint64_t under_way, uint64_t limit)
{
    return under_way == 0u || (bytes <= limit && under_way <= limit - bytes);
}

/* Return true if the limits for all tenants have room for a large operation. */
static bool FitsAll(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const uint32_t most = ground->limits.operations - ground->limits.operations / 4u;

    SKY_ASSERT(ground->queue.large <= most);
    SKY_ASSERT(!op->is_small);
    return ground->queue.large < most && Fits(op->bytes, ground->queue.bytes, ground->limits.bytes);
}

/* Return the operation of a class that is next. @param small_only  no large one has room @return NULL if there is none */
static SKY_GroundOp_t *NextOfClass(const SKY_Ground_t *ground, const SKY_GroundAccount_t *account, uint32_t class,
                                   bool small_only)
{
    const SKY_GroundLines_t *lines = &account->classes[class];
    SKY_GroundOp_t          *large = small_only ? NULL : lines->large.first;

    SKY_ASSERT(class < SKY_GROUND_CLASSES);
    SKY_ASSERT(large == NULL || !large->is_small);
    if (large != NULL && class == (uint32_t)SKY_GROUND_CLASS_CALM &&
        !Fits(large->bytes, account->calm_bytes, ground->limits.tenant_bytes / CALM_PART))
    {
        large = NULL;
    }
    return large != NULL && (lines->small.first == NULL || lines->ahead >= AHEAD_BYTES) ? large : lines->small.first;
}

/* Return the operation of a tenant that is next, whether there is room for it or not. */
static SKY_GroundOp_t *FirstOf(const SKY_Ground_t *ground, const SKY_GroundAccount_t *account, bool small_only)
{
    SKY_GroundOp_t *next = NULL;

    SKY_ASSERT(account->waiting <= ground->queue.waiting);
    SKY_ASSERT(account->calm_bytes <= account->bytes);
    for (uint32_t class = 0; class < SKY_GROUND_CLASSES; ++class)
    {
        SKY_GroundOp_t *op = NextOfClass(ground, account, class, small_only);

        next = op != NULL && (next == NULL || account->classes[class].used < account->classes[next->class].used) ? op : next;
    }
    return next;
}

/* Return the operation of a tenant that is next within its own limit. */
static SKY_GroundOp_t *NextOfTenant(const SKY_Ground_t *ground, const SKY_GroundAccount_t *account, bool small_only)
{
    SKY_GroundOp_t *next = FirstOf(ground, account, small_only);

    SKY_ASSERT(next == NULL || next->is_queued);
    SKY_ASSERT(next == NULL || account->waiting > 0u);
    return next == NULL || next->is_small || Fits(next->bytes, account->bytes, ground->limits.tenant_bytes)
               ? next
               : FirstOf(ground, account, true);
}

/* Return the operation that is next, whether there is room for it in all limits or not. */
static SKY_GroundOp_t *Next(const SKY_Ground_t *ground, bool small_only)
{
    const SKY_GroundQueue_t *queue = &ground->queue;
    SKY_GroundOp_t          *next  = NULL;

    SKY_ASSERT(ground->limits.tenants >= 1u);
    SKY_ASSERT(queue->waiting >= 1u);
    for (uint32_t i = 0; i < ground->limits.tenants; ++i)
    {
        SKY_GroundOp_t *op = queue->accounts[i].waiting > 0u ? NextOfTenant(ground, &queue->accounts[i], small_only) : NULL;

        next = op != NULL && (next == NULL || queue->accounts[i].used < queue->accounts[next->account].used) ? op : next;
    }
    return next;
}

/* Note that an operation begins: its tenant and its class have had its bytes. */
static void Charge(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_GroundAccount_t *account = &ground->queue.accounts[op->account];
    SKY_GroundLines_t   *lines   = &account->classes[op->class];
    const uint64_t       cost    = op->bytes + OP_BYTES;

    SKY_ASSERT(op->class < SKY_GROUND_CLASSES);
    ground->queue.clock = MoreOf(ground->queue.clock, account->used);
    account->clock      = MoreOf(account->clock, lines->used);
    account->used += cost;
    lines->used += cost * COSTS[op->class];
    lines->ahead = op->is_small && lines->large.first != NULL ? lines->ahead + cost : 0u;
    ++account->running;
    if (!op->is_small)
    {
        account->bytes += op->bytes;
        account->calm_bytes += op->is_calm ? op->bytes : 0u;
        ground->queue.bytes += op->bytes;
        ++ground->queue.large;
    }
    SKY_ASSERT(account->calm_bytes <= account->bytes);
}

SKY_GroundOp_t *SKY_GroundQueue_Take(SKY_Ground_t *ground)
{
    if (ground->queue.waiting == 0u || ground->running == ground->limits.operations)
    {
        return NULL;
    }
    SKY_GroundOp_t *op = Next(ground, false);

    if (op != NULL && !op->is_small && !FitsAll(ground, op))
    {
        op = Next(ground, true);
    }
    if (op != NULL)
    {
        SKY_GroundQueue_Remove(ground, op);
        Charge(ground, op);
    }
    return op;
}

void SKY_GroundQueue_Ended(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_GroundAccount_t *account = &ground->queue.accounts[op->account];

    SKY_ASSERT(account->running >= 1u);
    SKY_ASSERT(op->wants == 0u || ground->queue.wanting >= 1u);
    ground->queue.wanting -= op->wants > 0u ? 1u : 0u;
    --account->running;
    if (!op->is_small)
    {
        SKY_ASSERT(ground->queue.large >= 1u);
        account->bytes -= op->bytes;
        account->calm_bytes -= op->is_calm ? op->bytes : 0u;
        ground->queue.bytes -= op->bytes;
        --ground->queue.large;
    }
    SKY_ASSERT(account->bytes <= ground->queue.bytes);
}

/* ---- room for transfers -------------------------------------------------------------------------------------------------- */

bool SKY_GroundQueue_HasRoom(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint64_t pieces   = SKY_Host_Pieces(&ground->host, &op->block);
    const bool     is_first = ground->queue.wanting == 0u || op->wants > 0u; /* it has waited, and was resumed in its turn */

    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->wants == 0u || ground->queue.wanting >= 1u);
    ground->queue.wanting -= op->wants > 0u ? 1u : 0u;
    op->wants = 0;
    if (pieces == 0u || pieces > ground->limits.pieces || (is_first && SKY_Host_HasRoom(&ground->host, pieces)))
    {
        return true; /* what can never begin is refused by the host */
    }
    op->wants = pieces;
    ++ground->queue.wanting;
    return false;
}

void SKY_GroundQueue_Resume(SKY_Ground_t *ground)
{
    uint64_t pieces   = 0;
    bool     has_room = ground->queue.wanting > 0u;

    SKY_ASSERT(ground->queue.wanting <= ground->running);
    for (SKY_GroundOp_t *op = ground->first; op != NULL && has_room; op = op->next)
    {
        if (op->wants > 0u && op->waits == SKY_GROUND_WAIT_NOT)
        {
            pieces += op->wants;
            has_room   = SKY_Host_HasRoom(&ground->host, pieces);
            op->is_due = op->is_due || has_room;
        }
    }
}
