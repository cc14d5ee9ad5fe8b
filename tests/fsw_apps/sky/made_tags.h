/**
 * @file
 * Tags that were made for packets in a run at random: by which key, and with which number. No pair of both may come twice, whoever made
 * the tag. Libraries are known by their numbers, below MADE_PARTIES.
 */
#ifndef MADE_TAGS_H
#define MADE_TAGS_H

#include <stdlib.h>

#include "crypto_rig.h"

typedef struct
{
    uint8_t  key[SKY_CRYPTO_KEY_BYTES];
    uint64_t sequence;
} made_t;

static made_t              made[MADE_MAX];
static size_t              made_count;
static made_t              made_last; /* of all tags, those that were made to check one too */
static const crypto_rig_t *made_rigs[MADE_PARTIES];
static uint8_t             made_keys[MADE_PARTIES][RIG_PLACES][SKY_CRYPTO_KEY_BYTES];

static inline size_t made_number(const void *context)
{
    size_t number = 0;

    while (number < MADE_PARTIES - 1u && made_rigs[number] != context)
    {
        ++number;
    }
    return number;
}

static inline bool made_load_key(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    (void)memcpy(made_keys[made_number(context)][place], key, SKY_CRYPTO_KEY_BYTES);
    return rig_load_key(context, place, suite, key);
}

static inline bool made_tag(void *context, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts, uint32_t part_count,
                            uint8_t tag[SKY_CRYPTO_TAG_BYTES])
{
    (void)memcpy(made_last.key, made_keys[made_number(context)][place], SKY_CRYPTO_KEY_BYTES);
    made_last.sequence = sequence;
    return rig_tag(context, place, sequence, parts, part_count, tag);
}

/* Note what a library does from now on. */
static inline void made_watch(size_t number, crypto_rig_t *rig)
{
    made_rigs[number]   = rig;
    rig->crypto.LoadKey = made_load_key;
    rig->crypto.Tag     = made_tag;
}

/* The tag that was made last is that of a packet that goes out. */
static inline void made_add(void)
{
    CHECK(made_count < MADE_MAX);
    if (made_count < MADE_MAX)
    {
        made[made_count] = made_last;
        ++made_count;
    }
}

static inline int made_compare(const void *one, const void *other)
{
    const made_t *a     = one;
    const made_t *b     = other;
    const int     order = memcmp(a->key, b->key, sizeof(a->key));

    return order != 0 ? order : a->sequence < b->sequence ? -1 : a->sequence > b->sequence ? 1 : 0;
}

static inline bool made_is_none_twice(void)
{
    qsort(made, made_count, sizeof(made[0]), made_compare);
    for (size_t i = 1; i < made_count; ++i)
    {
        if (made_compare(&made[i - 1u], &made[i]) == 0)
        {
            return false;
        }
    }
    return true;
}

#endif
