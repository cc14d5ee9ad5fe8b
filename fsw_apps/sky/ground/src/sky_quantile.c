/**
 * @file
 * Quantile of times: see sky_quantile.h.
 */
#include "sky_quantile.h"

#include "sky_assert.h"

#define PARTS        4u /* buckets of an octave */
#define PERCENT_MOST 100u

static uint32_t OctaveOf(uint32_t time_us)
{
    uint32_t octave = 0;

    for (uint32_t rest = time_us >> 1; rest > 0u; rest >>= 1)
    {
        ++octave;
    }
    SKY_ASSERT(octave < SKY_QUANTILE_BUCKETS / PARTS);
    return octave;
}

/* Return the bucket of a time: its octave, and the two bits behind its highest. */
static uint32_t BucketOf(uint32_t time_us)
{
    const uint32_t octave = OctaveOf(time_us);
    const uint64_t bits   = ((uint64_t)time_us << 2) >> octave;

    SKY_ASSERT(octave < SKY_QUANTILE_BUCKETS / PARTS);
    SKY_ASSERT(bits / PARTS < 2u);
    return octave * PARTS + (uint32_t)(bits & (PARTS - 1u));
}

/* Return the largest time of a bucket. */
static uint32_t MostOf(uint32_t bucket)
{
    const uint64_t next = ((uint64_t)(PARTS + bucket % PARTS + 1u) << (bucket / PARTS)) / PARTS;
    SKY_ASSERT(bucket < SKY_QUANTILE_BUCKETS);

    SKY_ASSERT(next >= 1u);
    return next > UINT32_MAX ? UINT32_MAX : (uint32_t)next;
}

void SKY_Quantile_Add(SKY_Quantile_t *quantile, uint32_t time_us)
{
    if (quantile->total >= SKY_QUANTILE_MOST)
    {
        quantile->total = 0;
        for (uint32_t i = 0; i < SKY_QUANTILE_BUCKETS; ++i)
        {
            quantile->counts[i] = (uint16_t)(quantile->counts[i] / 2u);
            quantile->total += quantile->counts[i];
        }
    }
    SKY_ASSERT(quantile->total < SKY_QUANTILE_MOST);
    ++quantile->counts[BucketOf(time_us)];
    ++quantile->total;
    SKY_ASSERT(quantile->total <= SKY_QUANTILE_MOST);
}

uint32_t SKY_Quantile_Of(const SKY_Quantile_t *quantile, uint32_t percent)
{
    uint32_t bucket = 0;
    uint32_t seen   = quantile->counts[0];
    SKY_ASSERT(percent >= 1u);
    SKY_ASSERT(percent <= PERCENT_MOST);

    if (quantile->total < SKY_QUANTILE_FEWEST)
    {
        return 0;
    }
    while (seen * PERCENT_MOST < quantile->total * percent)
    {
        ++bucket;
        SKY_ASSERT(bucket < SKY_QUANTILE_BUCKETS); /* all buckets together hold the total */
        seen += quantile->counts[bucket];
    }
    return MostOf(bucket);
}
