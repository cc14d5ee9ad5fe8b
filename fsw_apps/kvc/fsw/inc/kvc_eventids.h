/**
 * @file
 * Events of KVC.
 */
#ifndef KVC_EVENTIDS_H
#define KVC_EVENTIDS_H

#define KVC_INIT_INF_EID      1  /**< started */
#define KVC_NOOP_INF_EID      2  /**< NOOP */
#define KVC_RESET_INF_EID     3  /**< RESET_COUNTERS */
#define KVC_CLEAR_INF_EID     4  /**< CLEAR_STORE */
#define KVC_PURGE_INF_EID     5  /**< PURGE_BLOCK */
#define KVC_STORE_INF_EID     6  /**< the store has been set up: its size */
#define KVC_CREDIT_INF_EID    7  /**< the table's credit is too large for the links: what is used */
#define KVC_SCHEDULE_INF_EID  8  /**< a schedule has been taken over, or none is followed any more */
#define KVC_SEGMENT_INF_EID   9  /**< a schedule waits for another segment */
#define KVC_UPLOAD_INF_EID    10 /**< SCHEDULE_BEGIN, SCHEDULE_COMMIT */
#define KVC_HANDOVER_INF_EID  11 /**< HANDOVER */
#define KVC_DONE_INF_EID      12 /**< a late handover is done */
#define KVC_MID_ERR_EID       20 /**< message id not ours */
#define KVC_CC_ERR_EID        21 /**< function code unknown */
#define KVC_LEN_ERR_EID       22 /**< wrong length of a command */
#define KVC_PIPE_ERR_EID      23 /**< pipe could not be read: the app ends */
#define KVC_TBL_ERR_EID       24 /**< table could not be registered, loaded or read */
#define KVC_TBL_VALUE_ERR_EID 25 /**< value of a table out of range */
#define KVC_STORE_ERR_EID     26 /**< store could not be set up */
#define KVC_REFUSED_ERR_EID   27 /**< requests refused, by cause; not for each packet */
#define KVC_NOT_READY_ERR_EID 28 /**< command needs the store, which is not there */
#define KVC_SCHEDULE_ERR_EID  29 /**< a schedule cannot be followed, and why */
#define KVC_UPLOAD_ERR_EID    30 /**< SCHEDULE_BEGIN, _ROWS or _COMMIT refused */
#define KVC_HANDOVER_ERR_EID  31 /**< HANDOVER refused */
#define KVC_LATE_ERR_EID      32 /**< a handover takes longer than KVC.Limits allows, or than its row; once for each */
#define KVC_WINDOW_ERR_EID    33 /**< the window of KVC.Limits does not fit the constellation */

#endif
