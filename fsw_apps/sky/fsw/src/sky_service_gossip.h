/**
 * @file
 * Private to the service: gossip about evicted blocks (sky_service_gossip.c).
 */
#ifndef SKY_SERVICE_GOSSIP_H
#define SKY_SERVICE_GOSSIP_H

#include "sky_service.h"

/** If the PUT at hand has evicted a block, its neighbours are to know. */
void SKY_Service_GossipEvicted(SKY_Service_t *svc, uint64_t now_us);
/** Begin a word: the rest of a block is of no use. Nothing happens unless the configuration has gossip. */
void SKY_Service_GossipBegin(SKY_Service_t *svc, uint64_t now_us, uint32_t tenant, const uint8_t *key);
/** Act on a PURGE with the flag GOSSIP. */
void SKY_Service_GossipHear(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** The next word to a neighbour. What is not pulled waits for the next pull. */
bool SKY_Service_GossipNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);

#endif
