/**
 * @file
 * CHECK: do servers hold all of a block? sky_held.h decides for which chunks they are asked, and what the answers mean. A share is asked for piece by
 * piece. Before a block counts as one whose rest is to be purged, stand-ins are asked whether they hold some of it.
 *
 *     LATE  who is late to hand over? --> nobody is to be asked ---------> UNANSWERED
 *       |      ^
 *       v      +-- LOOK: once, without hurry, if it depends on one that was silent
 *     HELD  what do servers hold? ------> all, or enough of each row ----> DONE
 *       |                           ----> that is not known -------------> UNANSWERED
 *       |                           ----> too little, but it may be had -> MISS: KEEP or FORGET it
 *       v   too little, and the rest is of no use, unless one of these is true:
 *     AHEAD   it is prefetched for a row to come
 *     BLIND   satellites follow a schedule that this host does not know
 *     ASIDE   stand-ins hold some of it ---------------------------------> MISS: FORGET it if one is, else PURGE it
 *
 * In a hurry, before somebody counts on the block, sky_presence.h decides who is asked, nobody is while shares may be on their way, and silence
 * says nothing. Without hurry satellites that are late to hand over are asked, too; and if it depends on one that was silent, a look finds out
 * whether it is lost, and all are asked once more.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define ASKED (1u << 31) /* with the piece of a share: a place of it was asked */

/* ---- memory of the operation ------------------------------------------------------------------------------------------- */

static SKY_HeldShare_t *ShareOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->memory < ground->limits.operations);
    return &ground->held[(size_t)op->memory * ground->limits.servers + share];
}

static uint32_t *PieceOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->kind == SKY_GROUND_CHECK);
    return &ground->held_pieces[(size_t)op->memory * ground->limits.servers + share];
}

/* Return room for the payload of a question about a share; that of the answer is behind it. */
static uint8_t *PayloadOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(op->check.step == SKY_GROUND_CHECK_HELD);
    return SKY_GroundAsk_Room(ground, op, share);
}

/* Return room for as many satellites as shares have places; behind it as much again, for those that were silent. */
static SKY_Addr_t *AddrsOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const size_t places = (size_t)ground->limits.servers * SKY_PLACES_MAX;

    SKY_ASSERT(op->memory < ground->limits.operations);
    return &ground->held_addrs[(size_t)op->memory * 2u * places];
}

static SKY_Addr_t *SilentOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->check.silent_count <= ground->limits.servers * SKY_PLACES_MAX);
    return AddrsOf(ground, op) + (size_t)ground->limits.servers * SKY_PLACES_MAX;
}

/* Return the number of shares that are asked for: the first ones. */
static uint32_t SharesOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_CHECK);
    SKY_ASSERT(ground->limits.servers >= 1u);
    return op->is_sample ? 1u : ground->limits.servers;
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

static const SKY_HostPlace_t *PlaceOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share, uint32_t round)
{
    SKY_ASSERT(round <= op->block.rounds);
    SKY_ASSERT(share < ground->limits.servers);
    return &op->places[(size_t)round * ground->limits.servers + share];
}

