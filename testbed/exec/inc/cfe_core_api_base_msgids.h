/**
 * @file
 * How a topic becomes a message id: cFE's default mapping (CCSDS version 1 headers).
 */
#ifndef CFE_CORE_API_BASE_MSGIDS_H
#define CFE_CORE_API_BASE_MSGIDS_H

#define CFE_PLATFORM_CMD_TOPICID_TO_MIDV(topic) (0x1800 | (topic))
#define CFE_PLATFORM_TLM_TOPICID_TO_MIDV(topic) (0x0800 | (topic))
#define CFE_GLOBAL_CMD_TOPICID_TO_MIDV(topic)   (0x1860 | (topic))
#define CFE_GLOBAL_TLM_TOPICID_TO_MIDV(topic)   (0x0860 | (topic))

#endif
