/**
 * @file
 * Dispatch of a message on KVC's pipe to the function that acts on it.
 */
#ifndef KVC_DISPATCH_H
#define KVC_DISPATCH_H

#include "cfe.h"

void KVC_TaskPipe(const CFE_SB_Buffer_t *buffer);

#endif
