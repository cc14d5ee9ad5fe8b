/**
 * @file
 * Where the values of kvc_topicids.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_KVC_TOPICID_VALUES_H
#define DEFAULT_KVC_TOPICID_VALUES_H

#define CFE_MISSION_KVC_TIDVAL(x) DEFAULT_CFE_MISSION_KVC_##x##_TOPICID

#endif