/* Find the satellites of a share's places. @return the number of them */
static uint32_t PlacesOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t *found)
{
    uint32_t count = 0;

    for (uint32_t round = 0; round <= op->block.rounds; ++round)
    {
        const SKY_HostPlace_t *place = PlaceOf(ground, op, share, round);

        if (place->plane != 0u)
        {
            found[count] = (SKY_Addr_t){place->plane, place->slot};
            ++count;
        }
    }
    SKY_ASSERT(count <= SKY_PLACES_MAX);
    SKY_ASSERT(count >= 1u);
    return count;
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* Ask a place of a share. */
static void AskPlace(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number, uint32_t round)
{
    const SKY_GroundWatch_t *watch    = &ground->shell.watch;
    SKY_HostQuestion_t      *question = &op->questions[number];
    uint8_t                 *payload  = PayloadOf(ground, op, number);

    (void)memset(question, 0, sizeof(*question));
    question->place         = *PlaceOf(ground, op, number, round);
    question->apid          = SKY_APID_KVC;
    question->op            = SKY_OP_HAS;
    question->tenant        = op->tenant;
    question->payload_bytes = SKY_HeldShare_Ask(ShareOf(ground, op, number), payload, &question->chunk_id);
    question->payload       = payload;
    question->room_bytes    = SKY_CHUNKSET_MAX_BYTES;
    question->room          = payload + SKY_CHUNKSET_MAX_BYTES;
    question->deadline_ms   = (uint32_t)((op->check.end_us - ground->now_us + SKY_GROUND_US_PER_MS - 1u) / SKY_GROUND_US_PER_MS);
    question->owner         = op;
    (void)memcpy(question->key, op->key, SKY_KEY_BYTES);
    SKY_ASSERT(question->deadline_ms >= 1u);
    SKY_ASSERT(question->place.plane != 0u);
    SKY_ASSERT(question->payload_bytes <= SKY_CHUNKSET_MAX_BYTES);
    SKY_ASSERT(op->asking < SharesOf(ground, op));
    if (watch->Checked != NULL)
    {
        watch->Checked(watch->context, op, number, (SKY_Addr_t){question->place.plane, question->place.slot});
    }
    *PieceOf(ground, op, number) |= ASKED;
    op->asking += SKY_GroundQuestion_Ask(ground, question) ? 1u : 0u;
}

/* Return true if the server of a share is to be asked. */
static bool AsksServer(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t number, const SKY_Addr_t *found,
                       uint32_t several)
{
    SKY_ASSERT(number < op->facts.stripe.chunk_total);
    SKY_ASSERT(several >= 1u);
    return !op->is_hurried ||
           SKY_Presence_Asks(&ground->presence, ground->now_us, op->facts.stripe.chunk_total, number, true, found, several);
}

/* Begin a piece of a share, if there is one: at its places, if the server is to be asked. The first piece decides on that, whatever other
 * operations find meanwhile. */
static bool BeginPiece(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_HeldShare_t *share = ShareOf(ground, op, number);
    uint32_t        *piece = PieceOf(ground, op, number);
    SKY_Addr_t      *found = &AddrsOf(ground, op)[(size_t)number * SKY_PLACES_MAX];

    SKY_ASSERT(*piece == 0u || SKY_HeldShare_Next(share) == SKY_HELD_NOWHERE);
    if ((*piece & ~ASKED) >= SKY_HeldShare_Pieces(&op->facts, ground->limits.servers, number))
    {
        return false;
    }
    const uint32_t several = PlacesOf(ground, op, number, found);

    if (op->holders != NULL && *piece == 0u)
    {
        op->holders[number] = found[0]; /* unless a piece is found to be missing there */
    }
    const bool asks = (*piece & ~ASKED) > 0u ? share->places > 0u : AsksServer(ground, op, number, found, several);

    SKY_HeldShare_Init(share, &op->facts, ground->limits.servers, number, *piece & ~ASKED, asks ? several : 0u,
                       SKY_HostPlace_IsStandIn(&op->places[number]));
    SKY_ASSERT(share->missing.count > 0u);
    SKY_ASSERT(share->asked == 0u);
    ++*piece;
    return true;
}

/* Note what is known of a piece that is done. */
static void EndPiece(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    const SKY_HeldShare_t *share = ShareOf(ground, op, number);
    const uint32_t         first = SKY_ChunkSet_Next(&share->missing, 0);

    SKY_Held_Add(&op->check.told, share);
    if (op->holders != NULL && !SKY_HeldShare_IsHeldFirst(share))
    {
        op->holders[number] = (SKY_Addr_t){0, 0};
    }
    if (op->gone == SKY_HOST_NONE && first < share->missing.count && !share->is_unanswered && !share->is_stand_in)
    {
        op->gone = SKY_ChunkSet_ChunkId(&share->missing, first);
    }
    SKY_ASSERT(SKY_HeldShare_Next(share) == SKY_HELD_NOWHERE);
    SKY_ASSERT(share->asked <= share->places);
    SKY_ASSERT(op->check.told.verdict <= (uint32_t)SKY_HELD_BROKEN);
}

/* Leave out the rest of a share, of which nothing is known. */
static void GiveUp(SKY_GroundOp_t *op, uint32_t number)
{
    SKY_Held_t *told = &op->check.told;

    SKY_ASSERT(op->asking == 0u || op->kind == SKY_GROUND_CHECK);
    told->verdict = told->verdict < (uint32_t)SKY_HELD_UNKNOWN ? (uint32_t)SKY_HELD_UNKNOWN : told->verdict;
    if (op->holders != NULL)
    {
        op->holders[number] = (SKY_Addr_t){0, 0};
    }
    SKY_ASSERT(told->verdict <= (uint32_t)SKY_HELD_BROKEN);
}

/* Ask the next place of a share, of its next piece if this one is done. No place is asked once the time is over. */
static void AskNext(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_HeldShare_t *share    = ShareOf(ground, op, number);
    bool             has_more = true;

    SKY_ASSERT(op->check.step == SKY_GROUND_CHECK_HELD);
    SKY_ASSERT(op->check.end_us > op->check.began_us);
    while (has_more)
    {
        const uint32_t round = SKY_HeldShare_Next(share);

        if (round == SKY_HELD_NOWHERE)
        {
            EndPiece(ground, op, number);
            has_more = BeginPiece(ground, op, number);
            if (has_more && share->places > 0u && ground->now_us >= op->check.end_us)
            {
                GiveUp(op, number); /* of the rest nothing is known, however many pieces that has */
                has_more = false;
            }
        }
        else if (ground->now_us < op->check.end_us)
        {
            SKY_ASSERT(round < share->places);
            AskPlace(ground, op, number, round);
            has_more = false;
        }
        else
        {
            uint32_t chunk_id;

            (void)SKY_HeldShare_Ask(share, PayloadOf(ground, op, number), &chunk_id); /* this place has said nothing */
            SKY_HeldShare_Take(share, op->key, NULL);
        }
    }
}

/* Return how long the places of a share are waited for. */
static uint64_t WaitUs(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t number, uint32_t several)
{
    const SKY_Addr_t *found = &AddrsOf(ground, op)[(size_t)number * SKY_PLACES_MAX];

    SKY_ASSERT(several >= 1u);
    SKY_ASSERT(several <= SKY_PLACES_MAX);
    return op->is_hurried ? SKY_Host_HurryUs(&ground->host, found, several) : SKY_Host_PatienceUs(&ground->host, found, several);
}

/* Ask all servers. @return false if nobody is asked */
static bool AskAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundCheck_t *check   = &op->check;
    uint64_t           wait_us = 0;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(ground->shares.row_count >= 1u);
    check->row_count    = ground->shares.row_count;
    check->silent_count = 0;
    op->gone            = SKY_HOST_NONE;
    (void)memset(&check->told, 0, sizeof(check->told));
    check->told.rows = op->held_rows;
    if (op->held_rows != NULL)
    {
        (void)memset(op->held_rows, 0, SKY_Stripe_Rows(&op->facts.stripe) * sizeof(*op->held_rows));
    }
    (void)memcpy(check->rows, ground->shares.rows, check->row_count * sizeof(check->rows[0]));
    for (uint32_t number = 0; number < SharesOf(ground, op); ++number)
    {
        SKY_HeldShare_t *share = ShareOf(ground, op, number);

        (void)memset(share, 0, sizeof(*share));
        *PieceOf(ground, op, number) = 0;
        if (op->holders != NULL)
        {
            op->holders[number] = (SKY_Addr_t){0, 0};
        }
        if (BeginPiece(ground, op, number) && share->places > 0u)
        {
            const uint64_t one_us = WaitUs(ground, op, number, share->places);

            wait_us          = one_us > wait_us ? one_us : wait_us;
            check->has_asked = true;
        }
    }
    if (!check->has_asked)
    {
        return false;
    }
    check->began_us = ground->now_us;
    check->end_us   = ground->now_us + wait_us;
    SKY_ASSERT(check->end_us > check->began_us);
    for (uint32_t number = 0; number < SharesOf(ground, op); ++number)
    {
        if (ShareOf(ground, op, number)->missing.count > 0u)
        {
            AskNext(ground, op, number);
        }
    }
    return op->asking > 0u;
}

