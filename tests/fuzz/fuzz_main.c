/**
 * @file
 * Runs a fuzz target without libFuzzer: over the files it is given (a crash to look at), or over inputs from a seeded generator
 * (the smoke test of builds without clang).
 */
#include "fuzz.h"

#ifndef FUZZ_RUNS
#define FUZZ_RUNS 20000u
#endif
#define BYTES_MAX 2048u

static uint8_t input[1u << 17];

static uint64_t Next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static int Replay(const char *path)
{
    FILE  *file = fopen(path, "rb");
    size_t size;

    if (file == NULL)
    {
        perror(path);
        return 1;
    }
    size = fread(input, 1, sizeof(input), file);
    (void)fclose(file);
    return LLVMFuzzerTestOneInput(input, size);
}

int main(int argc, char **argv)
{
    uint64_t random = 1;
    int      failed = 0;

    for (int i = 1; i < argc; ++i)
    {
        failed |= Replay(argv[i]);
    }
    for (uint32_t run = 0; argc == 1 && run < FUZZ_RUNS; ++run)
    {
        const size_t size = (size_t)(Next(&random) % (run % 2u == 0u ? 160u : BYTES_MAX));

        for (size_t i = 0; i < size; ++i)
        {
            const uint64_t value = Next(&random); /* mostly zeros: a field that is all random is nearly always out of range */

            input[i] = (uint8_t)((value & 0x700u) != 0u ? 0u : value & 0xFFu);
        }
        if (size > 0u)
        {
            input[0] = (uint8_t)(Next(&random) & 0xFFu);
        }
        failed |= LLVMFuzzerTestOneInput(input, size);
    }
    return failed;
}
