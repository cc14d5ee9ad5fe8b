/**
 * @file
 * A satellite's table of associations against a model: random handshakes, packets and ends.
 */
#include "associations_rig.h"

#define STEPS     5000u
#define WORDS     24u
#define ADDRESSES 3u

/* What the model knows of each word: its association, if it has one. */
typedef struct
{
    uint32_t spi; /* SKY_SPI_NONE: none */
    bool     is_established;
    uint64_t used_us;
    uint32_t address; /* while it is half-open */
    bool     is_reachable, is_further;
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

static void drop_oldest(void)
{
    known_t *oldest = NULL;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        if (known[i].spi != SKY_SPI_NONE && known[i].is_established && (oldest == NULL || known[i].used_us < oldest->used_us))
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

static bool is_half_open(const known_t *one)
{
    return one->spi != SKY_SPI_NONE && !one->is_established;
}

/* Return true if a half-open one makes room before another one does, for one from an address. */
static bool goes_before(const known_t *one, const known_t *two, uint32_t address)
{
    if (one->is_reachable != two->is_reachable)
    {
        return two->is_reachable;
    }
    if ((one->address == address) != (two->address == address))
    {
        return one->address == address;
    }
    if (one->address != address && one->is_further != two->is_further)
    {
        return one->is_further;
    }
    return one->used_us < two->used_us;
}

/* Drop the half-open one that makes room. @return false if none does */
static bool make_room(uint32_t address, bool is_reachable)
{
    known_t *first = NULL;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        if (is_half_open(&known[i]) && (first == NULL || goes_before(&known[i], first, address)))
        {
            first = &known[i];
        }
    }
    CHECK(first != NULL);
    if (first == NULL || (first->is_reachable && !is_reachable))
    {
        return false;
    }
    first->spi = SKY_SPI_NONE;
    return true;
}

static bool is_another_of(uint32_t address)
{
    bool found = false;

    for (unsigned i = 0; i < WORDS; ++i)
    {
        found = found || (is_half_open(&known[i]) && known[i].is_reachable && known[i].address == address);
    }
    return found;
}

/* @return false if there is no room */
static bool model_begin(uint8_t word, uint32_t address, bool is_reachable, uint64_t now_us)
{
    const bool                   was_there = known[word].spi != SKY_SPI_NONE;
    const bool                   has_room  = was_there || count_known(false) < HALF_OPEN || make_room(address, is_reachable);
    const SKY_HandshakeRequest_t request   = a_request(0, 0, word);
    const SKY_HandshakeOrigin_t  origin    = {ENDPOINT + ((uint64_t)address << 16), is_reachable};
    const SKY_Association_t     *granted   = begin_at(&request, &origin, now_us);
    const uint32_t               spi       = granted == NULL ? SKY_SPI_NONE : granted->spi;

    CHECK_EQ(granted != NULL, has_room);
    if (was_there)
    {
        CHECK_EQ(spi, known[word].spi);
        if (is_half_open(&known[word]) && is_reachable && !known[word].is_reachable)
        {
            known[word] = (known_t){spi, false, now_us, address, true, is_another_of(address)};
        }
        return true;
    }
    if (granted == NULL)
    {
        return false;
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
    known[word]          = (known_t){spi, false, now_us, address, is_reachable, is_reachable && is_another_of(address)};
    return true;
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
            drop_oldest();
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
        uint64_t random  = seed;
        unsigned refused = 0;

        open();
        (void)memset(known, 0, sizeof(known));
        given_count = 0;
        for (uint64_t now_us = 1; now_us <= STEPS; ++now_us)
        {
            const uint8_t  word = (uint8_t)fx_below(&random, WORDS);
            const uint32_t kind = fx_below(&random, 100);

            if (kind < 45)
            {
                const uint32_t address      = fx_below(&random, ADDRESSES);
                const bool     is_reachable = fx_below(&random, 2) == 0;

                refused += model_begin(word, address, is_reachable, now_us) ? 0u : 1u;
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
        CHECK(refused > 20u);
        CHECK_EQ(table.stats.refused, refused);
        crypto_rig_close(&rig);
    }
}

int main(void)
{
    RUN(test_the_table_agrees_with_a_model);
    return CHECK_RESULT();
}
