/**
 * @file
 * Reports of KVC on its service: housekeeping and events.
 */
#ifndef KVC_REPORT_H
#define KVC_REPORT_H

#include "cfe.h"
#include "kvc_msg.h"

/** Fill in the service's part; the command counters are the app's. */
void KVC_Report_FillHk(KVC_HkTlm_Payload_t *hk);
/** Send events about what was refused, lowered or late since the last call. Called once a second. */
void KVC_Report_Events(void);

#endif
