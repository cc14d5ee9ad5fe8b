/**
 * @file
 * Where the keys of a satellite are in the memory of its process: once where they are held, and nowhere after its end.
 *
 * The test looks for them in itself. So its own copies are masked, and what it needs in the clear is erased.
 */
#define _DEFAULT_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "app_rig.h"
#include "isl_eventids.h"
#include "sky/party_rig.h"
#include "sky_wipe.h"

#define HEAD_BYTES 16u
#define SATELLITES 9u
#define OWN_INDEX  4u /* (2, 2) of 3 x 3 */
#define EAST_INDEX 5u
#define MASK       0x5Au
#define LARGEST    ((size_t)1 << 34) /* bytes of a region: what sanitizers map is larger */
#define PAGES      1024u
#define LEAK_BYTES 65536
#define STARTS     3u
#define LINE_BYTES 512u

typedef struct
{
    uint8_t bytes[SKY_CRYPTO_KEY_BYTES];
} masked_t;

static rig_t        rig;
static crypto_rig_t theirs;
static masked_t     masked[SATELLITES]; /* keys of peers; at the own place the master key */
static uint32_t     found[SATELLITES];
static char         file[] = "/tmp/skymem-keys-XXXXXX";

/* Make keys that do not come by chance. */
static void make_keys(void)
{
    for (uint32_t peer = 0; peer < SATELLITES; ++peer)
    {
        for (uint32_t i = 0; i < SKY_CRYPTO_KEY_BYTES; ++i)
        {
            masked[peer].bytes[i] = (uint8_t)((i * 41u + peer * 17u + 3u) ^ MASK);
        }
    }
}

static void unmask(uint32_t number, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    for (uint32_t i = 0; i < SKY_CRYPTO_KEY_BYTES; ++i)
    {
        key[i] = masked[number].bytes[i] ^ MASK;
    }
}

static void write_one(int fd, uint32_t number)
{
    uint8_t key[SKY_CRYPTO_KEY_BYTES];

    unmask(number, key);
    CHECK(write(fd, key, sizeof(key)) == (ssize_t)sizeof(key));
    SKY_Wipe(key, sizeof(key));
}

/* Write a key file of satellite (2, 2) of 3 x 3: docs/guide.md. */
static void write_file(void)
{
    static const uint8_t head[HEAD_BYTES] = {'S', 'K', 'Y', 'K', 1, 0, 0, 3, 0, 3, 0, 2, 0, 2};
    static const uint8_t zeros[SKY_CRYPTO_KEY_BYTES];
    const int            fd = mkstemp(file);

    CHECK(write(fd, head, sizeof(head)) == (ssize_t)sizeof(head));
    write_one(fd, OWN_INDEX);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        if (i != OWN_INDEX)
        {
            write_one(fd, i);
        }
        else
        {
            CHECK(write(fd, zeros, sizeof(zeros)) == (ssize_t)sizeof(zeros));
        }
    }
    (void)close(fd);
}

/* Count the keys in a region of this process. */
__attribute__((no_sanitize_address)) static void count_in(const volatile uint8_t *from, const volatile uint8_t *to)
{
    for (const volatile uint8_t *at = from; to - at >= (ptrdiff_t)SKY_CRYPTO_KEY_BYTES; ++at)
    {
        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            uint32_t same = 0;

            while (same < SKY_CRYPTO_KEY_BYTES && at[same] == (uint8_t)(masked[i].bytes[same] ^ MASK))
            {
                ++same;
            }
            found[i] += same == SKY_CRYPTO_KEY_BYTES ? 1u : 0u;
        }
    }
}

