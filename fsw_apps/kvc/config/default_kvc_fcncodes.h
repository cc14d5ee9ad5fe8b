/**
 * @file
 * Function codes of the commands of KVC (hashtable service).
 */
#ifndef KVC_FCNCODES_H
#define KVC_FCNCODES_H

#define KVC_NOOP_CC           0 /**< event with the version */
#define KVC_RESET_COUNTERS_CC 1 /**< counters of the app and of the service to 0 */
#define KVC_CLEAR_STORE_CC    2 /**< forget every chunk */
#define KVC_PURGE_BLOCK_CC    3 /**< forget one block */

#endif
