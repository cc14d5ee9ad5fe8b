/**
 * @file
 * Fuzz target: hellos of neighbours -> map of links -> ways, and what is told to others.
 *
 * The input is a row of hellos: a byte that says over which link, whether it is news, an answer or a greeting, and how its length
 * field is to be; then the payload's length and bytes. The satellite is (2, 2) of 4 x 3.
 */
#include "fuzz.h"

#include <string.h>

#include "sky_hello.h"

#define PLANES     4u
#define SLOTS      3u
#define NOW_US     UINT64_C(1000000000)
#define STEP_US    3000000u
#define IS_NEWS    0x08u
#define IS_ANSWER  0x10u
#define FIX_COUNT  0x20u
#define OTHER_SIDE 0x40u

static const SKY_Addr_t self = {2, 2};

static void Check(SKY_Map_t *map, SKY_Hello_t *hello, uint64_t now_us)
{
    SKY_HelloOut_t out;
    uint32_t       sent = 0;

    ENSURE(map->sequence[map->self] != 0u || map->down[map->self] == 0u);
    while (SKY_Hello_Next(hello, now_us, &out))
    {
        ENSURE(out.link < SKY_ISL_COUNT && out.pkt.length <= SKY_HELLO_MAX_BYTES);
        ENSURE(SKY_Addr_Equal(out.pkt.dst, SKY_Torus_Neighbour(&map->torus, self, out.link)));
        ENSURE(++sent <= SKY_ISL_COUNT * (SKY_HELLO_BURST + 1u));
    }
    for (uint32_t i = 0; i < PLANES * SLOTS; ++i)
    {
        const SKY_Addr_t   to = {(uint16_t)(i / SLOTS + 1u), (uint16_t)(i % SLOTS + 1u)};
        uint32_t           hops;
        const SKY_LinkId_t link = SKY_Map_FirstHop(map, now_us, to, &hops);

        ENSURE(link == SKY_LINK_NONE || (link < SKY_ISL_COUNT && (map->down[map->self] & 1u << link) == 0u));
        ENSURE(link == SKY_LINK_NONE || hops < PLANES * SLOTS);
    }
    ENSURE(map->links_down <= 2u * PLANES * SLOTS);
    ENSURE(map->exceptions <= PLANES * SLOTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t memory[PLANES * SLOTS * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
    SKY_Torus_t     torus;
    SKY_Router_t    router;
    SKY_Map_t       map;
    SKY_Hello_t     hello;
    SKY_HelloOut_t  out;
    uint64_t        now_us = NOW_US;

    ENSURE(SKY_Torus_Init(&torus, PLANES, SLOTS, size % 2u == 1u));
    ENSURE(SKY_Router_Init(&router, &torus, self) && SKY_Map_Init(&map, &torus, self, memory, sizeof(memory)));
    SKY_Router_SetMap(&router, &map);
    SKY_Hello_Init(&hello, &router, now_us, STEP_US);
    while (size >= 2u)
    {
        const uint8_t      how     = data[0];
        const size_t       len     = (size_t)data[1] * 2u < size - 2u ? (size_t)data[1] * 2u : size - 2u;
        const SKY_LinkId_t link    = (SKY_LinkId_t)(how % 8u < SKY_LINK_NONE ? how % 8u : SKY_LINK_NONE);
        uint8_t           *payload = malloc(len + 1u); /* a heap block of its own: reading beyond is seen */
        SKY_Packet_t       pkt;

        ENSURE(payload != NULL);
        (void)memcpy(payload, data + 2, len);
        if ((how & FIX_COUNT) != 0u && len >= SKY_HELLO_BYTES)
        {
            payload[SKY_HELLO_OFF_COUNT]      = 0;
            payload[SKY_HELLO_OFF_COUNT + 1u] = (uint8_t)((len - SKY_HELLO_BYTES) / SKY_LINK_STATE_BYTES);
        }
        (void)memset(&pkt, 0, sizeof(pkt));
        pkt.is_request = (how & IS_ANSWER) == 0u;
        pkt.flags      = (how & IS_NEWS) != 0u ? SKY_FLAG_GOSSIP : 0u;
        pkt.op         = SKY_OP_HELLO;
        pkt.src        = SKY_Torus_Neighbour(&torus, self, (how & OTHER_SIDE) != 0u ? SKY_LINK_EAST : link);
        pkt.dst        = self;
        pkt.request_id = link < SKY_ISL_COUNT ? hello.links[link].asked_id : how;
        pkt.payload    = payload;
        pkt.length     = (uint32_t)len;
        if ((how & FIX_COUNT) != 0u && len >= SKY_HELLO_BYTES)
        {
            pkt.length = SKY_HELLO_BYTES + payload[SKY_HELLO_OFF_COUNT + 1u] * SKY_LINK_STATE_BYTES;
        }
        if (link < SKY_ISL_COUNT && (how & 0x80u) != 0u)
        {
            SKY_Hello_Heard(&hello, now_us, link);
        }
        if (SKY_Hello_Begin(&hello, now_us, &pkt, link, &out) == SKY_HELLO_ANSWER)
        {
            ENSURE(out.link == link && !out.pkt.is_request && out.pkt.request_id == pkt.request_id);
        }
        free(payload);
        SKY_Hello_Poll(&hello, now_us);
        Check(&map, &hello, now_us);
        now_us += STEP_US / 2u;
        data += 2u + len;
        size -= 2u + len;
    }
    return 0;
}
