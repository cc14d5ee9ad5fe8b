/**
 * @file
 * Rates: how much is taken from a source in a time, and from all sources together.
 *
 * A bucket is one time: that at which all that was taken would be paid for, if it had come evenly. What would be paid for later than a burst
 * from now is not taken, and costs nothing. Sources have no entry of their own, which somebody could fill with invented ones: a bucket is found
 * by a digest under a secret of this boot. Two sources may share one, and nobody can choose with whom.
 *
 * Sans I/O: time comes in as an argument.
 */
#ifndef SKY_RATE_H
#define SKY_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define SKY_RATE_BUCKETS      256u /**< for sources; a power of two */
#define SKY_RATE_SECRET_WORDS 2u

typedef struct
{
    uint32_t per_s; /**< from 1 */
    uint32_t burst; /**< the most at once, from 1 */
} SKY_RateLimit_t;

typedef struct
{
    uint64_t paid_ns; /**< time at which what was taken is paid for */
} SKY_Rate_t;

typedef struct
{
    uint64_t   secret[SKY_RATE_SECRET_WORDS];
    SKY_Rate_t buckets[SKY_RATE_BUCKETS];
} SKY_Rates_t;

/** Take an amount. @return false, and nothing changed, if that would be too much */
bool SKY_Rate_Take(SKY_Rate_t *rate, uint64_t now_us, SKY_RateLimit_t limit, uint32_t amount);
/** Begin with full bursts. @param secret  random, of this boot */
void SKY_Rates_Init(SKY_Rates_t *rates, const uint64_t secret[SKY_RATE_SECRET_WORDS]);
/** Return the bucket of a source, below SKY_RATE_BUCKETS. */
uint32_t SKY_Rates_BucketOf(const SKY_Rates_t *rates, uint64_t source);
/** Take an amount from a source. @return false, and nothing changed, if that would be too much */
bool SKY_Rates_Take(SKY_Rates_t *rates, uint64_t now_us, SKY_RateLimit_t limit, uint64_t source, uint32_t amount);

#endif
