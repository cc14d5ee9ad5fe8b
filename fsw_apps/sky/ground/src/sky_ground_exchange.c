/**
 * @file
 * EXCHANGE: questions of the shell to satellites. Each has an answer, or none, of its own; the operation waits for the last.
 *
 *     begun -- a satellite is none of the torus --> REFUSED
 *       |
 *     asked -- all have an end ------------------> DONE
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Return true if all satellites are of the torus. The shell may have them from a person. */
static bool AreOfTorus(const SKY_Ground_t *ground, const SKY_GroundOp_t *op)
{
    bool are = true;

    SKY_ASSERT(op->requests != NULL || op->request_count == 0u);
    for (uint32_t i = 0; are && i < op->request_count; ++i)
    {
        const SKY_HostPlace_t *place = &op->requests[i].place;

        are = SKY_Torus_Contains(&ground->limits.torus, (SKY_Addr_t){place->plane, place->slot}) &&
              SKY_Torus_Contains(&ground->limits.torus, (SKY_Addr_t){place->entry_plane, place->entry_slot});
    }
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

bool SKY_GroundExchange_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_EXCHANGE);
    SKY_ASSERT(op->asking == 0u);
    if (!op->has_asked && !AreOfTorus(ground, op))
    {
        op->status = SKY_STATUS_REFUSED;
        return false;
    }
    if (!op->has_asked)
    {
        const uint32_t deadline_ms = op->deadline_ms != 0u ? op->deadline_ms : PatienceMs(ground, op);

        op->has_asked = true;
        for (uint32_t i = 0; i < op->request_count; ++i)
        {
            SKY_HostQuestion_t *request = &op->requests[i];

            request->deadline_ms    = deadline_ms;
            request->owner          = op;
            request->place.endpoint = ground->shell.EndpointOf(
                ground->shell.context, (SKY_Addr_t){request->place.entry_plane, request->place.entry_slot});
            op->asking += SKY_GroundQuestion_Ask(ground, request) ? 1u : 0u;
        }
        if (op->asking > 0u)
        {
            return true;
        }
    }
    op->status = SKY_STATUS_DONE;
    return false;
}