/* Count the keys in the pages of a region that were touched: the store is large, and most of it was not. */
static void count_touched(uint8_t *from, const uint8_t *to)
{
    static unsigned char is_in[PAGES];
    const size_t         page = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t       *run  = NULL;

    for (uint8_t *first = from; first < to; first += PAGES * page)
    {
        const size_t left  = (size_t)(to - first) / page;
        const size_t pages = left < PAGES ? left : PAGES;
        const bool   known = mincore(first, pages * page, is_in) == 0;

        for (size_t i = 0; i < pages; ++i)
        {
            const bool is_touched = known && (is_in[i] & 1u) != 0;

            if (!is_touched && run != NULL)
            {
                count_in(run, first + i * page);
            }
            run = !is_touched ? NULL : (run == NULL ? first + i * page : run);
        }
    }
    if (run != NULL)
    {
        count_in(run, to);
    }
}

/* Count the keys in all memory of this process that can be written. */
static void count_all(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char  line[LINE_BYTES];

    CHECK(maps != NULL);
    (void)memset(found, 0, sizeof(found));
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
    {
        char           *end;
        const uintptr_t from = (uintptr_t)strtoull(line, &end, 16);
        const uintptr_t to   = (uintptr_t)strtoull(end + 1, &end, 16);

        if (strncmp(end, " rw", 3) == 0 && to - from <= LARGEST)
        {
            count_touched((uint8_t *)from, (const uint8_t *)to);
        }
    }
    if (maps != NULL)
    {
        (void)fclose(maps);
    }
}

/* Let a host and a neighbour associate, so that keys are derived from both kinds. */
static void use_keys(void)
{
    static const uint8_t host_credential[SKY_CREDENTIAL_BYTES] = {SKY_ROLE_HOST, 0, SKY_CREDENTIAL_ANY_TENANT};
    static uint32_t      parties;
    uint8_t              key[SKY_CRYPTO_KEY_BYTES];
    uint8_t              wire[PARTY_WIRE];
    party_t              host, east;
    SKY_Packet_t         pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_ASSOCIATE);

    party_open(&host, &theirs.crypto, parties++, (SKY_Addr_t){0, RIG_HOST}, 1);
    CHECK(SKY_Credential_Decode(host_credential, &host.credential));
    unmask(OWN_INDEX, key);
    SKY_Keys_Pair(host.crypto, key, &host.credential, host.pair);
    SKY_Wipe(key, sizeof(key));
    rig_send_bytes(&rig, rig.ground, wire, party_handshake(&host, &pkt, 1, wire));
    CHECK(rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &pkt));
    CHECK(party_take(&host, &pkt));

    party_satellite(&east, &theirs.crypto, parties++, rig_neighbour[SKY_LINK_EAST], rig_self, 1);
    unmask(EAST_INDEX, east.pair);
    pkt = rig_request(&rig, SKY_APID_ISL, SKY_OP_ASSOCIATE);
    rig_send_bytes(&rig, rig.neighbour[SKY_LINK_EAST], wire, party_handshake(&east, &pkt, 1, wire));
    do
    {
        CHECK(rig_receive(&rig, rig.neighbour[SKY_LINK_EAST], RIG_LIMIT_MS, &pkt)); /* the satellite asks, too */
    } while (pkt.is_request);
    CHECK(party_take(&east, &pkt));
    SKY_Wipe(&host, sizeof(host));
    SKY_Wipe(&east, sizeof(east));
}

static void check_copies(uint32_t of_each)
{
    count_all();
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        CHECK_EQ(found[i], of_each);
    }
}

