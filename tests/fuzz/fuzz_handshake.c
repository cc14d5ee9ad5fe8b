/**
 * @file
 * Fuzz target: handshakes -> associations and sessions, and sequence numbers of packets.
 *
 * The input is a row of steps: a byte that says what comes, a number, the length of a payload (0: that of a request) and the payload.
 * Requests go into a satellite's table, responses into a host's session. The bytes are taken as if their tags were right.
 */
#include "fuzz.h"

#include <string.h>

#include "sky_associations.h"
#include "sky_crypto_library.h"
#include "sky_session.h"

#define ESTABLISHED 3u
#define HALF_OPEN   2u
#define ENTRIES     (ESTABLISHED + HALF_OPEN)
#define PLACES      (SKY_ASSOCIATION_PLACES * ENTRIES + 2u)
#define KEEP_SUITE  0x10u /* else it is one that exists, as few of all bytes are */
#define REACHABLE   0x20u /* with a cookie */
#define HEAD_BYTES  3u

static SKY_CryptoLibrary_t library;
static SKY_Associations_t  table;

static bool PeerKey(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    (void)context;
    ENSURE(plane != 0 && slot != 0);
    (void)memset(key, generation, SKY_CRYPTO_KEY_BYTES);
    return plane % 2u == 0;
}

static void Request(const uint8_t *payload, size_t bytes, const SKY_HandshakeOrigin_t *origin, uint64_t now_us)
{
    SKY_HandshakeRequest_t  request;
    SKY_HandshakeResponse_t response;
    uint8_t                 pair[SKY_CRYPTO_KEY_BYTES];

    if (!SKY_Handshake_DecodeRequest(payload, bytes, &request))
    {
        return;
    }
    uint8_t again[SKY_HANDSHAKE_REQUEST_BYTES];

    SKY_Handshake_EncodeRequest(&request, again);
    ENSURE(bytes == sizeof(again) && memcmp(payload, again, sizeof(again)) == 0);
    if (SKY_Associations_PairKey(&table, &request.credential, pair))
    {
        const bool               has_room = SKY_Associations_HasRoom(&table) || origin->is_reachable;
        const SKY_Association_t *one      = SKY_Associations_Begin(&table, &request, pair, origin, now_us, &response);

        ENSURE(one != NULL || !has_room);
        ENSURE(one == NULL || (SKY_Associations_Find(&table, one->spi) == one && one->suite == response.granted));
        ENSURE(SKY_Associations_Begin(&table, &request, pair, origin, now_us, &response) == one);
    }
}

/* A packet of an association: a number that was new is not new again. */
static void Packet(SKY_Association_t *association, uint64_t sequence, uint64_t now_us)
{
    if (SKY_Replay_IsNew(&association->replay, sequence))
    {
        SKY_Replay_Note(&association->replay, sequence);
        ENSURE(!SKY_Replay_IsNew(&association->replay, sequence));
        SKY_Associations_Used(&table, association, 2, now_us);
        ENSURE(association->state == SKY_ASSOCIATION_ESTABLISHED);
    }
    if (SKY_Rising_IsNew(&association->commands, sequence))
    {
        SKY_Rising_Note(&association->commands, sequence);
    }
    ENSURE(!SKY_Rising_IsNew(&association->commands, sequence));
}

static void Check(void)
{
    uint32_t half_open = 0, established = 0;

    for (uint32_t i = 0; i < ENTRIES; ++i)
    {
        half_open += table.entries[i].state == SKY_ASSOCIATION_HALF_OPEN ? 1u : 0u;
        established += table.entries[i].state == SKY_ASSOCIATION_ESTABLISHED ? 1u : 0u;
        ENSURE((table.entries[i].state == SKY_ASSOCIATION_FREE) == (table.entries[i].spi == SKY_SPI_NONE));
    }
    ENSURE(half_open == table.half_open && half_open <= HALF_OPEN);
    ENSURE(established == table.established && established <= ESTABLISHED);
}

