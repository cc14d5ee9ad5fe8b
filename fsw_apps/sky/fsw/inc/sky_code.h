/**
 * @file
 * The erasure code: systematic Reed-Solomon over GF(256), modulo 0x11D. Any k of the k + m chunks of a row give all of them.
 *
 * The chunks of a row have the indices 0 .. k + m - 1, data first. Parity chunk i is the sum over all data chunks j of chunk j times
 * 1 / (i + j), where + is XOR: the Cauchy matrix of ISA-L's gf_gen_cauchy1_matrix. Every square part of a Cauchy matrix has an
 * inverse. The parity of a row of one data chunk are plain copies: their coefficients are 1, and differ from ISA-L's.
 *
 * Sums go byte by byte: byte b of a parity chunk depends on byte b of each data chunk only. A chunk that is shorter than the
 * longest of its row counts as if zeros followed.
 */
#ifndef SKY_CODE_H
#define SKY_CODE_H

#include <stdbool.h>
#include <stdint.h>

#define SKY_CODE_CHUNKS_MAX 255u /**< chunks of a row: data and parity */

/** Lengths of a row. The last row of a block has fewer data chunks than the others and is a row of its own for the code. */
typedef struct
{
    uint8_t k; /**< data chunks, at least 1 */
    uint8_t m; /**< parity chunks; k + m <= SKY_CODE_CHUNKS_MAX */
} SKY_CodeRow_t;

/** Bytes of a chunk in the caller's memory. */
typedef struct
{
    const uint8_t *bytes; /**< may be NULL if len is 0 */
    uint32_t       len;
} SKY_CodeChunk_t;

/** Return true if there is a code for such a row. */
bool SKY_CodeRow_Check(SKY_CodeRow_t row);

/** Return the weight of chunk @p data (0 .. k - 1) in chunk @p parity (k .. k + m - 1). */
uint8_t SKY_Code_Coefficient(SKY_CodeRow_t row, uint8_t parity, uint8_t data);

/**
 * Get the weights with which k chunks of a row sum up to chunk @p wanted, be it data or parity.
 *
 * @param have    indices of k different chunks of the row
 * @param weights receives k weights: that of chunk have[j] at place j
 * @return false: there is no such row, an index is not in it, or have names a chunk twice
 */
bool SKY_Code_Weights(SKY_CodeRow_t row, uint8_t wanted, const uint8_t have[], uint8_t weights[]);

/** Add @p len bytes of a chunk times its weight to a sum. Several calls, one a chunk, make a lost chunk of a sum of zeros. */
void SKY_Code_Add(uint8_t *sum, const uint8_t *chunk, uint32_t len, uint8_t weight);

/**
 * Set each of many sums to the sum of all sources times their weights. The sources are read once.
 *
 * @param sums    sums of @p len bytes each, whose memory overlaps neither another sum's nor a source's
 * @param sources chunks of at most @p len bytes; bytes after that do not count
 * @param weights weight of source j in sum s, at place s * source_count + j
 */
void SKY_Code_Sums(uint8_t *const sums[], uint8_t sum_count, uint32_t len, const SKY_CodeChunk_t sources[], uint8_t source_count,
                   const uint8_t weights[]);

/** Return how many implementations this processor can run. Number 0 is the portable one; each is faster than the one before. */
uint32_t SKY_Code_Implementations(void);

/** Return the name of the implementation in use: the best one unless SKY_Code_Use was called. All give the same bytes, so this
 *  word of state changes nothing. */
const char *SKY_Code_Implementation(void);

/** Use implementation @p which from now on, everywhere in the program (tests and comparisons). UINT32_MAX: the best one again. */
void SKY_Code_Use(uint32_t which);

#endif
