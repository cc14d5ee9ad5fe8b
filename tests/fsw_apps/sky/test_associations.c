/**
 * @file
 * A satellite's table of associations: what is granted to whom, and who makes room for whom.
 */
#include "associations_rig.h"

static void test_a_table_needs_room_and_places(void)
{
    SKY_AssociationsConfig_t config = a_config();

    crypto_rig_open(&rig);
    CHECK(!SKY_Associations_Init(&table, &config, entries, sizeof(entries) - 1u, salt));
    config.established_max = 0;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    CHECK(!SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
    config.established_max = SKY_ASSOCIATIONS_MAX;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    config.established_max = UINT32_MAX;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    config.established_max = ESTABLISHED;
    config.half_open_max   = 0;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    config.half_open_max = UINT32_MAX;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    config.half_open_max = HALF_OPEN;
    config.first_place   = RIG_PLACES - 2u * ENTRIES;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), sizeof(entries));
    config.first_place += 1u;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    config.first_place = UINT32_MAX;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), 0);
    rig.crypto.key_count   = UINT32_MAX;
    config.first_place     = 0;
    config.half_open_max   = 1;
    config.established_max = SKY_ASSOCIATIONS_MAX - 1u;
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), SKY_ASSOCIATIONS_MAX * sizeof(SKY_Association_t));
    crypto_rig_close(&rig);
}

static void test_the_same_request_gets_the_same_association(void)
{
    open();
    const uint32_t     spi         = begin(1, 100);
    SKY_Association_t *association = SKY_Associations_Find(&table, spi);

    CHECK(spi != SKY_SPI_NONE && association != NULL);
    CHECK_EQ(association->state, SKY_ASSOCIATION_HALF_OPEN);
    CHECK_EQ(begin(1, 200), spi);
    SKY_Replay_Note(&association->replay, 5);
    SKY_Rising_Note(&association->commands, 5);
    CHECK_EQ(SKY_Association_NextSequence(association), 1);
    use(spi, 300);
    CHECK_EQ(begin(1, 400), spi);
    CHECK(!SKY_Replay_IsNew(&association->replay, 5)); /* nothing was reset */
    CHECK(!SKY_Rising_IsNew(&association->commands, 5));
    CHECK_EQ(SKY_Association_NextSequence(association), 2);
    CHECK_EQ(association->used_us, 300);
    CHECK(association->endpoint == ENDPOINT + 300u);
    CHECK_EQ(rig.loaded, 2);
    CHECK_EQ(table.stats.begun, 1);
    CHECK_EQ(table.stats.repeated, 2);
    crypto_rig_close(&rig);
}

static void test_another_word_or_credential_gets_another_association(void)
{
    SKY_HandshakeRequest_t request;

    open();
    const uint32_t spi = begin(1, 0);

    CHECK(begin(2, 0) != spi);
    CHECK(SKY_Associations_SetMaster(&table, 1, newer));
    request = a_request(0, 1, 1);
    CHECK(begin_with(&request, 0)->spi != spi);
    CHECK_EQ(table.half_open, 3);
    CHECK_EQ(crypto_rig_keys(&rig), 6);
    crypto_rig_close(&rig);
}

static void test_an_spi_of_nobody_is_not_found(void)
{
    open();
    const uint32_t spi = begin(1, 0);

    CHECK(!is_there(SKY_SPI_NONE));
    CHECK(!is_there(UINT32_MAX)); /* beyond the entries */
    CHECK(!is_there(spi + 8u));   /* the same entry at another time */
    CHECK(!is_there(spi + 1u));   /* a free entry */
    CHECK(!is_there(1));
    CHECK(is_there(spi));
    SKY_Associations_End(&table, SKY_Associations_Find(&table, spi));
    CHECK(!is_there(spi));
    CHECK_EQ(crypto_rig_keys(&rig), 0);
    crypto_rig_close(&rig);
}

