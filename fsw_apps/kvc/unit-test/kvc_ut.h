/**
 * @file
 * What the unit tests of KVC share: satellite (1, 1) of 3 x 3 on stubs of cFE and OSAL. Each test file has an Add function.
 */
#ifndef KVC_UT_H
#define KVC_UT_H

#include "cfe.h"
#include "kvc_app.h"
#include "kvc_schedule.h"
#include "sky_lib.h"

#include "utassert.h"
#include "utstubs.h"
#include "uttest.h"

/** The contents of every table. Good limits are, read as a schedule, none. */
typedef union
{
    KVC_LimitsTable_t   limits;
    KVC_ScheduleTable_t schedule;
} UT_Table_t;

extern UT_Table_t               UT_Table;
extern uint16                   UT_LastEvent;
extern uint32                   UT_Events;
extern const SKY_LIB_Service_t *UT_Service; /**< what the app has registered */

/** Reset all stubs, with limits that are good and without a schedule. */
void UT_Setup(void);
/** Return a started app that runs no loop. */
void UT_Start(void);
/** Give a command or another message to the dispatcher. @param bytes  NULL: all 0 */
void UT_Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes);
/** Return satellite (1, 1) of 3 x 3. */
SKY_LIB_Node_t UT_Satellite(uint32_t packet_bytes);
/** Make UT_Table a good first segment of a schedule of @p total rows. */
void UT_MakeSchedule(uint32 total);

void UT_AddSchedule(void);

#endif
