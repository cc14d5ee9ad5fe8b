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
 * over the chunks of one block, a MIGRATE of all blocks over the table of blocks, a satellite's PING over all chunks while some have to
 * go elsewhere); Next makes one packet; a burst is at most
 * `credit` chunks, and as many again for each migration. Besides, words of gossip (sky_service_gossip.c) go out with any pull, one
 * packet each, a question of the scrub (sky_service_scrub.c), 16 of the survey (sky_service_survey.c), one to each server or a chunk
 * (sky_service_census.c), one to a home (sky_service_hints.c) and one to a source (sky_service_arrivals.c).
 */
#ifndef SKY_SERVICE_H
#define SKY_SERVICE_H

#include "sky_service_state.h"

/**
 * Begin a service.
 * @param store   belongs to this service from now on: nobody else changes it between Begin or Poll and the last Next
 * @param random  start of request ids
 * @return false if cfg is out of range, or does not fit the store
 */
bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random);
/** Take a new configuration over; counters and migrations go on. @return false if cfg is out of range, or another satellite's */
bool SKY_Service_Configure(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg);
/**
 * Act on one packet for this satellite at APID kvc (request, or response to one of our migrations). What is to be sent is then
 * pulled by SKY_Service_Next until that returns false; what is not pulled is dropped by the next call of Begin or Poll.
 * A response is never answered, nor is gossip.
 *
 * While chunks of a block are being moved away (MIGRATE without KEEP, handover), another satellite is told that they are not held
 * here, and its PUTs of them are refused: BUSY, or REFUSED if it is itself the target and has the higher address. Otherwise two
 * satellites that move the same chunks to each other could each let go of them on the word of the other.
 */
void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** Get the next packet to send. @return false if there is none */
bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/**
 * Do work that no packet asks for: migrations go on, parts expire, and with a schedule the handover begins when the window has left
 * this satellite. Call Next until false, then again at *next_us, or after the next packets. Cheap when there is nothing
 * to do. A server asks every few seconds whether all that belongs to it has arrived; without a schedule and a window there is nothing to ask,
 * and *next_us is UINT64_MAX then.
 */
void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us);
/**
 * Follow a schedule, from the next Poll on. When a row begins, every chunk held here that belongs elsewhere in its window
 * (SKY_Schedule_Server of SKY_Spread_Server) goes there. Only chunks of a block of a later
 * epoch that this row has here wait.
 * Chunks that come late, or that an interruption has left (target silent, restart of either), are found at a later look. A handover ends
 * when it is done, when its target is silent, or when the window has moved on. A look walks over all chunks held; there is none
 * while everything is where it belongs. With SKY_LAYOUT_HOP nothing moves.
 * @param schedule  stays with the service and does not change meanwhile; NULL: none
 * @return false if it is for another constellation; the one before stays
 */
bool SKY_Service_SetSchedule(SKY_Service_t *svc, const SKY_Schedule_t *schedule);
/**
 * Tell in which window blocks lie while there is no schedule. Lost chunks of blocks with parity are rebuilt there, if enough others are
 * at their homes. Nothing moves by it and nothing is purged, so that hosts with other windows lose nothing.
 * @param window  a schedule of one row, which stays with the service and does not change meanwhile; NULL: none
 * @return false if it has more rows, or is for another constellation; the one before stays
 */
bool SKY_Service_SetWindow(SKY_Service_t *svc, const SKY_Schedule_t *window);
/**
 * Send all blocks of all tenants to @p target, beginning with the next Poll: a handover that is ordered instead of scheduled. It
 * takes the handover's place. The last order counts: one that is under way to another satellite ends, and with this
 * satellite as the target the chunks that are still here stay.
 * @return OK: begun, going on already, or ended; BAD_ADDRESS; NOT_FOUND: nothing is held; REFUSED: a schedule holds, which would
 *         bring everything back
 */
SKY_Status_t SKY_Service_Evacuate(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t target);
/** Return how many chunks here are to be handed over, as far as known without a look: all, while the row is not begun. */
uint32_t SKY_Service_HandoverLeft(const SKY_Service_t *svc, uint64_t now_us);
/** Return how long the current handover has lasted, in ms; 0 if none goes on. */
uint64_t SKY_Service_HandoverMs(const SKY_Service_t *svc, uint64_t now_us);
/** Return true if the current handover is late. The first call that finds it late counts it, in @c handover. */
bool SKY_Service_HandoverIsLate(SKY_Service_t *svc, uint64_t now_us);
/**
 * Note that no way leads from here to @p dst: questions and pushes to it end, as when another satellite on the way says so. Not
 * during a pull. Poll again soon: work that waited for it may be due.
 */
void SKY_Service_Unreachable(SKY_Service_t *svc, SKY_Addr_t dst);
/** Count a packet that never became a request (SKY_Packet_Decode failed). */
void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status);
/** Write the counters of `stats.kvc`, SKY_STATS_KVC_COUNT of them. */
void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);
/** Set counters of events to 0, those of the store too; the contents of the store stay. */
void SKY_Service_ResetCounters(SKY_Service_t *svc);

#endif
