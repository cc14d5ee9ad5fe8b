/**
 * @file
 * Questions of one operation to some satellites, and the wait for all their answers.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

uint8_t *SKY_GroundAsk_Room(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->memory < ground->limits.operations);
    return &ground->held_bytes[((size_t)op->memory * ground->limits.servers + share) * 2u * SKY_CHUNKSET_MAX_BYTES];
}

void SKY_GroundAsk_Add(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_Addr_t satellite)
{
    const SKY_HostPlace_t place = SKY_GroundWays_Place(ground, satellite);
    uint32_t              at    = 0;

    if (place.plane == 0u)
    {
        return;
    }
    SKY_ASSERT(op->asking == 0u);
    while (at < op->asks && (op->questions[at].place.plane != place.plane || op->questions[at].place.slot != place.slot))
    {
        ++at;
    }
    if (at == op->asks)
    {
        SKY_ASSERT(at < (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots); /* no satellite is there twice */
        (void)memset(&op->questions[at], 0, sizeof(op->questions[at]));
        op->questions[at].place = place;
        ++op->asks;
    }
    SKY_ASSERT(at < op->asks);
}

void SKY_GroundAsk_AddLate(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(ground->late_count <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
    SKY_ASSERT(ground->spare_count <= ground->late_count);
    for (uint32_t i = 0; i < ground->late_count; ++i)
    {
        if (!SKY_Ground_IsLost(ground, ground->late[i]))
        {
            SKY_GroundAsk_Add(ground, op, ground->late[i]);
        }
    }
}

uint64_t SKY_GroundAsk_WaitUs(SKY_Ground_t *ground, const SKY_GroundOp_t *op, bool is_hurried)
{
    SKY_Addr_t *addrs = ground->inquiry.addrs; /* there is room for all satellites */

    SKY_ASSERT(op->asks <= (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        addrs[i].plane = op->questions[i].place.plane;
        addrs[i].slot  = op->questions[i].place.slot;
    }
    const uint64_t wait_us =
        is_hurried ? SKY_Host_HurryUs(&ground->host, addrs, op->asks) : SKY_Host_PatienceUs(&ground->host, addrs, op->asks);

    SKY_ASSERT(wait_us > 0u || op->asks == 0u);
    return wait_us;
}

void SKY_GroundAsk_Write(SKY_GroundOp_t *op, SKY_HostQuestion_t *question, const SKY_HostPlace_t *place, uint8_t what)
{
    SKY_ASSERT(place->plane != 0u);
    SKY_ASSERT(place != &question->place);
    (void)memset(question, 0, sizeof(*question));
    question->place  = *place;
    question->apid   = SKY_APID_KVC;
    question->op     = what;
    question->tenant = op->tenant;
    question->owner  = op;
    (void)memcpy(question->key, op->key, SKY_KEY_BYTES);
}

bool SKY_GroundAsk_Send(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint64_t wait_us)
{
    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(op->asks <= ground->asks_most);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        op->questions[i].deadline_ms = (uint32_t)(wait_us / SKY_GROUND_US_PER_MS + 1u);
        SKY_ASSERT(op->questions[i].deadline_ms >= 1u);
        op->asking += SKY_GroundQuestion_Ask(ground, &op->questions[i]) ? 1u : 0u;
    }
    op->tries += op->asks;
    return op->asking > 0u;
}

bool SKY_GroundAsk_All(SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_HostQuestion_t *what, uint64_t wait_us)
{
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(what->payload != NULL || what->payload_bytes == 0u);
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostPlace_t place    = op->questions[i].place;
        SKY_HostQuestion_t   *question = &op->questions[i];

        *question        = *what;
        question->place  = place;
        question->apid   = SKY_APID_KVC;
        question->tenant = op->tenant;
        question->owner  = op;
        (void)memcpy(question->key, op->key, SKY_KEY_BYTES);
    }
    return SKY_GroundAsk_Send(ground, op, wait_us);
}
