/**
 * @file
 * A number in which every bit of another one counts, for jitter, simulated losses and digests. It is not for secrets.
 */
#ifndef SKY_MIX_H
#define SKY_MIX_H

#include <stdint.h>

/** Increment of the state of SplitMix64 from one number to the next. */
#define SKY_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)

/** The number that SplitMix64 makes of a state (Steele, Lea, Flood 2014). */
static inline uint64_t SKY_Mix64(uint64_t state)
{
    state += SKY_MIX_STEP;
    state = (state ^ state >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ state >> 27) * UINT64_C(0x94D049BB133111EB);
    return state ^ state >> 31;
}

#endif
