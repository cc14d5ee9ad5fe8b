/**
 * @file
 * Keys and contents of blocks, all of them functions of the block's number: no copy is needed to check a chunk.
 */
#include <string.h>

#include "sky_code.h"
#include "twin_priv.h"

#define NAME_WORD 3u /* word of a key that names the block */
#define GOLDEN    UINT64_C(0x9E3779B97F4A7C15)

/* The finalizer of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t SKYT_Random(SKYT_Twin_t *twin)
{
    twin->random += GOLDEN;
    return mix(twin->random);
}

void SKYT_CountUp(SKYT_Twin_t *twin, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += sizeof(twin->lanes))
    {
        twin->lanes += 2u; /* hosts set the lowest bit of some numbers, which have to differ all the same */
        (void)memcpy(bytes + i, &twin->lanes, sizeof(twin->lanes));
    }
}

uint64_t SKYT_DrawOf(const SKYT_Twin_t *twin, uint64_t what)
{
    return mix(mix(twin->config.seed) + what * GOLDEN);
}

bool SKYT_Chance(SKYT_Twin_t *twin, uint32_t ppm)
{
    return ppm != 0 && SKYT_Random(twin) % PPM < ppm;
}

void SKYT_Digest(SKYT_Twin_t *twin, uint32_t what, const uint8_t *data, size_t len)
{
    const uint64_t crc = len == 0 ? 0 : SKY_Crc32c(0, data, len);

    twin->counters.digest = mix(twin->counters.digest + GOLDEN) ^ mix(twin->now_us * GOLDEN ^ ((uint64_t)what << 32 | crc));
}

static uint64_t load(const uint8_t *data)
{
    uint64_t word = 0;

    for (uint32_t i = 0; i < 8; ++i)
    {
        word = word << 8 | data[i];
    }
    return word;
}

static void store(uint8_t *data, uint64_t word)
{
    for (uint32_t i = 0; i < 8; ++i)
    {
        data[i] = (uint8_t)(word >> (56u - 8u * i) & 0xFFu);
    }
}

/* Blocks of different tenants have the same key: only the tenant keeps them apart. The first bytes are as random as those of a digest, because
 * they say which servers have the block. */
void SKYT_Content_Key(const SKYT_Twin_t *twin, uint32_t block, uint8_t *key)
{
    const uint64_t name = block / twin->config.tenants;

    for (uint32_t i = 0; i < SKY_KEY_BYTES / 8u; ++i)
    {
        store(&key[(size_t)8 * i], i == NAME_WORD ? name + 1u : mix(name * GOLDEN + i)); /* a key is never all 0 */
    }
}

uint32_t SKYT_Content_Tenant(const SKYT_Twin_t *twin, uint32_t block)
{
    return block % twin->config.tenants + 1u;
}

uint32_t SKYT_Content_BlockOf(const SKYT_Twin_t *twin, uint32_t tenant, const uint8_t *key)
{
    const uint64_t name = load(&key[(size_t)8 * NAME_WORD]) - 1u;
    uint8_t        same[SKY_KEY_BYTES];

    if (tenant == 0 || tenant > twin->config.tenants || name >= twin->block_count)
    {
        return SKYT_NONE;
    }
    const uint64_t block = name * twin->config.tenants + tenant - 1u;

    if (block >= twin->block_count)
    {
        return SKYT_NONE;
    }
    SKYT_Content_Key(twin, (uint32_t)block, same);
    return memcmp(same, key, SKY_KEY_BYTES) == 0 ? (uint32_t)block : SKYT_NONE;
}

void SKYT_Content_Chunk(uint32_t block, uint64_t version, uint32_t chunk, uint8_t *out, uint32_t len)
{
    const uint64_t claim = (uint64_t)block << 32 | chunk;
    uint64_t       state = version == 0 ? mix(claim) : mix(mix(claim) + version);

    for (uint32_t at = 0; at < len; at += 8u)
    {
        uint8_t        word[8];
        const uint32_t rest = len - at < 8u ? len - at : 8u;

        state += GOLDEN;
        store(word, at == 0 ? claim : at == 8u && version != 0 ? version : mix(state));
        (void)memcpy(&out[at], word, rest);
    }
}

