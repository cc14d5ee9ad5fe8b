/**
 * @file
 * A transfer to the host, whose block is known, for the tests of sky_fetch.c.
 */
#ifndef FETCH_RIG_H
#define FETCH_RIG_H

#include "lossy.h"
#include "sky_fetch.h"

static const SKY_PeerCfg_t cfg =
    {.window_initial = 4, .window_max = 32, .burst = 4, .rto_initial_us = 1000, .rto_min_us = 100, .rto_max_us = 50000};

static SKY_Peer_t     peer;
static SKY_Fetch_t    fetch;
static SKY_ShareCfg_t share;
static SKY_Packet_t   req;
static uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
static uint8_t        source[300 * 1000], block[300 * 1000];

static inline void fill(void)
{
    lossy_random = 99;
    for (uint32_t i = 0; i < sizeof(source); ++i)
    {
        source[i] = (uint8_t)Lossy_Random(256);
    }
}

static inline void start(uint32_t chunks)
{
    Lossy_Share(&share, chunks, 1000, 10, 1500);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    (void)memset(block, 0, sizeof(block));
    CHECK(SKY_Fetch_Init(&fetch, &share, &peer, block, NULL));
}

static inline bool next(uint64_t now_us)
{
    return SKY_Fetch_Next(&fetch, now_us, 1000, &req, payload);
}

#endif
