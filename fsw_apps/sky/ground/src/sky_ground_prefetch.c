/**
 * @file
 * PREFETCH: each share of a block moves once, from where it is now to its place in a row to come (paper, end of section 3.7). There it waits.
 *
 *     ROUND --> MOVES --> HELD --> all is there, or enough and nobody has more --> DONE
 *       ^                      --> too little, and nobody has more, twice      --> MISS
 *       |                      --> the time is over                            --> DONE if it can be had, else EXPIRED
 *       |                      --> else, after a look if somebody was silent --+
 *       +---------------------------- PAUSES <---------------------------------+
 *
 * The answer to MIGRATE only says that a job began, so the targets are asked until they hold their shares. Until then all requests are
 * repeated: a satellite takes only a few jobs at a time, and a handover may move a share meanwhile, which is then found at its next place.
 * Shares that a late handover has left at places of earlier rows are moved from there. A share that is at its target already is told to stay.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

#define PAUSE_FIRST_US UINT64_C(10000)
#define PAUSE_MOST_US  UINT64_C(500000)
#define STRIKES        2u /* rounds after which a missing share counts as lost. In these nobody has anything to move or to hand over */
#define BYTE           8u
#define BYTE_MASK      0xFFu

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* Return the satellite to which a share moves. SKY_GroundWays_Servers has found those of all servers. */
static SKY_Addr_t TargetOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    const uint32_t servers = ground->limits.servers;

    SKY_ASSERT(share < servers);
    SKY_ASSERT(op->kind == SKY_GROUND_PREFETCH);
    return ground->placed[SKY_Spread_Server(op->key, op->facts.stripe.chunk_total, servers, share)];
}

static uint32_t SharesOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const uint32_t total = op->facts.stripe.chunk_total;

    SKY_ASSERT(total >= 1u);
    SKY_ASSERT(ground->limits.servers >= 1u);
    return total < ground->limits.servers ? total : ground->limits.servers;
}

/* Add a question about the block. */
static SKY_HostQuestion_t *Add(const SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostPlace_t place, uint8_t what)
{
    SKY_HostQuestion_t *question = &op->questions[op->asks];

    SKY_ASSERT(op->asks < ground->asks_most);
    SKY_GroundAsk_Write(op, question, &place, what);
    ++op->asks;
    return question;
}

/* Ask all that was added. Who is busy with other jobs for longer than an answer may take is asked again in the next round. @return false if
 * nothing was added */
static bool AskAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint64_t wait_us = SKY_GroundAsk_WaitUs(ground, op, false);
    const uint64_t left_us = op->prefetch.end_us > ground->now_us ? op->prefetch.end_us - ground->now_us : 0u;

    SKY_ASSERT(op->prefetch.step == SKY_GROUND_PREFETCH_MOVES || op->prefetch.step == SKY_GROUND_PREFETCH_HELD);
    return SKY_GroundAsk_Send(ground, op, wait_us < left_us ? wait_us : left_us);
}

/* Ask the next places of shares to move them. @return false if there are none left */
static bool AskMoves(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t rounds = op->block.rounds + 1u;
    const uint32_t all    = SharesOf(ground, op) * rounds;

    SKY_ASSERT(op->prefetch.step == SKY_GROUND_PREFETCH_MOVES);
    SKY_ASSERT(op->block.rounds <= SKY_HOST_ROUNDS);
    op->asks = 0;
    SKY_GroundWays_Servers(ground, op->to_row);
    for (; op->prefetch.at < all && op->asks < ground->asks_most; ++op->prefetch.at)
    {
        const uint32_t         share = op->prefetch.at / rounds;
        const SKY_HostPlace_t *place = &op->places[(size_t)(op->prefetch.at % rounds) * ground->limits.servers + share];

        if (place->plane != 0u)
        {
            const SKY_Addr_t    target   = TargetOf(ground, op, share);
            uint8_t            *payload  = SKY_GroundAsk_Room(ground, op, share); /* the same of all places of the share */
            SKY_HostQuestion_t *question = Add(ground, op, *place, SKY_OP_MIGRATE);

            payload[SKY_MIGRATE_OFF_PLANE]      = (uint8_t)(target.plane >> BYTE);
            payload[SKY_MIGRATE_OFF_PLANE + 1u] = (uint8_t)(target.plane & BYTE_MASK);
            payload[SKY_MIGRATE_OFF_SLOT]       = (uint8_t)(target.slot >> BYTE);
            payload[SKY_MIGRATE_OFF_SLOT + 1u]  = (uint8_t)(target.slot & BYTE_MASK);
            question->payload                   = payload;
            question->payload_bytes             = SKY_MIGRATE_BYTES;
            question->epoch                     = op->to_row;
            question->chunk_id                  = share; /* the row does not say it of a stand-in */
        }
    }
    return AskAll(ground, op);
}

