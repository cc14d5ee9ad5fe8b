/**
 * @file
 * What a fuzz target offers, and how it says that something is wrong.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** libFuzzer's entry point. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A promise of the code under test. */
#define ENSURE(condition)                                                                 \
    do                                                                                    \
    {                                                                                     \
        if (!(condition))                                                                 \
        {                                                                                 \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

#endif
