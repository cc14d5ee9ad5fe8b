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

#endif
