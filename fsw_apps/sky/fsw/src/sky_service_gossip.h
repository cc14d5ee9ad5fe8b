/**
 * @file
 * Private to the service: gossip about evicted blocks (sky_service_gossip.c).
 */
#ifndef SKY_SERVICE_GOSSIP_H
#define SKY_SERVICE_GOSSIP_H

#include "sky_service_state.h"

/** Begin a word: the rest of a block is useless. Nothing happens unless the configuration has gossip. */
void SKY_Gossip_Begin(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, const SKY_BlockInfo_t *block);
/** Act on a PURGE with the flag GOSSIP. */
void SKY_Gossip_Hear(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, const SKY_Packet_t *pkt);
/** Make the next word to a neighbour. A word that is not pulled waits for the next pull. */
bool SKY_Gossip_Next(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, SKY_Out_t *out);

#endif
