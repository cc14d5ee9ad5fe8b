/**
 * @file
 * Words and numbers by chance: see sky_host_priv.h.
 */
#include "sky_assert.h"
#include "sky_host_priv.h"

bool SKY_HostRandom_Word(SKY_Host_t *host, uint8_t word[SKY_WORD_BYTES])
{
    const bool is_drawn = host->shell.Random(host->shell.context, word, SKY_WORD_BYTES);

    SKY_ASSERT(host->cfg.security.is_keyed);
    SKY_ASSERT(word != NULL);
    host->counters.no_random += is_drawn ? 0u : 1u;
    return is_drawn;
}

uint32_t SKY_HostRandom_Number(SKY_Host_t *host)
{
    uint32_t number = 0;

    SKY_ASSERT(host->shell.Random != NULL);
    SKY_ASSERT(host->self.plane == 0u);
    ++host->drawn;
    return host->shell.Random(host->shell.context, (uint8_t *)&number, sizeof(number)) ? number : host->drawn;
}
