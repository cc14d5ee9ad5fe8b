/**
 * @file
 * Rates: see sky_rate.h.
 */
#include "sky_rate.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_index.h"

#define NS_PER_US UINT64_C(1000)
#define NS_PER_S  UINT64_C(1000000000)

bool SKY_Rate_Take(SKY_Rate_t *rate, uint64_t now_us, SKY_RateLimit_t limit, uint32_t amount)
{
    const uint64_t now_ns   = now_us * NS_PER_US;
    const uint64_t cost_ns  = amount * NS_PER_S / limit.per_s;
    const uint64_t burst_ns = limit.burst * NS_PER_S / limit.per_s;
    const uint64_t from_ns  = rate->paid_ns > now_ns ? rate->paid_ns : now_ns;
    SKY_ASSERT(limit.per_s > 0u);
    SKY_ASSERT(now_us <= UINT64_MAX / NS_PER_US);

    if (from_ns + cost_ns - now_ns > burst_ns)
    {
        return false;
    }
    rate->paid_ns = from_ns + cost_ns;
    SKY_ASSERT(rate->paid_ns >= now_ns);
    return true;
}

void SKY_Rates_Init(SKY_Rates_t *rates, const uint64_t secret[SKY_RATE_SECRET_WORDS])
{
    SKY_ASSERT((SKY_RATE_BUCKETS & (SKY_RATE_BUCKETS - 1u)) == 0u);
    (void)memset(rates, 0, sizeof(*rates));
    (void)memcpy(rates->secret, secret, sizeof(rates->secret));
    SKY_ASSERT(rates->buckets[0].paid_ns == 0u);
}

uint32_t SKY_Rates_BucketOf(const SKY_Rates_t *rates, uint64_t source)
{
    const uint32_t bucket = SKY_Hash(rates->secret, &source, 1) & (SKY_RATE_BUCKETS - 1u);

    SKY_ASSERT(bucket < SKY_RATE_BUCKETS);
    return bucket;
}

bool SKY_Rates_Take(SKY_Rates_t *rates, uint64_t now_us, SKY_RateLimit_t limit, uint64_t source, uint32_t amount)
{
    SKY_ASSERT(limit.per_s > 0u);
    SKY_ASSERT(limit.burst > 0u);
    return SKY_Rate_Take(&rates->buckets[SKY_Rates_BucketOf(rates, source)], now_us, limit, amount);
}
