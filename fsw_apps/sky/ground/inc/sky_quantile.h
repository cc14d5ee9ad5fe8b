/**
 * @file
 * Quantile of times, from counts in buckets. Part of the host: missions do not compile it.
 *
 * Buckets are a quarter of an octave wide, so a quantile is at most 25 % too large. Old times count less and less.
 */
#ifndef SKY_QUANTILE_H
#define SKY_QUANTILE_H

#include <stdint.h>

#define SKY_QUANTILE_BUCKETS 128u  /**< 32 octaves */
#define SKY_QUANTILE_FEWEST  16u   /**< fewer times have no quantile */
#define SKY_QUANTILE_MOST    1024u /**< with so many all counts are halved */

/** Counts of times; all 0: there are none. */
typedef struct
{
    uint16_t counts[SKY_QUANTILE_BUCKETS];
    uint32_t total;
} SKY_Quantile_t;

/** Count a time. */
void SKY_Quantile_Add(SKY_Quantile_t *quantile, uint32_t time_us);
/** Return a time that at least @p percent (1 to 100) of those counted are not above; 0 if there are too few. */
uint32_t SKY_Quantile_Of(const SKY_Quantile_t *quantile, uint32_t percent);

#endif
