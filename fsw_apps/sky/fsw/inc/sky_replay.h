/**
 * @file
 * Sequence numbers that were seen: a window for packets that may overtake each other, and a counter for commands, which may not.
 *
 * Sequence numbers start at 1. 0 and 2^64 - 1 are never new, so no number comes round again. Check a packet's tag first, then
 * whether its number is new, and note it only then: what has a wrong tag moves no window.
 */
#ifndef SKY_REPLAY_H
#define SKY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define SKY_REPLAY_WINDOW 16384u /**< numbers up to the highest one, of which it is known whether they were seen */

typedef struct
{
    uint64_t highest; /**< 0: none was seen */
    uint64_t seen[SKY_REPLAY_WINDOW / 64u];
} SKY_Replay_t;

/** A counter that only rises. */
typedef struct
{
    uint64_t last; /**< 0: none was seen */
} SKY_Rising_t;

void SKY_Replay_Init(SKY_Replay_t *replay);
/** Return true if a number was not seen and is not older than the window. */
bool SKY_Replay_IsNew(const SKY_Replay_t *replay, uint64_t sequence);
/** Note a number that is new. */
void SKY_Replay_Note(SKY_Replay_t *replay, uint64_t sequence);

void SKY_Rising_Init(SKY_Rising_t *rising);
/** Return true if a number is higher than all that were noted. */
bool SKY_Rising_IsNew(const SKY_Rising_t *rising, uint64_t sequence);
/** Note a number that is new. */
void SKY_Rising_Note(SKY_Rising_t *rising, uint64_t sequence);

#endif
