/**
 * @file
 * The hashtable service: requests in, responses out, on top of the chunk store. Sans I/O: packets, time and randomness come in
 * as arguments; what is to be sent is pulled packet by packet, as head + body + tail, where the body of a GET lies in the store
 * itself.
 *
 *     SKY_Service_Begin(svc, now_us, &pkt);           for each packet at APID kvc
 *     while (SKY_Service_Next(svc, now_us, &out))     send it, or collect it and send the whole burst
 *
 *     SKY_Service_Poll(svc, now_us, &next_us);        after each batch of packets, and at next_us
 *     while (SKY_Service_Next(svc, now_us, &out))     as above
 *
 * Work per call is bounded: Begin looks up at most SKY_LIMIT_CHUNK_SET chunks or takes in one packet (an eviction or PURGE walks
 * over the chunks of one block, a MIGRATE of all blocks over the table of blocks); Next makes one packet; a burst is at most
 * `credit` chunks, and as many again for each migration. Besides, words of gossip (sky_service_gossip.c) go out with any pull, one
 * packet each, a question of the scrub (sky_service_scrub.c), and 16 of the survey (sky_service_survey.c).
 */
#ifndef SKY_SERVICE_H
#define SKY_SERVICE_H

#include "sky_service_state.h"

/**
 * @param store   belongs to this service from now on: nobody else changes it between Begin or Poll and the last Next
 * @param random  where request ids start
 * @return false: cfg is out of range, or does not fit the store
 */
bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random);
/** Take a new configuration over; counters and migrations go on. @return false: cfg is out of range, or is another satellite's */
bool SKY_Service_Configure(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg);
/**
 * Act on one packet for this satellite at APID kvc (request, or response to one of our migrations). What is to be sent is then
 * pulled by SKY_Service_Next until that returns false; what is not pulled is dropped by the next call of Begin or Poll.
 * A response is never answered, nor is gossip.
 *
 * While chunks of a block are being moved away (MIGRATE without KEEP, handover), another satellite is told that they are not held
 * here, and its PUTs of them are refused: BUSY, or REFUSED if it is itself the target and has the higher address. Otherwise two
 * that move the same chunks to each other could each let go of them on the word of the other.
 */
void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** @return true: @p out is to be sent. */
bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/**
 * Work that nobody asked for just now: migrations go on, parts expire, and with a schedule the handover begins when the window
 * has left this satellite. Call Next until false, then again at *next_us, or after the next packets. Cheap when there is nothing
 * to do; *next_us is then UINT64_MAX, with a schedule too while the store is empty.
 */
void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us);
/**
 * Follow a schedule, from the next Poll on. When a row begins, every chunk held here that belongs elsewhere in its window
 * (SKY_Schedule_Server of the chunk's server, chunk id modulo the number of servers) goes there, but for what waits: chunks of a
 * block of a later epoch that this row has here.
 * What comes late, and what an interruption has left (target silent, restart of either), is found at a later look. A handover ends
 * when it is done, when its target is silent, or when the window has moved on. A look walks over all chunks held; there is none
 * while everything is where it belongs. With SKY_LAYOUT_HOP nothing moves.
 * @param schedule  stays with the service and does not change meanwhile; NULL: none
 * @return false: it is for another constellation; the one before stays
 */
bool SKY_Service_SetSchedule(SKY_Service_t *svc, const SKY_Schedule_t *schedule);
/**
 * Send all blocks of all tenants to @p target, beginning with the next Poll: a handover that is ordered instead of scheduled. It
 * takes the handover's place. Of orders the last one counts: one that is under way to another satellite ends, and with this
 * satellite for a target what is still here stays.
 * @return OK: begun, going on already, or ended; BAD_ADDRESS; NOT_FOUND: nothing is held; REFUSED: a schedule holds, which would
 *         bring everything back
 */
SKY_Status_t SKY_Service_Evacuate(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t target);
/** Chunks held here that are to be handed over, as far as is known without looking: all, while the row is not begun. */
uint32_t SKY_Service_HandoverLeft(const SKY_Service_t *svc, uint64_t now_us);
/** How long the handover that goes on has lasted, in ms; 0: none goes on. */
uint64_t SKY_Service_HandoverMs(const SKY_Service_t *svc, uint64_t now_us);
/** Does a handover go on that is late? The first call that finds it late counts it, in @c handover. */
bool SKY_Service_HandoverIsLate(SKY_Service_t *svc, uint64_t now_us);
/**
 * There is no way from here to @p dst: what was asked of it or goes to it ends, as when another satellite on the way says so. Not
 * during a pull. Poll again soon: what it waited for may be due.
 */
void SKY_Service_Unreachable(SKY_Service_t *svc, SKY_Addr_t dst);
/** Count a packet that never became a request (SKY_Packet_Decode failed). */
void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status);
/** The counters of `stats.kvc`, SKY_STATS_KVC_COUNT of them. */
void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);
/** Counters of events become 0, those of the store too; what is in the store stays. */
void SKY_Service_ResetCounters(SKY_Service_t *svc);

#endif