static void test_each_key_is_held_once_and_nowhere_at_the_end(void)
{
    const char *const options[] = {"--hello-s", "1", "--keys", file, NULL};
    ISL_KeysTable_t   keys;
    ISL_PeersTable_t *peers = malloc(sizeof(*peers)); /* too large for the stack */

    if (peers == NULL || !rig_open(&rig, options))
    {
        CHECK(false);
        return;
    }
    check_copies(1);
    use_keys();
    check_copies(1);

    /* A dump of the tables says which keys there are, and has none. */
    CHECK_EQ(EXEC_TableRead("ISL.Keys", &keys, sizeof(keys)), CFE_SUCCESS);
    CHECK(keys.Master[0].IsSet == 1 && keys.Master[0].Key[0] == 0);
    CHECK_EQ(EXEC_TableRead("ISL.Peers1", peers, sizeof(*peers)), CFE_SUCCESS);
    CHECK_EQ(peers->Count, SATELLITES);
    CHECK(peers->Peer[0].Key[0] == 0);

    /* Nor does what the ground loads stay, be it taken over or refused. */
    unmask(OWN_INDEX, keys.Master[0].Key);
    keys.Suites = 1;
    rig_table_load("ISL.Keys", &keys, sizeof(keys));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "Suites is 1");
    keys.Suites = 0;
    rig_table_load("ISL.Keys", &keys, sizeof(keys));
    RIG_EVENT(&rig, "ISL", ISL_SECURITY_INF_EID, "are secured");
    SKY_Wipe(&keys, sizeof(keys));
    check_copies(1);
    rig_close(&rig);
    check_copies(0);
    free(peers);
}

/* A table that was taken over holds zeros, which are no key. */
static void test_an_image_without_its_keys_is_refused(void)
{
    const char *const options[] = {"--hello-s", "0", "--keys", file, NULL};
    ISL_KeysTable_t   keys;

    CHECK(rig_open(&rig, options));
    CHECK_EQ(EXEC_TableRead("ISL.Keys", &keys, sizeof(keys)), CFE_SUCCESS);
    rig_table_load("ISL.Keys", &keys, sizeof(keys));
    RIG_EVENT(&rig, "ISL", ISL_TBL_VALUE_ERR_EID, "ISL.Keys: Key is 0, allowed a key");
    rig_close(&rig);
}

/* Each start takes the memory of the one before. */
static void test_a_start_leaves_nothing_behind(void)
{
    const char *const options[] = {"--hello-s", "0", "--keys", file, NULL};
    size_t            before    = 0;

    for (uint32_t i = 0; i < STARTS; ++i)
    {
        CHECK(rig_open(&rig, options));
        rig_close(&rig);
        before = i == 0u ? mallinfo2().uordblks : before;
    }
    CHECK(mallinfo2().uordblks < before + LEAK_BYTES);
}

static void test_a_file_that_others_may_read_is_refused(void)
{
    static const mode_t wrong[] = {0640, 0604, 0620, 0602};
    const char *const   argv[]  = {"skysat", "--plane", "2", "--slot", "2", "--planes", "3", "--slots", "3", "--keys", file};
    char                why[SATELLITE_WHY_BYTES] = "";
    SKYSAT_Options_t    options;

    CHECK(SKYSAT_ParseOptions(sizeof(argv) / sizeof(argv[0]), argv, &options, why, sizeof(why)));
    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
    {
        CHECK_EQ(chmod(file, wrong[i]), 0);
        CHECK(!SATELLITE_Init(&options, true, why, sizeof(why)));
        CHECK(strstr(why, "so that others may read or change it; allowed are modes such as 0600") != NULL);
    }
    if (geteuid() == 0) /* whoever owns it */
    {
        CHECK_EQ(chown(file, 65534, 65534), 0);
        CHECK(!SATELLITE_Init(&options, true, why, sizeof(why)));
        CHECK_EQ(chown(file, 0, 0), 0);
    }
    CHECK_EQ(chmod(file, 0400), 0);
}

int main(void)
{
    make_keys();
    write_file();
    crypto_rig_open(&theirs);
    RUN(test_a_file_that_others_may_read_is_refused);
    RUN(test_each_key_is_held_once_and_nowhere_at_the_end);
    RUN(test_an_image_without_its_keys_is_refused);
    RUN(test_a_start_leaves_nothing_behind);
    crypto_rig_close(&theirs);
    (void)unlink(file);
    return CHECK_RESULT();
}
