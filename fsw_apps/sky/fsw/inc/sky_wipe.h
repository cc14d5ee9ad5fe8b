/**
 * @file
 * Erasing secrets.
 */
#ifndef SKY_WIPE_H
#define SKY_WIPE_H

#include <stddef.h>

/** Overwrite a secret with zeros, in a way that no compiler leaves out: for those who have no SKY_Crypto_t, which can do so, too. */
void SKY_Wipe(void *secret, size_t bytes);

#endif
