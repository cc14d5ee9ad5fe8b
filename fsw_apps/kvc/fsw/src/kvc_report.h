/**
 * @file
 * What KVC tells of its service: housekeeping and events.
 */
#ifndef KVC_REPORT_H
#define KVC_REPORT_H

#include "cfe.h"
#include "kvc_msg.h"

/** Fill in what the service knows; the command counters are the app's. */
void KVC_Report_FillHk(KVC_HkTlm_Payload_t *hk);
/** Once a second: events about what was refused, lowered or late since the last call. */
void KVC_Report_Events(void);

#endif
