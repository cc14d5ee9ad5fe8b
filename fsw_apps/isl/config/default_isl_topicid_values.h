/**
 * @file
 * Where the values of isl_topicids.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_ISL_TOPICID_VALUES_H
#define DEFAULT_ISL_TOPICID_VALUES_H

#define CFE_MISSION_ISL_TIDVAL(x) DEFAULT_CFE_MISSION_ISL_##x##_TOPICID

#endif
