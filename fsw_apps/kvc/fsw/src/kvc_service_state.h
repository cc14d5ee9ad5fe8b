/**
 * @file
 * Private to kvc_service.c and kvc_report.c: the state of the service and its lock.
 */
#ifndef KVC_SERVICE_STATE_H
#define KVC_SERVICE_STATE_H

#include "cfe.h"
#include "kvc_tbl.h"
#include "sky_lib.h"

#define KVC_CAUSES SKY_STATUS_COUNT

typedef struct
{
    osal_id_t         mutex;
    bool              mutex_made;
    bool              store_ready;
    bool              node_known;
    bool              serving;
    KVC_LimitsTable_t limits;
    SKY_Quotas_t      quotas; /* of those limits, as the store has them */
    SKY_LIB_Node_t    node;
    SKY_Store_t       store;
    SKY_Service_t     service;
    bool              credit_lowered;  /* the credit was lowered, which is not yet reported */
    bool              following;       /* the service follows a schedule */
    bool              foreign;         /* the schedule is for another constellation, which is not yet reported */
    bool              stray;           /* the window of the limits does not fit the constellation, which is not yet reported */
    bool              clock_bound;     /* the schedule's epoch is satellite time; else it is on the clock of now_us */
    uint64_t          epoch_us;        /* epoch of the schedule */
    uint64_t          epoch_offset_us; /* offset from now_us to satellite time when the service got the schedule */
    SKY_Schedule_t    schedule;
    SKY_ScheduleRow_t window_row; /* the window of the limits, as a schedule of one row */
    SKY_Schedule_t    window;
    uint64_t          reported[KVC_CAUSES]; /* errors at the last event of a cause */
    uint64_t          reported_us[KVC_CAUSES];
    uint32_t          late_reported, done_reported; /* late handovers by this schedule that events told of */
} KVC_ServiceState_t;

extern KVC_ServiceState_t KVC_Service;

/** Take the lock, which guards all of the state. @return false if it is gone */
bool KVC_Service_Enter(void);
void KVC_Service_Leave(void);

#endif
