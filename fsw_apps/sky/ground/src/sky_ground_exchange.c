/**
 * @file
 * EXCHANGE: questions of the shell to satellites. Each has an answer, or none, of its own; the operation waits for the last.
 *
 *     waits for its turn -- until its deadline --> DONE, and nobody was asked
 *       |
 *     begun -- a satellite is none of the torus --> REFUSED
 *       |
 *     asked -- all have an end ------------------> DONE
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Return true if the way to a satellite is the ground's to find. */
static bool IsWayOpen(const SKY_HostPlace_t *place)
{
    return place->entry_plane == 0u;
}

/* Return true if all satellites are of the torus, and ways are found where there is a sky. The shell may have them from a person. */
static bool AreSound(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    bool are = true;

    SKY_ASSERT(op->requests != NULL || op->request_count == 0u);
    for (uint32_t i = 0; are && i < op->request_count; ++i)
    {
        const SKY_HostPlace_t *place = &op->requests[i].place;
        const SKY_Addr_t       entry = {place->entry_plane, place->entry_slot};

        are = SKY_Torus_Contains(&ground->limits.torus, (SKY_Addr_t){place->plane, place->slot}) &&
              (IsWayOpen(place) ? ground->sky.schedule != NULL : SKY_Torus_Contains(&ground->limits.torus, entry));
    }
    SKY_ASSERT(are || op->request_count > 0u);
    return are;
}

/* Return how long the answers of all satellites may take. */
static uint32_t PatienceMs(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    uint64_t longest_us = 0;

    SKY_ASSERT(op->deadline_ms == 0u);
    for (uint32_t i = 0; i < op->request_count; ++i)
    {
        const SKY_Addr_t satellite = {op->requests[i].place.plane, op->requests[i].place.slot};
        const uint64_t   one_us    = SKY_Host_PatienceUs(&ground->host, &satellite, 1);

        longest_us = one_us > longest_us ? one_us : longest_us;
    }
    SKY_ASSERT(longest_us / SKY_GROUND_US_PER_MS < UINT32_MAX);
    return (uint32_t)(longest_us / SKY_GROUND_US_PER_MS + 1u);
}

void SKY_GroundExchange_Begin(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_EXCHANGE);
    SKY_ASSERT(op->asking == 0u);
    op->has_asked = false;
}

/* Return how long answers may take: what the wait for its turn has left of the deadline. */
static uint32_t LeftMs(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    const uint64_t waited_us = ground->now_us - op->submitted_us;
    const uint64_t all_us    = SKY_GROUND_US_PER_MS * op->deadline_ms;

    SKY_ASSERT(op->submitted_us <= ground->now_us);
    if (op->deadline_ms == 0u)
    {
        return PatienceMs(ground, op);
    }
    const uint64_t left_us = all_us > waited_us ? all_us - waited_us : 1u;

    SKY_ASSERT(left_us <= all_us);
    return (uint32_t)((left_us - 1u) / SKY_GROUND_US_PER_MS + 1u);
}

void SKY_GroundExchange_Expire(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_EXCHANGE);
    SKY_ASSERT(!op->is_queued);
    for (uint32_t i = 0; i < op->request_count; ++i)
    {
        op->requests[i].status     = SKY_STATUS_EXPIRED;
        op->requests[i].request_id = 0;
    }
    op->status = SKY_STATUS_DONE;
}

/* Ask a question. @return false if it has ended already */
static bool AskOne(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *request, uint32_t deadline_ms)
{
    const SKY_Addr_t satellite = {request->place.plane, request->place.slot};
    SKY_Addr_t       entry     = {request->place.entry_plane, request->place.entry_slot};

    SKY_ASSERT(deadline_ms >= 1u);
    if (IsWayOpen(&request->place))
    {
        const SKY_HostPlace_t place = SKY_GroundWays_Place(ground, satellite);

        entry = (SKY_Addr_t){place.entry_plane, place.entry_slot};
    }
    if (entry.plane == 0u)
    {
        request->status = SKY_STATUS_NO_SATELLITE;
        return false;
    }
    request->deadline_ms       = deadline_ms;
    request->owner             = op;
    request->place.entry_plane = entry.plane;
    request->place.entry_slot  = entry.slot;
    request->place.endpoint    = ground->shell.EndpointOf(ground->shell.context, entry);
    SKY_ASSERT(request->place.plane == satellite.plane);
    return SKY_GroundQuestion_Ask(ground, request);
}

/* Take in who has answered. One on the way says for another why it cannot be reached, and one that refuses this host's keys is of no use. */
static void Hear(SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    for (uint32_t i = 0; i < op->request_count; ++i)
    {
        const SKY_HostQuestion_t *request   = &op->requests[i];
        const SKY_Addr_t          satellite = {request->place.plane, request->place.slot};

        SKY_ASSERT(request->status != SKY_STATUS_RUNNING);
        if (request->status == SKY_STATUS_DONE && SKY_Addr_Equal(request->answer.src, satellite) &&
            request->answer.status != SKY_STATUS_UNAUTHENTICATED)
        {
            SKY_Reach_Heard(&ground->reach, satellite);
        }
    }
    SKY_ASSERT(op->asking == 0u);
}

bool SKY_GroundExchange_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_EXCHANGE);
    SKY_ASSERT(op->asking == 0u);
    if (!op->has_asked && !AreSound(ground, op))
    {
        op->status = SKY_STATUS_REFUSED;
        return false;
    }
    if (!op->has_asked)
    {
        const uint32_t deadline_ms = LeftMs(ground, op);

        op->has_asked = true;
        for (uint32_t i = 0; i < op->request_count; ++i)
        {
            op->asking += AskOne(ground, op, &op->requests[i], deadline_ms) ? 1u : 0u;
        }
        if (op->asking > 0u)
        {
            return true;
        }
    }
    Hear(ground, op);
    op->status = SKY_STATUS_DONE;
    return false;
}
