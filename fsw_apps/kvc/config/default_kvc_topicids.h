/**
 * @file
 * Topic ids of KVC: a mission may override this file.
 */
#ifndef KVC_TOPICIDS_H
#define KVC_TOPICIDS_H

#define CFE_MISSION_KVC_CMD_TOPICID     0xD0
#define CFE_MISSION_KVC_SEND_HK_TOPICID 0xD1
#define CFE_MISSION_KVC_WAKEUP_TOPICID  0xD2
#define CFE_MISSION_KVC_HK_TLM_TOPICID  0xD0

#endif