static void test_half_open_associations_push_out_only_each_other(void)
{
    uint32_t established[ESTABLISHED];

    open();
    for (uint8_t i = 0; i < ESTABLISHED; ++i)
    {
        established[i] = begin(i, i);
        use(established[i], 100u + i);
    }
    const uint32_t first = begin(100, 1000);

    for (uint8_t i = 1; i < 150; ++i)
    {
        CHECK_EQ(is_there(first), i <= HALF_OPEN);
        (void)begin((uint8_t)(100u + i), 1000u + i);
        CHECK(table.half_open <= HALF_OPEN);
    }
    for (uint8_t i = 0; i < ESTABLISHED; ++i)
    {
        CHECK(is_there(established[i]));
    }
    CHECK_EQ(table.stats.lapsed, 150u - HALF_OPEN);
    CHECK_EQ(table.stats.evicted, 0);
    CHECK_EQ(crypto_rig_keys(&rig), 2u * ENTRIES);
    crypto_rig_close(&rig);
}

static void test_the_longest_unused_one_makes_room(void)
{
    uint32_t spis[ESTABLISHED];

    open();
    for (uint8_t i = 0; i < ESTABLISHED; ++i)
    {
        spis[i] = begin(i, 0);
        use(spis[i], i);
    }
    use(spis[0], 50);
    const uint32_t late = begin(99, 60);

    CHECK(is_there(spis[1]));
    use(late, 70);
    CHECK(!is_there(spis[1]));
    CHECK(is_there(spis[0]) && is_there(spis[2]) && is_there(spis[3]) && is_there(late));
    CHECK_EQ(table.stats.evicted, 1);
    CHECK_EQ(table.established, ESTABLISHED);
    CHECK_EQ(crypto_rig_keys(&rig), 2u * ESTABLISHED);
    crypto_rig_close(&rig);
}

/* A quarter of the table: who makes more associations ends its own, and nobody else's. */
static void test_a_credential_has_a_share(void)
{
    static SKY_Association_t     many[36u + HALF_OPEN];
    const SKY_HandshakeRequest_t of_satellite = a_request(1, 0, 1);
    SKY_AssociationsConfig_t     config       = a_config();
    uint32_t                     spis[12]     = {0};

    crypto_rig_open(&rig);
    config.established_max = 36;
    CHECK(SKY_Associations_Init(&table, &config, many, sizeof(many), salt));
    CHECK(SKY_Associations_SetMaster(&table, 0, master));
    const uint32_t satellite = begin_with(&of_satellite, 50)->spi;

    use(satellite, 51);
    for (uint8_t i = 0; i < 12u; ++i)
    {
        spis[i] = begin((uint8_t)(i + 1u), 100u + i);
        use(spis[i], 100u + i);
        CHECK_EQ(table.stats.evicted, i < 9u ? 0u : i - 8u);
        CHECK(i < 9u || !is_there(spis[i - 9u]));
    }
    CHECK(is_there(satellite)); /* unused for longest */
    CHECK(is_there(spis[3]) && is_there(spis[11]));
    CHECK_EQ(table.established, 10);
    crypto_rig_close(&rig);
}

/* A recorded handshake of an association that has ended makes another one, with other keys. */
static void test_a_repeated_handshake_never_gets_the_old_spi_or_keys(void)
{
    const SKY_CryptoPart_t part = {"packet", 6};
    uint8_t                tag[SKY_CRYPTO_TAG_BYTES];

    open();
    const uint32_t     spi   = begin(1, 0);
    SKY_Association_t *first = SKY_Associations_Find(&table, spi);

    CHECK(rig.crypto.Tag(rig.crypto.context, first->place_there, 1, &part, 1, tag));
    SKY_Associations_End(&table, first);
    for (unsigned i = 0; i < 3u * ENTRIES; ++i)
    {
        const uint32_t     again = begin(1, i);
        SKY_Association_t *other = SKY_Associations_Find(&table, again);

        CHECK(again != spi);
        CHECK(!SKY_Crypto_IsTag(&rig.crypto, other->place_there, 1, &part, 1, tag));
        SKY_Associations_End(&table, other);
    }
    crypto_rig_close(&rig);
}

