/**
 * @file
 * Hellos: packets that tell whether a neighbour is there, how far away it is, and whether it knows the same map.
 *
 * A satellite greets each neighbour over the link between them, once in a period, and is answered. Any packet from a neighbour shows
 * that it is there. A neighbour that is silent for SKY_HELLO_LOST periods counts as gone, and the link leaves the routes until the
 * neighbour is heard again. Both greeting and answer carry the sender's own link state and the digest of its map. If the digests
 * differ, each tells the other everything, once in a period. Without greetings nothing would repair a map, so there is none. News of
 * a link goes at once, without waiting for a greeting (sky_map.h).
 *
 * A link that goes down again and again stays down for a while after it has come back. The first SKY_HELLO_FLAPS_FREE times that it goes
 * down cost nothing. After that it is held down for 1 s, then 2 s, up to SKY_HELLO_HOLD_MOST_US. Once it has been up for SKY_HELLO_CALM_US
 * it starts from the beginning. So news of one link is bounded, however it flaps.
 *
 * Sans I/O: time comes in as an argument, and the caller sends what SKY_Hello_Next hands out.
 */
#ifndef SKY_HELLO_H
#define SKY_HELLO_H

#include "sky_router.h"

#define SKY_HELLO_LOST         3u        /**< periods in which nothing is heard of a neighbour until it counts as gone */
#define SKY_HELLO_WINDOW       16u       /**< measurements of which the smallest is kept */
#define SKY_HELLO_FLAPS_FREE   3u        /**< times that a link may go down before it is held down */
#define SKY_HELLO_HOLD_MOST_US 32000000u /**< longest time that it is held down */
#define SKY_HELLO_CALM_US      60000000u /**< a link that was up for so long is a good one again */
#define SKY_HELLO_BURST        4u        /**< packets of news over one link within SKY_HELLO_PAUSE_US; the rest follows */
#define SKY_HELLO_PAUSE_US     10000u
#define SKY_HELLO_MAX_BYTES    (SKY_HELLO_BYTES + SKY_LIMIT_LINK_STATES * SKY_LINK_STATE_BYTES) /**< of payload */

typedef struct
{
    bool     is_present; /**< the link exists */
    bool     is_cut;     /**< the link is not to be used */
    bool     is_silent;  /**< the neighbour was silent for too long */
    bool     is_due;     /**< a greeting is to be sent */
    bool     is_told;    /**< the neighbour was told everything in this period, because the digests differed */
    bool     heard_once;
    uint64_t heard_us;                    /**< time of the last packet from the neighbour, or of the start */
    uint64_t asked_id;                    /**< request id of the greeting on its way; 0: none */
    uint64_t asked_us;                    /**< time at which that greeting left */
    uint32_t mean_us;                     /**< smoothed one-way delay; 0: not measured */
    uint32_t sample_us[SKY_HELLO_WINDOW]; /**< one-way delays; 0: not measured yet */
    uint32_t samples;                     /**< delays measured so far */
    uint32_t flaps;                       /**< times that the link went down without a calm time before */
    uint64_t up_us;                       /**< time since which the link could be used */
    uint64_t held_us;                     /**< time until which the link is held down all the same */
    uint64_t burst_us;                    /**< begin of the burst of news */
    uint32_t burst;                       /**< packets in that burst */
} SKY_HelloLink_t;

typedef struct
{
    SKY_Router_t *router;    /**< router, whose map, if it has one, is told of changes */
    uint64_t      period_us; /**< period of greetings; 0: no greetings and no map, and every link that is not cut counts as up */
    uint64_t      due_us;    /**< time of the next greetings */
    SKY_HelloLink_t links[SKY_ISL_COUNT];
    uint64_t        refused; /**< hellos and link states that made no sense */
} SKY_Hello_t;

/** A packet to be sent over a link, to the neighbour there only. */
typedef struct
{
    SKY_LinkId_t link;
    SKY_Packet_t pkt; /**< its payload lies in @c payload */
    uint8_t      payload[SKY_HELLO_MAX_BYTES];
} SKY_HelloOut_t;

typedef enum
{
    SKY_HELLO_REFUSED = 0, /**< the packet is not from the neighbour on that link, or malformed */
    SKY_HELLO_TAKEN,
    SKY_HELLO_ANSWER /**< the packet was taken, and *out is to be sent as the answer */
} SKY_HelloResult_t;

/**
 * Begin. All links count as up, and all neighbours are greeted at once.
 * @param router     with torus, address and map; it stays in place, and loses the map if @p period_us is 0
 */
void SKY_Hello_Init(SKY_Hello_t *hello, SKY_Router_t *router, uint64_t now_us, uint64_t period_us);
/** Set a link as the tables or a command say. With greetings, a link that is no longer cut is up when its neighbour is heard. */
void SKY_Hello_SetLink(SKY_Hello_t *hello, uint64_t now_us, SKY_LinkId_t id, bool is_present, bool is_cut);
/** Greet a neighbour out of turn, if there are greetings and the link is not cut. */
void SKY_Hello_Greet(SKY_Hello_t *hello, SKY_LinkId_t id);
/** Note that something came from the neighbour over this link. */
void SKY_Hello_Heard(SKY_Hello_t *hello, uint64_t now_us, SKY_LinkId_t id);
/** Take in a decoded HELLO for this satellite, which came over @p ingress. @p out may be written in any case. */
SKY_HelloResult_t SKY_Hello_Begin(SKY_Hello_t *hello, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress,
                                  SKY_HelloOut_t *out);
/** Let time act: greetings that are due, neighbours that are silent, links that are held down. SKY_Hello_Next afterwards. */
void SKY_Hello_Poll(SKY_Hello_t *hello, uint64_t now_us);
/** Get the next packet to send. @return false if there is none now */
bool SKY_Hello_Next(SKY_Hello_t *hello, uint64_t now_us, SKY_HelloOut_t *out);
/** Return the time of the next SKY_Hello_Poll and SKY_Hello_Next, at the latest; UINT64_MAX: not before something happens. */
uint64_t SKY_Hello_NextDue(const SKY_Hello_t *hello);
/** Return the smallest of the last SKY_HELLO_WINDOW one-way delays, to which the machine's load adds nothing. 0: not measured. */
uint32_t SKY_Hello_MinUs(const SKY_HelloLink_t *link);

#endif
