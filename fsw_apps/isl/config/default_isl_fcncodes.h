/**
 * @file
 * Function codes of the commands of ISL (inter-satellite links).
 */
#ifndef ISL_FCNCODES_H
#define ISL_FCNCODES_H

#define ISL_NOOP_CC           0 /**< event with the version */
#define ISL_RESET_COUNTERS_CC 1 /**< counters of the app, the router and the links to 0 */
#define ISL_SET_LINK_CC       2 /**< cut a link for a while, or restore it */

#endif
