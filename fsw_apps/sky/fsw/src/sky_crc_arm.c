/**
 * @file
 * CRCs with the instructions of ARMv8: polynomial multiplication (PMULL), and CRC32C. The functions carry their target
 * themselves, so the object file runs on any aarch64; sky_crc.c calls them only where the processor has them.
 */
#include "sky_crc_accel.h"

#if defined(__GNUC__) && defined(__aarch64__) && defined(__AARCH64EL__)

#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/* Clang offers the CRC32 functions only to files that are compiled for them as a whole, hence the builtin. */
#if defined(__clang__)
#define SKY_FOLD_TARGET     __attribute__((target("crc,crypto")))
#define CRC32C64(crc, word) __builtin_arm_crc32cd((crc), (word))
#else
#define SKY_FOLD_TARGET     __attribute__((target("+crc+crypto")))
#define CRC32C64(crc, word) __builtin_aarch64_crc32cx((crc), (word))
#endif

#include <arm_neon.h>

typedef uint64x2_t SKY_FoldVec_t;

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Load(const uint8_t *data)
{
    return vreinterpretq_u64_u8(vld1q_u8(data));
}

SKY_FOLD_TARGET static inline void Fold_Store(uint8_t *out, SKY_FoldVec_t v)
{
    vst1q_u8(out, vreinterpretq_u8_u64(v));
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Make(uint64_t low, uint64_t high)
{
    return vcombine_u64(vcreate_u64(low), vcreate_u64(high));
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Xor(SKY_FoldVec_t a, SKY_FoldVec_t b)
{
    return veorq_u64(a, b);
}

SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_SwapBytes(SKY_FoldVec_t v)
{
    const uint64x2_t halves = vreinterpretq_u64_u8(vrev64q_u8(vreinterpretq_u8_u64(v)));

    return vextq_u64(halves, halves, 1);
}

/* low half * low half XOR high half * high half */
SKY_FOLD_TARGET static inline SKY_FoldVec_t Fold_Multiply(SKY_FoldVec_t v, SKY_FoldVec_t k)
{
    const poly64x2_t a = vreinterpretq_p64_u64(v);
    const poly64x2_t b = vreinterpretq_p64_u64(k);

    return veorq_u64(vreinterpretq_u64_p128(vmull_p64(vgetq_lane_p64(a, 0), vgetq_lane_p64(b, 0))),
                     vreinterpretq_u64_p128(vmull_high_p64(a, b)));
}

SKY_FOLD_TARGET static inline uint32_t Fold_Crc32c64(uint32_t crc, uint64_t word)
{
    return CRC32C64(crc, word);
}

#include "sky_crc_fold.h"

int SKY_CrcAccel_Available(void)
{
#if defined(__linux__)
    const unsigned long needed = HWCAP_PMULL | HWCAP_CRC32;

    return (getauxval(AT_HWCAP) & needed) == needed;
#elif defined(__ARM_FEATURE_CRC32) && defined(__ARM_FEATURE_AES)
    return 1; /* the compiler uses the instructions in all code already */
#else
    return 0;
#endif
}

const char *SKY_CrcAccel_Name(void)
{
    return "pmull+crc32";
}

#endif