/* Note whether a satellite was silent: a look is about the last one. */
static void NoteSilence(SKY_GroundOp_t *op, const SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    SKY_ASSERT(question->place.plane != 0u);
    if (question->status != SKY_STATUS_DONE)
    {
        op->prefetch.is_silent = true;
        op->failed_on          = (SKY_Addr_t){question->place.plane, question->place.slot};
    }
}

/* Take in what places said. */
static void TakeMoves(SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;

    SKY_ASSERT(prefetch->step == SKY_GROUND_PREFETCH_MOVES);
    SKY_ASSERT(op->asking == 0u);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        const SKY_Addr_t          asked    = {question->place.plane, question->place.slot};
        const bool                is_done  = question->status == SKY_STATUS_DONE;
        const uint8_t            *payload  = question->payload;
        const SKY_Addr_t          target   = {
                       (uint16_t)((uint32_t)payload[SKY_MIGRATE_OFF_PLANE] << BYTE | payload[SKY_MIGRATE_OFF_PLANE + 1u]),
                       (uint16_t)((uint32_t)payload[SKY_MIGRATE_OFF_SLOT] << BYTE | payload[SKY_MIGRATE_OFF_SLOT + 1u])};

        NoteSilence(op, question);
        prefetch->has_more =
            prefetch->has_more || (is_done && question->answer.status != SKY_STATUS_NOT_FOUND && !SKY_Addr_Equal(asked, target));
    }
}

static SKY_HeldShare_t *ShareOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->memory < ground->limits.operations);
    return &ground->held[(size_t)op->memory * ground->limits.servers + share];
}

/* Ask targets for the next piece of their shares. @return false if there is none left, or nobody is in sight */
static bool AskHeld(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t piece = op->prefetch.at;

    SKY_ASSERT(op->prefetch.step == SKY_GROUND_PREFETCH_HELD);
    SKY_ASSERT(SharesOf(ground, op) <= ground->asks_most);
    op->asks = 0;
    SKY_GroundWays_Servers(ground, op->to_row);
    for (uint32_t number = 0; number < SharesOf(ground, op); ++number)
    {
        const SKY_HostPlace_t place = SKY_GroundWays_Place(ground, TargetOf(ground, op, number));

        if (place.plane != 0u && piece < SKY_HeldShare_Pieces(&op->facts, ground->limits.servers, number))
        {
            SKY_HeldShare_t    *share    = ShareOf(ground, op, number);
            uint8_t            *payload  = SKY_GroundAsk_Room(ground, op, number);
            SKY_HostQuestion_t *question = Add(ground, op, place, SKY_OP_HAS);

            SKY_HeldShare_Init(share, &op->facts, ground->limits.servers, number, piece, 1, false);
            question->payload_bytes = SKY_HeldShare_Ask(share, payload, &question->chunk_id);
            question->payload       = payload;
            question->room_bytes    = SKY_CHUNKSET_MAX_BYTES;
            question->room          = payload + SKY_CHUNKSET_MAX_BYTES;
            SKY_ASSERT(question->payload_bytes >= 1u);
        }
    }
    ++op->prefetch.at;
    return AskAll(ground, op);
}