void SKY_GroundCheck_Answered(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *question)
{
    const uint32_t number  = (uint32_t)(question - op->questions);
    const bool     is_done = question->status == SKY_STATUS_DONE;

    SKY_ASSERT(number < ground->limits.servers);
    SKY_ASSERT(op->asking > 0u);
    SKY_ASSERT(op->check.step == SKY_GROUND_CHECK_HELD);
    if (!is_done && op->check.silent_count < ground->limits.servers * SKY_PLACES_MAX)
    {
        SilentOf(ground, op)[op->check.silent_count] = (SKY_Addr_t){question->place.plane, question->place.slot};
        ++op->check.silent_count;
    }
    SKY_HeldShare_Take(ShareOf(ground, op, number), question->key, is_done ? &question->answer : NULL);
    --op->asking;
    ++op->tries;
    AskNext(ground, op, number);
    SKY_ASSERT(op->asking <= ground->limits.servers);
    op->is_due = op->asking == 0u;
}

/* ---- what they say --------------------------------------------------------------------------------------------------- */

/* Return true if other places are asked now. */
static bool HasMoved(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const SKY_Places_t places = SKY_GroundWays_Rule(ground);
    uint32_t           rows[SKY_PLACES_ROWS_MAX];
    const uint32_t     count = SKY_Places_Rows(&places, ground->now_us, op->facts.epoch, rows);
    bool               moved = false;

    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(op->check.row_count >= 1u);
    for (uint32_t i = 0; i < count; ++i)
    {
        bool is_same = false;

        for (uint32_t j = 0; j < op->check.row_count; ++j)
        {
            is_same = is_same || op->check.rows[j] == rows[i];
        }
        moved = moved || !is_same;
    }
    return moved;
}

