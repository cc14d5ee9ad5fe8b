/**
 * @file
 * Timers of a fetch: what is lost, what is late, and when chunks are asked for again.
 */
#ifndef SKY_FETCH_TIMERS_H
#define SKY_FETCH_TIMERS_H

#include "sky_fetch.h"

/** Begin to wait for the answer to the newest request, which goes out now. */
void SKY_FetchTimers_Sent(SKY_Fetch_t *fetch, uint64_t now_us);
/** Take note of a packet of request @p number. */
void SKY_FetchTimers_Hear(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number);
/** Act on a packet of request @p number: every burst before it is over, and its own if the packet is the last. */
void SKY_FetchTimers_Burst(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number, bool is_last);
/** Set the timer anew, because something came. */
void SKY_FetchTimers_Wind(SKY_Fetch_t *fetch, uint64_t now_us);
/** Have a chunk that is on its way asked for again. */
void SKY_FetchTimers_AskAgain(SKY_Fetch_t *fetch, uint32_t index);
/** Act on the time that has passed, before the deadline of a fetch that runs. @return time of the next call */
uint64_t SKY_FetchTimers_Run(SKY_Fetch_t *fetch, uint64_t now_us);

#endif