/* Take in what targets hold. Questions are in the order of shares. */
static void TakeHeld(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->prefetch.step == SKY_GROUND_PREFETCH_HELD);
    SKY_ASSERT(op->asking == 0u);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        SKY_HeldShare_t          *share    = ShareOf(ground, op, question->chunk_id % ground->limits.servers);
        const bool                is_done  = question->status == SKY_STATUS_DONE;

        SKY_HeldShare_Take(share, op->key, is_done ? &question->answer : NULL);
        SKY_Held_Add(&op->prefetch.told, share);
        NoteSilence(op, question);
        SKY_ASSERT(SKY_HeldShare_Next(share) == SKY_HELD_NOWHERE);
    }
}

/* ---- gets meanwhile -------------------------------------------------------------------------------------------------- */

static bool AreOfOneBlock(const SKY_GroundOp_t *one, const SKY_GroundOp_t *other)
{
    SKY_ASSERT(one != NULL);
    SKY_ASSERT(other != NULL);
    return one->tenant == other->tenant && memcmp(one->key, other->key, SKY_KEY_BYTES) == 0;
}

uint32_t SKY_GroundPrefetch_EpochOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    uint32_t epoch = op->facts.epoch;

    SKY_ASSERT(op->kind == SKY_GROUND_GET);
    SKY_ASSERT(ground->first != NULL);
    for (const SKY_GroundOp_t *other = ground->first; other != NULL; other = other->next)
    {
        epoch = other->kind == SKY_GROUND_PREFETCH && AreOfOneBlock(op, other) ? other->to_row : epoch;
    }
    return epoch;
}

/* Let gets of the block that run ask at the row to come as well, if it is denied where they ask now. */
static void TellGets(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_PREFETCH);
    SKY_ASSERT(op->to_row >= 1u);
    for (SKY_GroundOp_t *other = ground->first; other != NULL; other = other->next)
    {
        if (other->kind == SKY_GROUND_GET && AreOfOneBlock(op, other))
        {
            other->facts.epoch = op->to_row;
        }
    }
}

/* ---- rounds ---------------------------------------------------------------------------------------------------------- */

/* Begin a round. @return true if the operation waits */
static bool BeginRound(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;
    const SKY_GroundMay_t may      = SKY_GroundInquiry_May(ground, op);

    SKY_ASSERT(prefetch->step == SKY_GROUND_PREFETCH_ROUND);
    SKY_ASSERT(op->asking == 0u);
    if (may == SKY_GROUND_MAY_LATER || (may == SKY_GROUND_MAY_NOW && SKY_GroundInquiry_WaitsLate(ground, op)))
    {
        return true;
    }
    const SKY_Late_t late = SKY_GroundWays_Late(ground);

    prefetch->is_over        = late.is_known && late.is_over;
    prefetch->has_more       = false;
    prefetch->is_silent      = false;
    prefetch->at             = 0;
    op->has_asked_lost       = false;
    op->has_searched         = false;
    op->attempts.is_searched = true; /* who is late to hand over is asked as well */
    (void)memset(&prefetch->told, 0, sizeof(prefetch->told));
    prefetch->told.rows = op->held_rows;
    if (op->held_rows != NULL)
    {
        (void)memset(op->held_rows, 0, SKY_Stripe_Rows(&op->facts.stripe) * sizeof(*op->held_rows));
    }
    prefetch->told.verdict = (uint32_t)SKY_HELD_UNKNOWN; /* unless targets say more */
    prefetch->step =
        may == SKY_GROUND_MAY_NOW && SKY_GroundWays_Find(ground, op) ? SKY_GROUND_PREFETCH_MOVES : SKY_GROUND_PREFETCH_PAUSES;
    return false;
}

