/**
 * @file
 * Replay windows: see sky_replay.h. The bit of a number is at its place modulo the window, so the window moves by clearing the bits of
 * the numbers that come in.
 */
#include "sky_replay.h"

#include <string.h>

#include "sky_assert.h"

#define WORD_BITS 64u
#define WORDS     (SKY_REPLAY_WINDOW / WORD_BITS)

static uint64_t bit_of(uint64_t sequence)
{
    return UINT64_C(1) << (sequence % WORD_BITS);
}

static uint32_t word_of(uint64_t sequence)
{
    SKY_ASSERT(WORDS * WORD_BITS == SKY_REPLAY_WINDOW);
    return (uint32_t)(sequence / WORD_BITS % WORDS);
}

/* Clear the bits of first .. last, which are fewer than the window, a word at a time. */
static void clear(SKY_Replay_t *replay, uint64_t first, uint64_t last)
{
    const uint64_t first_word = first / WORD_BITS;
    const uint64_t last_word  = last / WORD_BITS;

    SKY_ASSERT(first <= last);
    SKY_ASSERT(last - first < SKY_REPLAY_WINDOW);
    SKY_ASSERT(last_word - first_word <= WORDS); /* the first and the last word may be the same one of the window */
    for (uint64_t word = first_word; word <= last_word; ++word)
    {
        uint64_t mask = UINT64_MAX;

        if (word == first_word)
        {
            mask = UINT64_MAX << (first % WORD_BITS);
        }
        if (word == last_word)
        {
            mask &= UINT64_MAX >> (WORD_BITS - 1u - last % WORD_BITS);
        }
        replay->seen[word % WORDS] &= ~mask;
    }
}

void SKY_Replay_Init(SKY_Replay_t *replay)
{
    SKY_ASSERT(replay != NULL);
    (void)memset(replay, 0, sizeof(*replay));
    SKY_ASSERT(SKY_Replay_IsNew(replay, 1));
}

bool SKY_Replay_IsNew(const SKY_Replay_t *replay, uint64_t sequence)
{
    SKY_ASSERT(replay->highest < UINT64_MAX);
    if (sequence == 0 || sequence == UINT64_MAX)
    {
        return false;
    }
    if (sequence > replay->highest)
    {
        return true;
    }
    return replay->highest - sequence < SKY_REPLAY_WINDOW && (replay->seen[word_of(sequence)] & bit_of(sequence)) == 0;
}

void SKY_Replay_Note(SKY_Replay_t *replay, uint64_t sequence)
{
    SKY_ASSERT(SKY_Replay_IsNew(replay, sequence));
    SKY_ASSERT(sequence >= 1u);
    if (sequence > replay->highest)
    {
        if (sequence - replay->highest >= SKY_REPLAY_WINDOW)
        {
            (void)memset(replay->seen, 0, sizeof(replay->seen));
        }
        else
        {
            clear(replay, replay->highest + 1u, sequence);
        }
        replay->highest = sequence;
    }
    replay->seen[word_of(sequence)] |= bit_of(sequence);
    SKY_ASSERT(!SKY_Replay_IsNew(replay, sequence));
}

void SKY_Rising_Init(SKY_Rising_t *rising)
{
    SKY_ASSERT(rising != NULL);
    rising->last = 0;
    SKY_ASSERT(SKY_Rising_IsNew(rising, 1));
}

bool SKY_Rising_IsNew(const SKY_Rising_t *rising, uint64_t sequence)
{
    SKY_ASSERT(rising->last < UINT64_MAX);
    return sequence > rising->last && sequence < UINT64_MAX;
}

void SKY_Rising_Note(SKY_Rising_t *rising, uint64_t sequence)
{
    SKY_ASSERT(SKY_Rising_IsNew(rising, sequence));
    SKY_ASSERT(sequence < UINT64_MAX);
    rising->last = sequence;
    SKY_ASSERT(!SKY_Rising_IsNew(rising, sequence));
}
