/**
 * @file
 * Fuzz target: answers to a host with keys that opens satellites and asks them, from somebody who sees its packets and has no key.
 *
 * Each record of the input is a question of the host, time that passes, or an answer to the last packet of the host, with any fields and a tag
 * that is made up, or the answer of the satellite itself with bytes changed. The truth: no question is answered by a made-up answer, but that
 * a packet did not get there; nothing is sent without a tag, and no number twice under a key (open_rig.h); and in the end the host is served
 * as if nothing had been.
 */
#define FLYING_MAX 512u
#define NONCES     (1u << 14)
#include "../fsw_apps/sky/open_rig.h"
#include "fuzz_input.h"

#define RECORDS_MAX 24u
#define CHANGES_MAX 4u

static SKY_Packet_t last;
static uint8_t      changes[CHANGES_MAX][3]; /* of the next answers of satellites: where, and how */
static uint32_t     change_count;

static bool spy(uint32_t to, const SKY_Packet_t *pkt)
{
    (void)to;
    last         = *pkt;
    last.payload = NULL; /* it does not last */
    last.length  = 0;
    return true;
}

/* Change bytes of an answer, but for what changes on the way and is no matter of tags. */
static bool tap(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    (void)from;
    for (uint32_t i = 0; i < change_count; ++i)
    {
        const uint32_t at = (uint32_t)(changes[i][0] << 8 | changes[i][1]) % *len;

        bytes[at] = (uint8_t)(bytes[at] ^ changes[i][2]);
    }
    if (change_count > 0u)
    {
        const uint16_t crc = SKY_Crc16(SKY_CRC16_INIT, bytes, *len - SKY_PEC_BYTES);

        bytes[*len - 2u] = (uint8_t)(crc >> 8);
        bytes[*len - 1u] = (uint8_t)(crc & 0xFFu);
    }
    change_count = 0;
    return true;
}

/* Return true for words that need no tag. */
static bool is_of_the_way(SKY_Status_t status)
{
    return status == SKY_STATUS_BAD_VERSION || status == SKY_STATUS_TOO_LARGE || status == SKY_STATUS_HOP_LIMIT ||
           status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_REFUSED || status == SKY_STATUS_UNAUTHENTICATED ||
           status == SKY_STATUS_COOKIE;
}

static void make_up(input_t *in, const SKY_HostQuestion_t *one)
{
    static const uint8_t nobody[SKY_CRYPTO_KEY_BYTES] = {0}; /* a pair key that nobody has */
    static uint8_t       payload[SKY_HANDSHAKE_RESPONSE_BYTES];
    const SKY_TagKey_t   none = {&net.crypto.crypto, 0, nobody, NULL};
    const bool           runs = one->status == SKY_STATUS_RUNNING;
    const uint8_t        how  = take(in);
    SKY_Packet_t         pkt  = answer_of(&last, (how & 3u) == 3u ? 1u : 0u, (SKY_Status_t)(take(in) % SKY_STATUS_COUNT));

    if (last.apid == 0u)
    {
        return; /* it has sent nothing yet */
    }
    pkt.spi      = (how & 4u) != 0u ? last.spi : take32(in);
    pkt.sequence = (how & 8u) != 0u ? last.sequence : take32(in);
    pkt.cookie   = (how & 16u) != 0u ? take32(in) : 0u;
    pkt.flags    = (how & 32u) != 0u ? take(in) : 0u;
    if ((how & 64u) != 0u)
    {
        for (uint32_t i = 0; i < sizeof(payload); ++i)
        {
            payload[i] = take(in);
        }
        pkt.payload  = payload;
        pkt.length   = sizeof(payload);
        pkt.security = SKY_SUITE_HANDSHAKE;
    }
    inject((how & 128u) != 0u ? 1u : 0u, &pkt, pkt.security != SKY_SUITE_NONE ? &none : NULL);
    ENSURE(!runs || one->status == SKY_STATUS_RUNNING || one->answer.status != SKY_STATUS_OK);
    ENSURE(!runs || one->status == SKY_STATUS_RUNNING || is_of_the_way(one->answer.status));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t            in  = {data, size};
    SKY_HostQuestion_t one = {0};

    net_open(MODE_KEYED, MODE_KEYED, usual);
    (void)memset(&last, 0, sizeof(last));
    change_count = 0;
    net.spy      = spy;
    net.tap      = tap;
    one.status   = SKY_STATUS_DONE;
    for (uint32_t n = 0; n < RECORDS_MAX && in.left > 0; ++n)
    {
        switch (take(&in) % 4u)
        {
            case 0:
                if (one.status != SKY_STATUS_RUNNING)
                {
                    one = ping(0, (uint32_t)take(&in) % 2u);
                    ask(&one);
                }
                break;
            case 1:
                net_run(net.now_us + (uint64_t)take(&in) * take(&in) * 16u);
                break;
            case 2:
                change_count = 1u + take(&in) % CHANGES_MAX;
                for (uint32_t i = 0; i < change_count; ++i)
                {
                    changes[i][0] = take(&in);
                    changes[i][1] = take(&in);
                    changes[i][2] = take(&in);
                }
                break;
            default:
                make_up(&in, &one);
                break;
        }
    }
    change_count = 0;
    net_run_all();
    ENSURE(one.status != SKY_STATUS_RUNNING);
    net.spy = NULL;
    net.tap = NULL;
    net_wait(2u * SECOND_US);
    for (uint32_t entry = 0; entry < 2u; ++entry)
    {
        ask_one(0, entry, SKY_STATUS_OK);
    }
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
    ENSURE(check_failures == 0u);
    net_close();
    return 0;
}