/* Decide at the end of a round. @return true if it was the last one: the operation has its status */
static bool EndRound(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;
    const bool            is_whole = prefetch->told.verdict == (uint32_t)SKY_HELD_WHOLE;
    const bool            is_all   = is_whole && prefetch->told.denied == 0u && !prefetch->is_silent;
    const bool            is_struck =
        prefetch->told.verdict != (uint32_t)SKY_HELD_UNKNOWN && !prefetch->has_more && !prefetch->is_silent && prefetch->is_over;

    SKY_ASSERT(prefetch->strikes < STRIKES);
    SKY_ASSERT(prefetch->pause_us >= PAUSE_FIRST_US);
    prefetch->strikes = is_struck ? prefetch->strikes + 1u : 0u;
    if (is_all || prefetch->strikes == STRIKES)
    {
        op->status = is_whole ? SKY_STATUS_DONE : SKY_STATUS_MISS;
        return true;
    }
    if (ground->now_us + prefetch->pause_us >= prefetch->end_us)
    {
        op->status = is_whole ? SKY_STATUS_DONE : SKY_STATUS_EXPIRED;
        return true;
    }
    return false;
}

/* Wait before the next round. */
static void Pause(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;

    SKY_ASSERT(prefetch->pause_us <= PAUSE_MOST_US);
    SKY_ASSERT(op->wakes_us == 0u);
    op->wakes_us       = ground->now_us + prefetch->pause_us;
    prefetch->pause_us = 2u * prefetch->pause_us < PAUSE_MOST_US ? 2u * prefetch->pause_us : PAUSE_MOST_US;
    prefetch->step     = SKY_GROUND_PREFETCH_ROUND;
}

void SKY_GroundPrefetch_Begin(SKY_GroundOp_t *op, uint64_t now_us)
{
    SKY_ASSERT(op->deadline_ms >= 1u);
    SKY_ASSERT(op->prefetch.strikes == 0u);
    op->prefetch.step     = SKY_GROUND_PREFETCH_ROUND;
    op->prefetch.end_us   = now_us + (uint64_t)op->deadline_ms * SKY_GROUND_US_PER_MS;
    op->prefetch.pause_us = PAUSE_FIRST_US;
}

/* Go on in a round. @return true if the operation waits for answers */
static bool GoOn(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;

    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(op->asking == 0u);
    if (prefetch->step == SKY_GROUND_PREFETCH_MOVES)
    {
        if (prefetch->at > 0u)
        {
            TakeMoves(op);
        }
        if (AskMoves(ground, op))
        {
            return true;
        }
        prefetch->step         = SKY_GROUND_PREFETCH_HELD;
        prefetch->at           = 0;
        prefetch->told.verdict = (uint32_t)SKY_HELD_WHOLE;
    }
    if (prefetch->step == SKY_GROUND_PREFETCH_HELD)
    {
        if (prefetch->at > 0u)
        {
            TakeHeld(ground, op);
        }
        if (AskHeld(ground, op))
        {
            return true;
        }
        if (prefetch->at == 1u) /* nobody was asked */
        {
            prefetch->told.verdict = (uint32_t)SKY_HELD_UNKNOWN;
        }
        prefetch->step = SKY_GROUND_PREFETCH_PAUSES;
    }
    return false;
}

bool SKY_GroundPrefetch_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundPrefetch_t *prefetch = &op->prefetch;

    SKY_ASSERT(op->kind == SKY_GROUND_PREFETCH);
    SKY_ASSERT(op->asking == 0u);
    if (op->to_row == 0u || op->to_row > ground->sky.schedule->count)
    {
        op->status = SKY_STATUS_REFUSED; /* the schedule has no such row, or has it no more */
        return false;
    }
    if ((prefetch->step == SKY_GROUND_PREFETCH_ROUND && BeginRound(ground, op)) || GoOn(ground, op))
    {
        return true;
    }
    SKY_ASSERT(prefetch->step == SKY_GROUND_PREFETCH_PAUSES);
    if (EndRound(ground, op))
    {
        TellGets(ground, op);
        return false;
    }
    Pause(ground, op);
    if (prefetch->is_silent)
    {
        op->wakes_us = 0; /* the look takes long enough */
        SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
    }
    return true;
}
