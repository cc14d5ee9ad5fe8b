/**
 * @file
 * A question of the ground: of an operation, or of an inquiry.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

bool SKY_GroundQuestion_Ask(SKY_Ground_t *ground, SKY_HostQuestion_t *question)
{
    const bool has_begun = SKY_Host_Ask(&ground->host, ground->now_us, question) == SKY_HOST_BEGUN;

    SKY_ASSERT(question->owner != NULL);
    SKY_ASSERT(question->place.plane != 0u);
    if (!has_begun)
    {
        question->status = SKY_STATUS_EXPIRED;
    }
    return has_begun;
}