/* Note who was silent, so that they are left alone for a while. */
static void TellPresence(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_Addr_t *first = ground->inquiry.addrs;
    uint32_t    count = 0;

    SKY_ASSERT(op->is_hurried);
    for (uint32_t number = 0; number < SharesOf(ground, op); ++number)
    {
        if ((*PieceOf(ground, op, number) & ASKED) != 0u)
        {
            const SKY_HostPlace_t *place = PlaceOf(ground, op, number, 0);

            first[count] = (SKY_Addr_t){place->plane, place->slot};
            ++count;
        }
    }
    SKY_ASSERT(count <= ground->limits.servers);
    SKY_ASSERT(op->check.end_us > op->check.began_us);
    SKY_ASSERT(op->check.silent_count <= op->tries);
    if (count > 0u)
    {
        SKY_Presence_Told(&ground->presence, ground->now_us, op->check.end_us - op->check.began_us, first, count,
                          SilentOf(ground, op), op->check.silent_count);
    }
}

/* Judge the block by what servers said. */
static void Judge(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Held_t *told = &op->check.told;

    SKY_ASSERT(told->verdict <= (uint32_t)SKY_HELD_BROKEN);
    SKY_ASSERT(op->asking == 0u);
    if (op->is_hurried)
    {
        TellPresence(ground, op);
    }
    if (told->verdict == (uint32_t)SKY_HELD_BROKEN)
    {
        /* What satellites know otherwise is asked next. */
        const SKY_Denied_t denied = {.has_moved =
                                         op->check.is_moving || op->changes != ground->sky.changes || HasMoved(ground, op),
                                     .at_stand_in  = !told->is_gone,
                                     .is_unsettled = told->is_unsettled,
                                     .is_certain   = op->check.is_certain,
                                     .is_other     = told->is_other,
                                     .lazy_purge   = ground->sky.lazy_purge};

        op->verdict = (uint32_t)SKY_Verdict_Of(&denied);
        op->outcome = told->is_other && op->facts.version != 0u
                          ? SKY_STATUS_UNANSWERED /* a value that was replaced is not gone */
                          : SKY_STATUS_MISS;
        return;
    }
    op->gone    = SKY_HOST_NONE;
    op->outcome = told->verdict == (uint32_t)SKY_HELD_WHOLE ? SKY_STATUS_DONE : SKY_STATUS_UNANSWERED;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

void SKY_GroundCheck_Begin(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_CHECK);
    SKY_ASSERT(op->deadline_ms >= 1u);
    op->check.step = SKY_GROUND_CHECK_LATE;
}

/* Return true if servers are to be asked now: in a hurry only while nothing is late. @param may  without hurry */
static bool MayAsk(const SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundMay_t may)
{
    const SKY_Late_t   late  = SKY_GroundWays_Late(ground);
    SKY_GroundCheck_t *check = &op->check;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(may != SKY_GROUND_MAY_LATER);
    check->is_certain        = late.is_certain;
    check->is_moving         = !late.is_known || !late.is_over;
    op->attempts.is_searched = late.is_known && !op->is_hurried;
    return op->is_hurried ? !check->is_moving && ground->reach.pause_us == 0u : may == SKY_GROUND_MAY_NOW;
}

/* In a hurry: wait for the search for late satellites no longer than for answers of servers. It goes on, for others. @return true if the operation
 * waits */
