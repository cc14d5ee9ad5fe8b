/**
 * @file
 * Messages of KVC where its data sheet (eds/kvc.xml) is built in.
 */
#ifndef KVC_MSGSTRUCT_H
#define KVC_MSGSTRUCT_H

#include "kvc_msgdefs.h"
#include "cfe_msg_hdr.h"

#endif
