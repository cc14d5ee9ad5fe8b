/**
 * @file
 * Private to sky_security: what its two files call of each other.
 */
#ifndef SKY_SECURITY_PRIV_H
#define SKY_SECURITY_PRIV_H

#include "sky_security.h"

#define SKY_SECURITY_SESSIONS_MAX 4096u
#define SKY_SECURITY_IDLE_US      UINT64_C(10000000) /**< a session that nobody waited for so long is not asked for any more */

#endif
