/**
 * @file
 * Values of the function codes of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef EDS_ISL_FCNCODE_VALUES_H
#define EDS_ISL_FCNCODE_VALUES_H

#include "isl_eds_cc.h"

#define ISL_CCVAL(x) EDS_CONTAINER_ISL_##x##_CC

#endif