static void Step(uint8_t what, uint8_t number, uint8_t *payload, size_t bytes, SKY_Session_t *session, uint64_t now_us)
{
    static const uint8_t key[SKY_CRYPTO_KEY_BYTES];
    SKY_Association_t   *entry    = &table.entries[number % ENTRIES];
    uint64_t             sequence = number;
    SKY_Credential_t     credential;
    uint8_t              asked[SKY_HANDSHAKE_REQUEST_BYTES];

    const SKY_HandshakeOrigin_t origin = {(uint64_t)(1u + number % 3u) << 16 | 1u, (what & REACHABLE) != 0};

    (void)memcpy(&sequence, payload, bytes < sizeof(sequence) ? bytes : sizeof(sequence));
    if ((what & KEEP_SUITE) == 0 && bytes == SKY_HANDSHAKE_REQUEST_BYTES)
    {
        payload[SKY_CREDENTIAL_BYTES + SKY_WORD_BYTES] = (uint8_t)(1u + number % 4u);
    }
    switch (what % 8u)
    {
        case 0:
        case 1:
            Request(payload, bytes, &origin, now_us);
            break;
        case 2:
            (void)SKY_Associations_Find(&table, (uint32_t)sequence);
            if (entry->state != SKY_ASSOCIATION_FREE)
            {
                Packet(entry, sequence, now_us);
            }
            break;
        case 3:
            if (number % 4u == 0)
            {
                (void)SKY_Associations_ForgetMaster(&table, (uint8_t)sequence);
                (void)SKY_Associations_SetMaster(&table, number, key);
            }
            break;
        case 4:
            if (bytes >= SKY_CREDENTIAL_BYTES && SKY_Credential_Decode(payload, &credential))
            {
                (void)SKY_Credential_Allows(&credential, number);
            }
            break;
        case 5:
            SKY_Credential_OfSatellite((SKY_Addr_t){1, 1}, number, &credential);
            (void)SKY_Session_Ask(session, &credential, key, now_us, 1, asked);
            break;
        case 6:
            if (SKY_Session_Take(session, &library.crypto, key, number, payload, bytes))
            {
                ENSURE(SKY_Session_NextSequence(session) == 1u);
            }
            break;
        default:
            (void)SKY_Session_Doubt(session, now_us);
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static SKY_CryptoPlace_t       places[PLACES];
    static SKY_Association_t       entries[ENTRIES];
    static const uint8_t           zeros[SKY_CRYPTO_KEY_BYTES];
    const SKY_AssociationsConfig_t config = {&library.crypto, SKY_SUITES_BLAKE2B, ESTABLISHED, HALF_OPEN, 2, PeerKey, NULL};
    SKY_Session_t                  session;
    uint64_t                       now_us = 1;

    if (library.places == NULL)
    {
        ENSURE(SKY_CryptoLibrary_Init(&library, places, sizeof(places), PLACES));
    }
    ENSURE(SKY_Associations_Init(&table, &config, entries, sizeof(entries), zeros));
    ENSURE(SKY_Associations_SetMaster(&table, 0, zeros));
    SKY_Session_Init(&session, SKY_SUITE_BLAKE2B_HEADER, SKY_SUITES_BLAKE2B, 0, 1);
    while (size >= HEAD_BYTES)
    {
        const size_t wanted  = data[2] == 0 ? SKY_HANDSHAKE_REQUEST_BYTES : data[2];
        const size_t bytes   = wanted < size - HEAD_BYTES ? wanted : size - HEAD_BYTES;
        uint8_t     *payload = malloc(bytes + 1u); /* a heap block of its own: reading beyond is seen */

        ENSURE(payload != NULL);
        (void)memcpy(payload, data + HEAD_BYTES, bytes);
        Step(data[0], data[1], payload, bytes, &session, now_us);
        Check();
        free(payload);
        data += HEAD_BYTES + bytes;
        size -= HEAD_BYTES + bytes;
        ++now_us;
    }
    return 0;
}
