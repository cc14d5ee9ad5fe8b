/**
 * @file
 * Tables of KVC where its data sheet (eds/kvc.xml) is built in.
 */
#ifndef KVC_TBLSTRUCT_H
#define KVC_TBLSTRUCT_H

#include "kvc_eds_typedefs.h"
#include "kvc_tbldefs.h"

#endif