uint32_t SKYT_Content_Claims(const uint8_t *data, uint32_t len, uint64_t *version)
{
    const uint64_t claim = len >= 8u ? load(data) : UINT64_MAX;

    *version = len >= 16u ? load(data + 8) : 0;
    return (uint32_t)(claim >> 32);
}

uint32_t SKYT_Content_Instance(uint32_t block, uint64_t version)
{
    return version == 0 ? 0 : (uint32_t)mix((uint64_t)block * GOLDEN ^ version) | 1u;
}

uint32_t SKYT_Content_Server(const SKYT_Twin_t *twin, uint32_t block, uint64_t version, uint32_t chunk)
{
    uint8_t key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    return SKY_Spread_Server(key, SKYT_Content_Stripe(twin, block, version).chunk_total, twin->config.servers, chunk);
}

SKY_Addr_t SKYT_Content_Home(const SKYT_Twin_t *twin, uint32_t row, uint32_t block, uint64_t version, uint32_t chunk)
{
    return SKY_Schedule_Server(&twin->schedule, row, SKYT_Content_Server(twin, block, version, chunk));
}

uint32_t SKYT_Content_Asked(const SKYT_Twin_t *twin, uint32_t block, uint32_t index)
{
    const uint32_t servers = twin->config.servers;
    uint8_t        key[SKY_KEY_BYTES];

    SKYT_Content_Key(twin, block, key);
    return SKY_Spread_Share(key, SKYT_Content_Total(twin, block), servers, (SKY_Spread_OfKey(key, servers) + index) % servers);
}

SKY_Stripe_t SKYT_Content_Stripe(const SKYT_Twin_t *twin, uint32_t block, uint64_t version)
{
    const uint32_t len        = twin->blocks[block].block_len;
    const bool     is_shorter = SKYT_Version_IsDeletion(version) && len > SKYT_DELETION_BYTES;
    SKY_Stripe_t   stripe;

    const uint8_t code_m = (uint8_t)twin->config.parity;
    const uint8_t code_k = code_m == 0 ? 0 : (uint8_t)(twin->config.servers - twin->config.parity);

    (void)SKY_Stripe_Cut(&stripe, is_shorter ? SKYT_DELETION_BYTES : len, twin->config.chunk_bytes, code_k,
                         code_m); /* the twin has checked these numbers */
    return stripe;
}

void SKYT_Content_Expect(const SKYT_Twin_t *twin, uint32_t block, uint64_t version, uint32_t chunk, uint8_t *out, uint32_t len)
{
    const SKY_Stripe_t    stripe = SKYT_Content_Stripe(twin, block, version);
    const bool            knows  = chunk < stripe.chunk_total;
    const SKY_StripeRow_t row    = SKY_Stripe_Row(&stripe, knows ? SKY_Stripe_RowOf(&stripe, chunk) : 0u);
    const SKY_CodeRow_t   code   = {(uint8_t)row.data, (uint8_t)row.parity};

    if (!knows || chunk - row.first < row.data)
    {
        SKYT_Content_Chunk(block, version, chunk, out, len);
        return;
    }
    (void)memset(out, 0, len);
    for (uint32_t place = 0; place < row.data; ++place)
    {
        const uint32_t own = SKY_Stripe_ChunkBytes(&stripe, row.first + place);

        SKYT_Content_Chunk(block, version, row.first + place, twin->scratch4, own < len ? own : len);
        SKY_Code_Add(out, twin->scratch4, own < len ? own : len,
                     SKY_Code_Coefficient(code, (uint8_t)(chunk - row.first), (uint8_t)place));
    }
}

uint32_t SKYT_Content_RowsMost(const SKYT_Config_t *config)
{
    const uint32_t data = (config->block_bytes + config->chunk_bytes - 1u) / config->chunk_bytes;

    return config->parity == 0 || data == 0 ? 1u : (data - 1u) / (config->servers - config->parity) + 1u;
}

size_t SKYT_Content_ParityBytes(const SKYT_Config_t *config)
{
    return (size_t)SKYT_Content_RowsMost(config) * config->parity * config->chunk_bytes + 1u;
}

uint32_t SKYT_Content_Total(const SKYT_Twin_t *twin, uint32_t block)
{
    return SKYT_Content_Stripe(twin, block, 0).chunk_total;
}
