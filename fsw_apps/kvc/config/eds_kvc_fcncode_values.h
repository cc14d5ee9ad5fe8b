/**
 * @file
 * Values of the function codes of KVC where its data sheet (eds/kvc.xml) is built in.
 */
#ifndef EDS_KVC_FCNCODE_VALUES_H
#define EDS_KVC_FCNCODE_VALUES_H

#include "kvc_eds_cc.h"

#define KVC_CCVAL(x) EDS_CONTAINER_KVC_##x##_CC

#endif
