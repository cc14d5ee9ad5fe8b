/**
 * @file
 * Function codes of the commands of KVC (hashtable service).
 */
#ifndef KVC_FCNCODES_H
#define KVC_FCNCODES_H

#define KVC_NOOP_CC            0 /**< event with the version */
#define KVC_RESET_COUNTERS_CC  1 /**< counters of the app and of the service to 0 */
#define KVC_CLEAR_STORE_CC     2 /**< forget every chunk */
#define KVC_PURGE_BLOCK_CC     3 /**< forget one block */
#define KVC_SCHEDULE_BEGIN_CC  4 /**< a schedule follows: what it is for */
#define KVC_SCHEDULE_ROWS_CC   5 /**< some rows of it */
#define KVC_SCHEDULE_COMMIT_CC 6 /**< that was all: load the tables KVC.Schedule1 .. and follow it */
#define KVC_HANDOVER_CC        7 /**< send everything that is held here to another satellite; to this one: keep it */

#endif
