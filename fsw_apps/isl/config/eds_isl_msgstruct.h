/**
 * @file
 * Messages of ISL where its data sheet (eds/isl.xml) is built in.
 */
#ifndef ISL_MSGSTRUCT_H
#define ISL_MSGSTRUCT_H

#include "isl_msgdefs.h"
#include "cfe_msg_hdr.h"

#endif
