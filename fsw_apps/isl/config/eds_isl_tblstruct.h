/**
 * @file
 * Tables of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef ISL_TBLSTRUCT_H
#define ISL_TBLSTRUCT_H

#include "isl_eds_typedefs.h"
#include "isl_tbldefs.h"

#endif
