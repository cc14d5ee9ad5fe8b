/**
 * @file
 * Upload of a rotation schedule by command: SCHEDULE_BEGIN, _ROWS, _COMMIT.
 */
#ifndef KVC_UPLOAD_H
#define KVC_UPLOAD_H

#include "kvc_msg.h"

/** Take a command of the upload. @return false if it was refused, with an event that says why */
bool KVC_Upload_Begin(const KVC_ScheduleBegin_Payload_t *begin);
bool KVC_Upload_Rows(const KVC_ScheduleRows_Payload_t *rows);
bool KVC_Upload_Commit(const KVC_ScheduleCommit_Payload_t *commit);

#endif
