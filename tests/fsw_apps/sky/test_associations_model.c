/**
 * @file
 * A satellite's table of associations against a model: random handshakes, packets and ends.
 */
#include "associations_rig.h"

#define STEPS 5000u
#define WORDS 24u

/* What the model knows of each word: its association, if it has one. */
typedef struct
{
    uint32_t spi; /* SKY_SPI_NONE: none */
    bool     is_established;
    uint64_t used_us;
} known_t;

static known_t  known[WORDS];
static uint32_t given[STEPS]; /* SPIs, ever */
static unsigned given_count;

static unsigned count_known(bool is_established)
{
    unsigned count = 0;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        count += known[i].spi != SKY_SPI_NONE && known[i].is_established == is_established ? 1u : 0u;
    }
    return count;
}

static void drop_oldest(bool is_established)
{
    known_t *oldest = NULL;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        if (known[i].spi != SKY_SPI_NONE && known[i].is_established == is_established &&
            (oldest == NULL || known[i].used_us < oldest->used_us))
        {
            oldest = &known[i];
        }
    }
    CHECK(oldest != NULL);
    if (oldest != NULL)
    {
        oldest->spi = SKY_SPI_NONE;
    }
}

static void model_begin(uint8_t word, uint64_t now_us)
{
    const bool was_there = known[word].spi != SKY_SPI_NONE;

    if (!was_there && count_known(false) == HALF_OPEN)
    {
        drop_oldest(false);
    }
    const uint32_t spi = begin(word, now_us);

    if (was_there)
    {
        CHECK_EQ(spi, known[word].spi);
        return;
    }
    for (unsigned i = 0; i < given_count; ++i)
    {
        if (given[i] == spi)
        {
            CHECK(given[i] != spi);
            break;
        }
    }
    given[given_count++] = spi;
    known[word]          = (known_t){spi, false, now_us};
}

static void model_use(uint8_t word, uint64_t now_us)
{
    if (known[word].spi == SKY_SPI_NONE)
    {
        return;
    }
    use(known[word].spi, now_us);
    if (!known[word].is_established)
    {
        if (count_known(true) == ESTABLISHED)
        {
            drop_oldest(true);
        }
        known[word].is_established = true;
    }
    known[word].used_us = now_us;
}

static void model_end(uint8_t word)
{
    if (known[word].spi != SKY_SPI_NONE)
    {
        SKY_Associations_End(&table, SKY_Associations_Find(&table, known[word].spi));
        known[word].spi = SKY_SPI_NONE;
    }
}

/* Compare what is there, and that each place of a key is used once. */
static void compare(void)
{
    unsigned live = 0;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        if (known[i].spi != SKY_SPI_NONE)
        {
            const SKY_Association_t *association = SKY_Associations_Find(&table, known[i].spi);

            CHECK(association != NULL && association->word[0] == i);
            CHECK(association != NULL &&
                  association->state == (known[i].is_established ? SKY_ASSOCIATION_ESTABLISHED : SKY_ASSOCIATION_HALF_OPEN));
            ++live;
        }
    }
    CHECK_EQ(table.established, count_known(true));
    CHECK_EQ(table.half_open, count_known(false));
    CHECK_EQ(crypto_rig_keys(&rig), 2u * live);
    for (uint32_t place = 0; place < RIG_PLACES; ++place)
    {
        CHECK(!rig.is_full[place] || (place >= 10u && place < 10u + 2u * ENTRIES));
    }
}

static void test_the_table_agrees_with_a_model(void)
{
    for (uint64_t seed = 1; seed <= 3; ++seed)
    {
        uint64_t random = seed;

        open();
        (void)memset(known, 0, sizeof(known));
        given_count = 0;
        for (uint64_t now_us = 1; now_us <= STEPS; ++now_us)
        {
            const uint8_t  word = (uint8_t)fx_below(&random, WORDS);
            const uint32_t kind = fx_below(&random, 100);

            if (kind < 45)
            {
                model_begin(word, now_us);
            }
            else if (kind < 95)
            {
                model_use(word, now_us);
            }
            else if (kind < 99)
            {
                model_end(word);
            }
            else if (fx_below(&random, 4) == 0)
            {
                CHECK(SKY_Associations_ForgetMaster(&table, 0)); /* all go */
                CHECK(SKY_Associations_SetMaster(&table, 0, master));
                (void)memset(known, 0, sizeof(known));
            }
            compare();
        }
        CHECK(table.stats.evicted > 100u);
        CHECK(table.stats.lapsed > 100u);
        CHECK(table.stats.repeated > 100u);
        crypto_rig_close(&rig);
    }
}

int main(void)
{
    RUN(test_the_table_agrees_with_a_model);
    return CHECK_RESULT();
}
