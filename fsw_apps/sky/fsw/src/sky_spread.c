/**
 * @file
 * Spread of blocks over servers: see sky_spread.h.
 */
#include "sky_spread.h"

#include "sky_assert.h"

uint32_t SKY_Spread_OfKey(const uint8_t *key, uint32_t servers)
{
    SKY_ASSERT(servers <= UINT16_MAX);
    const uint32_t bits = (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
    SKY_ASSERT(servers >= 1u);

    return (uint32_t)((uint64_t)bits * servers >> 32); /* unlike a remainder, it prefers no server */
}

uint32_t SKY_Spread_Offset(const uint8_t *key, uint32_t chunk_total, uint32_t servers)
{
    const uint32_t offset = SKY_Spread_OfKey(key, servers);
    SKY_ASSERT(offset < servers);
    SKY_ASSERT(chunk_total >= 1u);

    return chunk_total > (uint64_t)(SKY_SPREAD_ROWS - 1u) * servers ? 0u : offset;
}

uint32_t SKY_Spread_Server(const uint8_t *key, uint32_t chunk_total, uint32_t servers, uint32_t chunk_id)
{
    const uint32_t server = chunk_id % servers + SKY_Spread_Offset(key, chunk_total, servers);
    SKY_ASSERT(server < 2u * servers);

    return server < servers ? server : server - servers;
}

uint32_t SKY_Spread_Share(const uint8_t *key, uint32_t chunk_total, uint32_t servers, uint32_t server)
{
    const uint32_t share = server + servers - SKY_Spread_Offset(key, chunk_total, servers);
    SKY_ASSERT(server < servers);
    SKY_ASSERT(share < 2u * servers);

    return share < servers ? share : share - servers;
}
