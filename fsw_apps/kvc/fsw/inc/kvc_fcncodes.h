/**
 * @file
 * Function codes of the commands of KVC (hashtable service).
 */
#ifndef KVC_FCNCODES_H
#define KVC_FCNCODES_H

#include "kvc_fcncode_values.h"

#define KVC_NOOP_CC            KVC_CCVAL(NOOP)            /**< event with the version */
#define KVC_RESET_COUNTERS_CC  KVC_CCVAL(RESET_COUNTERS)  /**< counters of the app and of the service to 0 */
#define KVC_CLEAR_STORE_CC     KVC_CCVAL(CLEAR_STORE)     /**< forget every chunk */
#define KVC_PURGE_BLOCK_CC     KVC_CCVAL(PURGE_BLOCK)     /**< forget one block */
#define KVC_SCHEDULE_BEGIN_CC  KVC_CCVAL(SCHEDULE_BEGIN)  /**< a schedule follows: what it is for */
#define KVC_SCHEDULE_ROWS_CC   KVC_CCVAL(SCHEDULE_ROWS)   /**< some rows of it */
#define KVC_SCHEDULE_COMMIT_CC KVC_CCVAL(SCHEDULE_COMMIT) /**< that was all: load the tables KVC.Schedule1 .. and follow it */
#define KVC_HANDOVER_CC        KVC_CCVAL(HANDOVER) /**< send everything that is held here to another satellite; to this one: keep it */

#endif
