/**
 * @file
 * Dispatch of a message on ISL's pipe to the function that acts on it.
 */
#ifndef ISL_DISPATCH_H
#define ISL_DISPATCH_H

#include "cfe.h"

void ISL_TaskPipe(const CFE_SB_Buffer_t *buffer);

#endif
