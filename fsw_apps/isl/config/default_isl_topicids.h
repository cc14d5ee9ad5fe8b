/**
 * @file
 * Topic ids of ISL: a mission may override this file.
 */
#ifndef ISL_TOPICIDS_H
#define ISL_TOPICIDS_H

#define CFE_MISSION_ISL_CMD_TOPICID     0xD8
#define CFE_MISSION_ISL_SEND_HK_TOPICID 0xD9
#define CFE_MISSION_ISL_WAKEUP_TOPICID  0xDA
#define CFE_MISSION_ISL_HK_TLM_TOPICID  0xD8

#endif