static void test_an_entry_that_is_given_out_again_starts_anew(void)
{
    open();
    for (uint8_t i = 0; i < 2u * ENTRIES; ++i)
    {
        SKY_Association_t *association = SKY_Associations_Find(&table, begin(i, i));

        CHECK(SKY_Replay_IsNew(&association->replay, 5));
        CHECK(SKY_Rising_IsNew(&association->commands, 5));
        CHECK_EQ(SKY_Association_NextSequence(association), 1);
        CHECK_EQ(association->state, SKY_ASSOCIATION_HALF_OPEN);
        SKY_Replay_Note(&association->replay, 5);
        SKY_Rising_Note(&association->commands, 5);
        SKY_Associations_End(&table, association);
    }
    crypto_rig_close(&rig);
}

/* When all SPIs were given out they are given out again, with other keys. */
static void test_spis_last_for_ever(void)
{
    const SKY_CryptoPart_t part = {"packet", 6};
    uint8_t                tag[SKY_CRYPTO_TAG_BYTES];

    open();
    const uint32_t     first    = begin(1, 0);
    const uint32_t     lasting  = begin(2, 0);
    SKY_Association_t *recorded = SKY_Associations_Find(&table, first);

    use(lasting, 1);
    CHECK(rig.crypto.Tag(rig.crypto.context, recorded->place_there, 1, &part, 1, tag));
    SKY_Associations_End(&table, recorded);
    for (uint32_t i = 0; i < ENTRIES; ++i)
    {
        entries[i].round = UINT32_MAX >> 3; /* seven entries take three bits */
    }
    entries[4].round -= 1u;
    const uint32_t last = begin(3, 2);

    CHECK_EQ(last, UINT32_MAX - 7u + 4u);
    CHECK_EQ(begin(3, 3), last);
    CHECK(memcmp(table.salt, salt, sizeof(salt)) == 0);
    CHECK_EQ(begin(1, 4), first); /* all are used up now: the same handshake gets the same SPI */
    CHECK(memcmp(table.salt, salt, sizeof(salt)) != 0);
    CHECK(!SKY_Crypto_IsTag(&rig.crypto, SKY_Associations_Find(&table, first)->place_there, 1, &part, 1, tag));
    CHECK(!is_there(last)); /* who was told the salt of before asks again */
    CHECK(is_there(lasting));
    CHECK_EQ(table.half_open, 1);
    CHECK_EQ(table.stats.refused, 0);
    CHECK_EQ(crypto_rig_keys(&rig), 4);
    SKY_Associations_End(&table, SKY_Associations_Find(&table, lasting));
    for (uint8_t i = 0; i < 2u * ENTRIES; ++i) /* the next ones come from there on */
    {
        (void)begin((uint8_t)(10u + i), 5);
    }
    CHECK_EQ(table.stats.refused, 0);
    crypto_rig_close(&rig);
}

static void test_a_suite_that_is_not_there_is_replaced(void)
{
    static const struct
    {
        uint32_t able;
        uint8_t  wanted, granted;
    } cases[] = {
        {SKY_SUITES_BLAKE2B, SKY_SUITE_GMAC_HEADER, SKY_SUITE_BLAKE2B_HEADER},
        {SKY_SUITES_BLAKE2B, SKY_SUITE_GMAC_PACKET, SKY_SUITE_BLAKE2B_PACKET},
        {SKY_SUITES_BLAKE2B, SKY_SUITE_BLAKE2B_PACKET, SKY_SUITE_BLAKE2B_PACKET},
        {SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_PACKET), SKY_SUITE_GMAC_HEADER, SKY_SUITE_NONE},
        {SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER), SKY_SUITE_GMAC_PACKET, SKY_SUITE_NONE},
        {SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER), SKY_SUITE_BLAKE2B_PACKET, SKY_SUITE_NONE},
        {0, SKY_SUITE_BLAKE2B_PACKET, SKY_SUITE_NONE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_AssociationsConfig_t config  = a_config();
        SKY_HandshakeRequest_t   request = a_request(0, 0, 1);

        open();
        config.suites = cases[i].able;
        CHECK(SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
        CHECK(SKY_Associations_SetMaster(&table, 0, master));
        request.wanted                       = cases[i].wanted;
        const SKY_Association_t *association = begin_with(&request, 0);

        CHECK_EQ(association == NULL ? SKY_SUITE_NONE : association->suite, cases[i].granted);
        CHECK_EQ(table.stats.refused, association == NULL ? 1 : 0);
        crypto_rig_close(&rig);
    }
}

