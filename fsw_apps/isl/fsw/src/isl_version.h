/**
 * @file
 * Version of ISL: that of the whole software.
 */
#ifndef ISL_VERSION_H
#define ISL_VERSION_H

#include "sky_release.h"

#define ISL_VERSION SKY_RELEASE

#endif