static bool WaitsLate(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t row = SKY_GroundWays_Row(ground);

    SKY_ASSERT(op->is_hurried);
    SKY_ASSERT(op->wakes_us == 0u);
    SKY_GroundWays_Servers(ground, row);
    const uint64_t hurry_us = SKY_Host_HurryUs(&ground->host, ground->placed, ground->limits.servers);
    const bool     goes_on  = ground->inquiry.kind == SKY_GROUND_WAIT_LATE;
    const uint64_t end_us   = (goes_on ? ground->inquiry.began_us : ground->now_us) + hurry_us;

    if (end_us <= ground->now_us || !SKY_GroundInquiry_WaitsLate(ground, op))
    {
        return false;
    }
    op->wakes_us = end_us;
    SKY_ASSERT(op->wakes_us > ground->now_us);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_LATE);
    return true;
}

/* Ask the servers. @return true if the operation waits */
static bool Ask(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_GroundMay_t may = op->is_hurried ? SKY_GROUND_MAY_NOW : SKY_GroundInquiry_May(ground, op);

    SKY_ASSERT(op->check.step == SKY_GROUND_CHECK_LATE);
    SKY_ASSERT(op->asking == 0u);
    op->wakes_us = 0; /* it may have waited for a shorter time */
    if (may == SKY_GROUND_MAY_LATER || (op->is_hurried ? WaitsLate(ground, op) : SKY_GroundInquiry_WaitsLate(ground, op)))
    {
        return true;
    }
    op->check.has_asked = false;
    op->check.step      = SKY_GROUND_CHECK_HELD;
    return MayAsk(ground, op, may) && SKY_GroundWays_Find(ground, op) && AskAll(ground, op);
}

/* Without hurry, and once: look for lost satellites, to ask around them, if a silent one leaves open whether the block can be had, or who holds what
 * if that is asked. @return true if the operation waits */
static bool Looks(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundCheck_t *check   = &op->check;
    const uint32_t     verdict = check->told.verdict;
    const bool depends = verdict == (uint32_t)SKY_HELD_UNKNOWN || (verdict == (uint32_t)SKY_HELD_WHOLE && op->holders != NULL);

    SKY_ASSERT(check->has_asked);
    SKY_ASSERT(op->asking == 0u);
    if (op->is_hurried || check->has_looked || check->silent_count == 0u || !depends)
    {
        return false;
    }
    check->has_looked  = true;
    check->step        = SKY_GROUND_CHECK_LATE;
    op->failed_on      = *SilentOf(ground, op);
    op->has_asked_lost = false;
    op->has_searched   = false;
    SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
    return true;
}

/* Keep the rest of the block if it is prefetched, if this host asked at wrong places, or if a stand-in may hold some of it. @return true if the
 * operation waits */
static bool Confirm(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundCheck_t *check    = &op->check;
    bool               is_aside = false;

    SKY_ASSERT(op->outcome == SKY_STATUS_MISS);
    SKY_ASSERT(op->verdict == (uint32_t)SKY_VERDICT_PURGE);
    if (check->step == SKY_GROUND_CHECK_AHEAD)
    {
        if (SKY_GroundConfirm_AsksAhead(ground, op))
        {
            return true;
        }
        check->step = SKY_GROUND_CHECK_BLIND;
    }
    if (check->step == SKY_GROUND_CHECK_BLIND && !op->is_ahead)
    {
        if (SKY_GroundConfirm_AsksBlind(ground, op))
        {
            return true;
        }
        check->step = SKY_GROUND_CHECK_ASIDE;
    }
    if (check->step == SKY_GROUND_CHECK_ASIDE && !op->is_blind && SKY_GroundConfirm_AsksAside(ground, op, &is_aside))
    {
        return true;
    }
    op->verdict = (uint32_t)(op->is_ahead || op->is_blind || is_aside ? SKY_VERDICT_FORGET : SKY_VERDICT_PURGE);
    return false;
}

bool SKY_GroundCheck_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_CHECK);
    SKY_ASSERT(op->asking == 0u);
    if (op->check.step == SKY_GROUND_CHECK_LATE)
    {
        if (Ask(ground, op))
        {
            return true;
        }
        if (!op->check.has_asked)
        {
            op->status = SKY_STATUS_UNANSWERED; /* nobody was asked */
            return false;
        }
    }
    if (op->check.step == SKY_GROUND_CHECK_HELD)
    {
        if (Looks(ground, op))
        {
            return true;
        }
        Judge(ground, op);
        if (op->verdict != (uint32_t)SKY_VERDICT_PURGE)
        {
            op->status = op->outcome;
            return false;
        }
        op->check.step = SKY_GROUND_CHECK_AHEAD;
    }
    if (Confirm(ground, op))
    {
        return true;
    }
    op->status = op->outcome;
    return false;
}
