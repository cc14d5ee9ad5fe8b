/**
 * @file
 * Function codes of the commands of ISL (inter-satellite links).
 */
#ifndef ISL_FCNCODES_H
#define ISL_FCNCODES_H

#include "isl_fcncode_values.h"

#define ISL_NOOP_CC           ISL_CCVAL(NOOP)           /**< event with the version */
#define ISL_RESET_COUNTERS_CC ISL_CCVAL(RESET_COUNTERS) /**< counters of the app, the router and the links to 0 */
#define ISL_SET_LINK_CC       ISL_CCVAL(SET_LINK)       /**< cut a link for a while, or restore it */

#endif
