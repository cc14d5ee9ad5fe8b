/**
 * @file
 * Version of KVC: that of the whole software.
 */
#ifndef KVC_VERSION_H
#define KVC_VERSION_H

#include "sky_release.h"

#define KVC_VERSION SKY_RELEASE

#endif
