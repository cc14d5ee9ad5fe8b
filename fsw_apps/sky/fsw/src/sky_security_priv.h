/**
 * @file
 * Private to sky_security: what its files call of each other.
 */
#ifndef SKY_SECURITY_PRIV_H
#define SKY_SECURITY_PRIV_H

#include "sky_security.h"

#define SKY_SECURITY_SESSIONS_MAX 4096u
#define SKY_SECURITY_IDLE_US      UINT64_C(10000000) /**< a session that nobody waited for so long is not asked for any more */

/** Return the suite to ask other satellites for. What the library cannot do is replaced by BLAKE2b of the same scope: who is asked may
 *  have a library that can, and would grant it. */
uint8_t SKY_Security_SuiteToAskFor(const SKY_SecurityCfg_t *cfg);
/** Erase the keys of a session and free its entry. */
void SKY_SecuritySession_End(const SKY_Security_t *security, SKY_SecuritySession_t *entry);
/** Return another generation whose master key is valid; the one that satellites are asked with if there is none. */
uint8_t SKY_Security_OtherGeneration(const SKY_Security_t *security);
/** Find the valid key with another satellite: SKY_PeerKey_t, with the security as context. */
bool SKY_Security_PeerKey(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES]);
/** Return a number by which equal keys are found without keeping them: a digest under a secret of this boot. */
uint64_t SKY_Security_KeyMark(const SKY_Security_t *security, const uint8_t key[SKY_CRYPTO_KEY_BYTES]);
/** Begin with full bursts; the secret of this boot is there. */
void SKY_SecurityLimits_Init(SKY_Security_t *security);

#endif