/* What the library cannot do is not granted, whatever the configuration says. */
static void test_suites_are_those_of_the_library(void)
{
    SKY_HandshakeRequest_t         request = a_request(0, 0, 1);
    const SKY_AssociationsConfig_t config  = a_config();

    crypto_rig_open(&rig);
    rig.crypto.suites = SKY_SUITES_BLAKE2B;
    CHECK(SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
    CHECK(SKY_Associations_SetMaster(&table, 0, master));
    request.wanted = SKY_SUITE_GMAC_PACKET;
    CHECK_EQ(begin_with(&request, 0)->suite, SKY_SUITE_BLAKE2B_PACKET);
    crypto_rig_close(&rig);
}

static void test_a_library_that_takes_no_key_grants_nothing(void)
{
    static const crypto_fault_t  faults[] = {FAULT_LOADS_NOTHING, FAULT_LOADS_ONE};
    const SKY_HandshakeRequest_t request  = a_request(0, 0, 1);

    for (size_t i = 0; i < 2; ++i)
    {
        open();
        rig.fault = faults[i];
        CHECK(begin_with(&request, 0) == NULL);
        CHECK_EQ(table.half_open, 0);
        CHECK_EQ(crypto_rig_keys(&rig), 0);
        rig.fault = FAULT_NONE;
        CHECK(begin_with(&request, 0) != NULL);
        crypto_rig_close(&rig);
    }
}

static void test_two_master_keys_are_valid_at_once(void)
{
    uint8_t first[SKY_CRYPTO_KEY_BYTES], second[SKY_CRYPTO_KEY_BYTES];

    open();
    const SKY_HandshakeRequest_t old_host = a_request(0, 0, 1);
    const SKY_HandshakeRequest_t new_host = a_request(0, 200, 1);

    CHECK(!SKY_Associations_HasMaster(&table, 200));
    CHECK(!SKY_Associations_PairKey(&table, &new_host.credential, second));
    CHECK(SKY_Associations_SetMaster(&table, 200, newer));
    CHECK(!SKY_Associations_SetMaster(&table, 3, newer)); /* no room */
    CHECK(SKY_Associations_PairKey(&table, &old_host.credential, first));
    CHECK(SKY_Associations_PairKey(&table, &new_host.credential, second));
    CHECK(memcmp(first, second, sizeof(first)) != 0);
    const uint32_t old_spi = begin_with(&old_host, 0)->spi;
    const uint32_t new_spi = begin_with(&new_host, 0)->spi;

    CHECK(SKY_Associations_ForgetMaster(&table, 0));
    CHECK(!SKY_Associations_ForgetMaster(&table, 0));
    CHECK(!SKY_Associations_HasMaster(&table, 0));
    CHECK(!is_there(old_spi));
    CHECK(is_there(new_spi));
    CHECK(!SKY_Associations_PairKey(&table, &old_host.credential, first));
    CHECK(SKY_Associations_SetMaster(&table, 3, newer));
    crypto_rig_close(&rig);
}

static void test_a_master_key_that_is_set_again_ends_nothing(void)
{
    open();
    const uint32_t spi = begin(1, 0);

    CHECK(SKY_Associations_SetMaster(&table, 0, master));
    CHECK(is_there(spi));
    CHECK(SKY_Associations_SetMaster(&table, 0, newer)); /* another key of this generation */
    CHECK(!is_there(spi));
    CHECK(SKY_Associations_HasMaster(&table, 0));
    CHECK(SKY_Associations_SetMaster(&table, 1, master)); /* it took the place of the first */
    crypto_rig_close(&rig);
}

static void test_satellites_have_keys_of_their_own(void)
{
    const SKY_HandshakeRequest_t satellite   = a_request(1, 0, 1);
    const SKY_HandshakeRequest_t next        = a_request(1, 1, 1);
    const SKY_HandshakeRequest_t stranger    = a_request(2, 0, 1);
    const SKY_HandshakeRequest_t other_newer = a_request(1, 2, 1);
    uint8_t                      right[SKY_CRYPTO_KEY_BYTES];
    uint8_t                      pair[SKY_CRYPTO_KEY_BYTES];

    open();
    (void)memset(right, 5, sizeof(right)); /* the slot: peer_key */
    CHECK(SKY_Associations_PairKey(&table, &satellite.credential, pair));
    CHECK(memcmp(pair, right, sizeof(pair)) == 0);
    CHECK(!SKY_Associations_PairKey(&table, &stranger.credential, pair));
    CHECK(!SKY_Associations_PairKey(&table, &other_newer.credential, pair));

    const uint32_t host_spi      = begin(1, 0);
    const uint32_t satellite_spi = begin_with(&satellite, 0)->spi;
    const uint32_t next_spi      = begin_with(&next, 0)->spi;

    CHECK(SKY_Associations_ForgetMaster(&table, 0));
    CHECK(!is_there(host_spi) && is_there(satellite_spi) && is_there(next_spi));
    CHECK_EQ(table.half_open, 2);
    crypto_rig_close(&rig);
}

static void test_without_a_table_of_peers_no_satellite_associates(void)
{
    SKY_AssociationsConfig_t     config    = a_config();
    const SKY_HandshakeRequest_t satellite = a_request(1, 0, 1);
    uint8_t                      pair[SKY_CRYPTO_KEY_BYTES];

    open();
    config.peer_key = NULL;
    CHECK(SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
    CHECK(!SKY_Associations_PairKey(&table, &satellite.credential, pair));
    crypto_rig_close(&rig);
}

static void test_sequences_end_before_they_repeat(void)
{
    open();
    SKY_Association_t *association = SKY_Associations_Find(&table, begin(1, 0));

    association->sequence = UINT64_MAX - 2u;
    CHECK(SKY_Association_NextSequence(association) == UINT64_MAX - 1u);
    CHECK_EQ(SKY_Association_NextSequence(association), 0);
    CHECK_EQ(SKY_Association_NextSequence(association), 0);
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_a_table_needs_room_and_places);
    RUN(test_the_same_request_gets_the_same_association);
    RUN(test_another_word_or_credential_gets_another_association);
    RUN(test_an_spi_of_nobody_is_not_found);
    RUN(test_half_open_associations_push_out_only_each_other);
    RUN(test_the_longest_unused_one_makes_room);
    RUN(test_a_credential_has_a_share);
    RUN(test_a_repeated_handshake_never_gets_the_old_spi_or_keys);
    RUN(test_an_entry_that_is_given_out_again_starts_anew);
    RUN(test_spis_last_for_ever);
    RUN(test_a_suite_that_is_not_there_is_replaced);
    RUN(test_suites_are_those_of_the_library);
    RUN(test_a_library_that_takes_no_key_grants_nothing);
    RUN(test_two_master_keys_are_valid_at_once);
    RUN(test_a_master_key_that_is_set_again_ends_nothing);
    RUN(test_satellites_have_keys_of_their_own);
    RUN(test_without_a_table_of_peers_no_satellite_associates);
    RUN(test_sequences_end_before_they_repeat);
    return CHECK_RESULT();
}
