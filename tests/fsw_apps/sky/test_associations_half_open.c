/**
 * @file
 * Half-open associations: who makes room for whom, when somebody floods with recorded handshakes.
 */
#include "associations_rig.h"

#define ADDRESS(number) (ENDPOINT + ((uint64_t)(number) << 16))
#define FLOOD           100u

static const SKY_HandshakeOrigin_t honest_stranger = {ADDRESS(0), false};
static const SKY_HandshakeOrigin_t honest          = {ADDRESS(0) + 5u, true}; /* any port of the same address */

/* Let host `number` associate from an origin; return the SPI, or SKY_SPI_NONE if there is no room. */
static uint32_t begin_from(uint64_t endpoint, bool is_reachable, uint8_t number, uint64_t now_us)
{
    const SKY_HandshakeRequest_t request     = a_request(0, 0, number);
    const SKY_HandshakeOrigin_t  origin      = {endpoint, is_reachable};
    const bool                   has_room    = is_reachable || SKY_Associations_HasRoom(&table);
    const SKY_Association_t     *association = begin_at(&request, &origin, now_us);

    CHECK_EQ(association != NULL, has_room);
    CHECK(table.half_open <= HALF_OPEN);
    return association == NULL ? SKY_SPI_NONE : association->spi;
}

static uint32_t begin_honest(const SKY_HandshakeOrigin_t *origin, uint64_t now_us)
{
    return begin_from(origin->endpoint, origin->is_reachable, 1, now_us);
}

/* Whoever floods from one address pushes out its own, whatever the port. */
static void test_one_address_pushes_out_its_own(void)
{
    for (unsigned is_reachable = 0; is_reachable < 2u; ++is_reachable)
    {
        open();
        const uint32_t spi = begin_honest(is_reachable != 0u ? &honest : &honest_stranger, 100);

        for (uint8_t i = 0; i < FLOOD; ++i)
        {
            (void)begin_from(ADDRESS(1) + i % 3u, is_reachable != 0u, (uint8_t)(2u + i), 101u + i);
            CHECK(is_there(spi));
        }
        CHECK_EQ(table.stats.lapsed, FLOOD - (HALF_OPEN - 1u));
        crypto_rig_close(&rig);
    }
}

static void test_invented_addresses_push_out_strangers_alone(void)
{
    open();
    uint32_t spi = begin_honest(&honest_stranger, 100);

    for (uint8_t i = 0; i < HALF_OPEN; ++i)
    {
        CHECK(is_there(spi));
        (void)begin_from(ADDRESS(1u + i), false, (uint8_t)(2u + i), 101u + i);
    }
    CHECK(!is_there(spi));
    spi = begin_honest(&honest, 200);
    for (uint8_t i = 0; i < FLOOD; ++i)
    {
        CHECK(begin_from(ADDRESS(i), false, (uint8_t)(10u + i), 201u + i) != SKY_SPI_NONE); /* its own address among them */
        CHECK(is_there(spi));
    }
    CHECK_EQ(table.stats.refused, 0);
    use(spi, 500);
    crypto_rig_close(&rig);
}

/* Several sockets of one host, all with cookies, push out no other of theirs while there is a stranger's. */
static void test_who_was_shown_comes_before_strangers(void)
{
    uint32_t spis[HALF_OPEN];

    open();
    for (uint8_t i = 0; i < HALF_OPEN; ++i)
    {
        (void)begin_from(ADDRESS(1u + i), false, (uint8_t)(100u + i), i);
    }
    for (uint8_t i = 0; i < HALF_OPEN; ++i)
    {
        spis[i] = begin_from(ADDRESS(0) + i, true, (uint8_t)(1u + i), 100u + i);
    }
    for (uint8_t i = 0; i < HALF_OPEN; ++i)
    {
        CHECK(is_there(spis[i]));
    }
    CHECK(!SKY_Associations_HasRoom(&table));
    CHECK_EQ(begin_from(ADDRESS(9), false, 50, 200), SKY_SPI_NONE); /* to be told to come with a cookie */
    CHECK_EQ(begin_from(ADDRESS(0), false, 51, 200), SKY_SPI_NONE);
    CHECK_EQ(table.stats.refused, 2);
    CHECK(begin_from(ADDRESS(9), true, 50, 201) != SKY_SPI_NONE);
    CHECK(is_there(spis[0]) && !is_there(spis[1]) && is_there(spis[2])); /* of an address that has several, but the first one */
    use(spis[0], 300);
    CHECK(SKY_Associations_HasRoom(&table));
    CHECK(begin_from(ADDRESS(9), false, 52, 301) != SKY_SPI_NONE);
    crypto_rig_close(&rig);
}

/* With less addresses of his own than there are places nobody pushes out somebody else's only one. */
static void test_few_addresses_push_out_their_own(void)
{
    open();
    (void)begin_from(ADDRESS(1), true, 2, 0);
    (void)begin_from(ADDRESS(1), true, 3, 1);
    (void)begin_from(ADDRESS(1), true, 4, 2);
    const uint32_t spi = begin_honest(&honest, 10);

    for (uint8_t i = 0; i < FLOOD; ++i)
    {
        (void)begin_from(ADDRESS(1u + i % 2u), true, (uint8_t)(10u + i), 20u + i);
        CHECK(is_there(spi));
    }
    (void)begin_from(ADDRESS(3), true, 200, 500); /* as many as there are places */
    CHECK(!is_there(spi));
    crypto_rig_close(&rig);
}

/* A handshake that is repeated with the cookie that came late: the same association, and its place is safe from now on. */
static void test_a_repeated_handshake_shows_its_address(void)
{
    SKY_Association_t *association;

    open();
    const uint32_t spi = begin_honest(&honest_stranger, 100);

    CHECK_EQ(begin_from(ADDRESS(3), false, 1, 150), spi); /* recorded, and sent from elsewhere: nothing changes */
    association = SKY_Associations_Find(&table, spi);
    CHECK(association->endpoint == ADDRESS(0) && association->used_us == 100u && !association->is_reachable);
    CHECK_EQ(begin_honest(&honest, 200), spi);
    CHECK(association->endpoint == honest.endpoint && association->used_us == 200u && association->is_reachable);
    CHECK(!association->is_further);
    CHECK_EQ(begin_from(ADDRESS(3), true, 1, 250), spi); /* with a cookie of somebody else: it stays that of the first */
    CHECK(association->endpoint == honest.endpoint && association->used_us == 200u);
    for (uint8_t i = 0; i < FLOOD; ++i)
    {
        (void)begin_from(ADDRESS(1u + i), false, (uint8_t)(10u + i), 201u + i);
        CHECK(is_there(spi));
    }
    use(spi, 400);
    CHECK_EQ(begin_honest(&honest, 500), spi);
    CHECK_EQ(association->used_us, 400);
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_one_address_pushes_out_its_own);
    RUN(test_invented_addresses_push_out_strangers_alone);
    RUN(test_who_was_shown_comes_before_strangers);
    RUN(test_few_addresses_push_out_their_own);
    RUN(test_a_repeated_handshake_shows_its_address);
    return CHECK_RESULT();
}
