/**
 * @file
 * A bad network under virtual time, and a real service at its far end. It loses, delays, reorders, repeats and damages packets,
 * all from one seed.
 */
#ifndef LOSSY_H
#define LOSSY_H

#include <string.h>

#include "check.h"
#include "fixture.h"

#define LOSSY_PACKETS 512u
#define LOSSY_BYTES   1600u
#define LOSSY_SLOTS   512u
#define LOSSY_SLOT    2048u

typedef struct
{
    uint32_t loss, repeat, damage; /* of 1000 packets */
    uint32_t delay_us, jitter_us;
} LossyModel_t;

typedef struct
{
    uint64_t at_us; /* 0: free */
    uint32_t order; /* of those that arrive at the same time */
    uint32_t len;
    bool     up; /* to the satellite */
    uint8_t  data[LOSSY_BYTES];
} LossyPacket_t;

static LossyPacket_t lossy_packets[LOSSY_PACKETS];
static LossyModel_t  lossy_model;
static uint64_t      lossy_random;
static uint32_t      lossy_order;
static uint32_t      lossy_crowded; /* packets for which the simulation had no room: must stay 0 */
static SKY_Store_t   lossy_store;
static SKY_Service_t lossy_service;
static uint8_t       lossy_memory[LOSSY_SLOTS * (LOSSY_SLOT + 512u)];

static const SKY_Addr_t lossy_ground    = {0, 77};
static const SKY_Addr_t lossy_satellite = {2, 3};

static inline uint32_t Lossy_Random(uint32_t below)
{
    lossy_random ^= lossy_random << 13; /* xorshift64 */
    lossy_random ^= lossy_random >> 7;
    lossy_random ^= lossy_random << 17;
    return (uint32_t)(lossy_random >> 33) % below;
}

static inline void Lossy_Start(uint64_t seed, const LossyModel_t *model, uint32_t packet_bytes, uint32_t credit)
{
    const SKY_StoreCfg_t store = {LOSSY_SLOT, LOSSY_SLOTS};
    SKY_ServiceCfg_t     cfg;

    (void)memset(lossy_packets, 0, sizeof(lossy_packets));
    (void)memset(&cfg, 0, sizeof(cfg));
    lossy_model          = *model;
    lossy_random         = seed * 0x9E3779B97F4A7C15ull + 1u;
    lossy_crowded        = 0;
    cfg.self             = lossy_satellite;
    cfg.packet_bytes     = packet_bytes;
    cfg.credit           = credit;
    cfg.part_lifetime_ms = 60000;
    CHECK(SKY_Torus_Init(&cfg.torus, 5, 19, false));
    CHECK(SKY_Store_MemoryBytes(&store) <= sizeof(lossy_memory));
    CHECK(SKY_Store_Init(&lossy_store, &store, lossy_memory, sizeof(lossy_memory), seed));
    CHECK(SKY_Service_Init(&lossy_service, &cfg, &lossy_store, 0, seed));
}

static inline void lossy_keep(uint64_t at_us, bool up, const uint8_t *data, size_t len)
{
    for (uint32_t i = 0; i < LOSSY_PACKETS; ++i)
    {
        LossyPacket_t *packet = &lossy_packets[i];

        if (packet->at_us == 0)
        {
            packet->at_us = at_us;
            packet->order = lossy_order++;
            packet->up    = up;
            packet->len   = (uint32_t)len;
            (void)memcpy(packet->data, data, len);
            if (Lossy_Random(1000) < lossy_model.damage)
            {
                packet->data[Lossy_Random(packet->len)] ^= (uint8_t)(1u << Lossy_Random(8));
            }
            return;
        }
    }
    ++lossy_crowded;
}

static inline void Lossy_SendBytes(uint64_t now_us, bool up, const uint8_t *data, size_t len)
{
    const uint32_t copies = Lossy_Random(1000) < lossy_model.repeat ? 2 : 1;

    for (uint32_t i = 0; i < copies && len > 0 && len <= LOSSY_BYTES; ++i)
    {
        if (Lossy_Random(1000) >= lossy_model.loss)
        {
            lossy_keep(now_us + 1 + lossy_model.delay_us + Lossy_Random(lossy_model.jitter_us + 1), up, data, len);
        }
    }
}

/* A packet of the ground. */
static inline void Lossy_Send(uint64_t now_us, const SKY_Packet_t *pkt)
{
    uint8_t      data[LOSSY_BYTES];
    const size_t len = SKY_Packet_Encode(pkt, data, sizeof(data));

    CHECK(len > 0);
    Lossy_SendBytes(now_us, true, data, len);
}

static inline void lossy_serve(uint64_t now_us, const SKY_Packet_t *pkt)
{
    uint8_t   data[LOSSY_BYTES];
    SKY_Out_t out;

    SKY_Service_Begin(&lossy_service, now_us, pkt);
    while (SKY_Service_Next(&lossy_service, now_us, &out))
    {
        Lossy_SendBytes(now_us, false, data, fx_join(&out, data, sizeof(data)));
    }
}

static inline LossyPacket_t *lossy_first(void)
{
    LossyPacket_t *first = NULL;

    for (uint32_t i = 0; i < LOSSY_PACKETS; ++i)
    {
        LossyPacket_t *packet = &lossy_packets[i];

        if (packet->at_us != 0 &&
            (first == NULL || packet->at_us < first->at_us || (packet->at_us == first->at_us && packet->order < first->order)))
        {
            first = packet;
        }
    }
    return first;
}

/* When the next packet arrives; UINT64_MAX: none is on its way. */
static inline uint64_t Lossy_NextUs(void)
{
    const LossyPacket_t *first = lossy_first();

    return first == NULL ? UINT64_MAX : first->at_us;
}

/* Deliver all that has arrived; what is for the ground goes to @p on_packet. What is damaged goes nowhere. */
static inline void Lossy_Deliver(uint64_t now_us, void (*on_packet)(uint64_t now_us, const SKY_Packet_t *pkt))
{
    for (LossyPacket_t *packet = lossy_first(); packet != NULL && packet->at_us <= now_us; packet = lossy_first())
    {
        SKY_Packet_t       pkt;
        const SKY_Status_t status = SKY_Packet_Decode(packet->data, packet->len, &pkt);

        if (status == SKY_STATUS_OK && packet->up)
        {
            lossy_serve(now_us, &pkt);
        }
        else if (status == SKY_STATUS_OK)
        {
            on_packet(now_us, &pkt);
        }
        packet->at_us = 0;
    }
}

/* A share of a block of @p chunks chunks of @p chunk_len bytes, the last @p last bytes long. */
static inline void Lossy_Share(SKY_ShareCfg_t *cfg, uint32_t chunks, uint32_t chunk_len, uint32_t last, uint32_t packet_bytes)
{
    (void)memset(cfg, 0, sizeof(*cfg));
    cfg->self               = lossy_ground;
    cfg->tenant             = 7;
    cfg->key[0]             = 0xAB;
    cfg->stripe.chunk_total = chunks;
    cfg->stripe.chunk_len   = chunk_len;
    cfg->stripe.block_len   = (chunks - 1) * chunk_len + last;
    cfg->stride             = 1;
    cfg->count              = chunks;
    cfg->packet_bytes       = packet_bytes;
    cfg->deadline_us        = UINT64_MAX;
    cfg->request_id         = 0x1234567890000ull;
}

#endif
