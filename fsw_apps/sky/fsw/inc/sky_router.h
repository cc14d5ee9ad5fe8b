/**
 * @file
 * Router: decides whether a packet goes to a service of this satellite, over one of the four ISLs, down to a ground host, or nowhere.
 *
 * A ground host is reached at the address its packets come from; the satellites it talks to are its gateways. A packet
 * for a gateway itself is answered straight to its source. A packet that a gateway forwards carries the gateway's address, so that
 * a response from any satellite finds the way back, and teaches the gateway under which number the host is reached. Only the first
 * satellite writes the gateway, so a response has one destination and no loop to run in.
 *
 * The table of ground hosts is small and bounded; of the address that has most places the host unheard for longest makes room. So whoever
 * asks under many numbers, from whichever ports, takes places from nobody but hosts of his own address. A number stays with the endpoint that
 * was heard under it within SKY_ROUTER_GROUND_HOLD_US, so that a second user of it does not take away the responses of a host in
 * the middle of a transfer. An endpoint may have several numbers: were it held to one, a single packet with a forged source would
 * take its number away or lock it out. Who may be in the table is decided before (sky_node_guard.c): those whose cookie has shown that their
 * endpoint can be reached. With SKY_ROUTER_GROUNDS such addresses between two packets of a host somebody makes the table forget it until its
 * next one, and the first user of a number keeps others from it.
 */
#ifndef SKY_ROUTER_H
#define SKY_ROUTER_H

#include "sky_map.h"

#define SKY_ROUTER_GROUNDS        64u
#define SKY_ROUTER_GROUND_HOLD_US 10000000u /**< well above the longest pause between two attempts of a client */
#define SKY_ROUTER_SLACK          8u        /**< hops that a packet may take beyond the shortest way around what is down */

typedef enum
{
    SKY_ROUTE_DELIVER = 0, /**< deliver to the application of the APID */
    SKY_ROUTE_FORWARD,     /**< forward over link */
    SKY_ROUTE_GROUND,      /**< send to endpoint */
    SKY_ROUTE_ANSWER,      /**< answer a request that goes nowhere with `status` (ingress ground: straight to endpoint) */
    SKY_ROUTE_DROP         /**< drop a response, or a request whose sender nobody can name, without an answer */
} SKY_RouteAction_t;

typedef struct
{
    SKY_RouteAction_t action;
    SKY_LinkId_t      link;
    uint64_t          endpoint;  /**< opaque: the socket layer's address of a ground host. For GROUND; also for DELIVER and
                                      ANSWER of a packet from the ground, as answers go straight there. Else 0 */
    uint8_t           hop_limit; /**< hop limit to write into a forwarded packet, with gateway: SKY_Packet_Relabel */
    SKY_Addr_t   gateway; /**< gateway; a packet that is delivered or answered takes it too, so that its response finds home */
    SKY_Status_t status;  /**< reason for an answer or a drop */
} SKY_Route_t;

typedef struct
{
    uint16_t host;
    uint64_t endpoint;
    uint64_t heard_us;
    bool     used;
} SKY_RouterHost_t;

typedef struct
{
    uint64_t delivered, forwarded, to_ground;
    uint64_t drops[SKY_STATUS_COUNT]; /**< by status */
    uint64_t no_service;
} SKY_RouterCounters_t;

typedef struct
{
    SKY_Torus_t          torus;
    SKY_Addr_t           self;
    uint32_t             usable; /**< bit (1 << link) of each ISL that is up */
    SKY_Map_t           *map;    /**< NULL: none, only the own links are known */
    SKY_RouterHost_t     grounds[SKY_ROUTER_GROUNDS];
    SKY_RouterCounters_t counters;
} SKY_Router_t;

/** @return false if @p self is not on the torus. */
bool SKY_Router_Init(SKY_Router_t *router, const SKY_Torus_t *torus, SKY_Addr_t self);
/** Route by a map from now on. The map is of the same torus and satellite, and stays in place. */
void SKY_Router_SetMap(SKY_Router_t *router, SKY_Map_t *map);
/** Set an own link up or down, and tell the map, if there is one. */
void SKY_Router_SetLinkUp(SKY_Router_t *router, SKY_LinkId_t link, bool up);
/**
 * Decide about a decoded packet that came in over @p ingress (SKY_LINK_GROUND with the sender's @p endpoint, an ISL, or
 * SKY_LINK_NONE for an own packet; then @p endpoint, if not 0, is that of the ground host of a response, as an earlier
 * route->endpoint said, and the table is not asked).
 *
 * From the ground only requests are taken, from a host (plane 0, number from 1) to a satellite; they get this satellite as
 * gateway, whatever they claim. A forwarded request teaches the table where the host is. Refused: BAD_ADDRESS (source a
 * satellite or no host, destination no satellite), REFUSED (a response; to be forwarded under a number that another has).
 *
 * A packet is forwarded while its hop limit, which counts as SKY_LIMIT_HOP_LIMIT at most, is above 0. While nothing is down, it
 * goes by the paper's rule (SKY_Torus_NextHop). Once the map knows of a link that is down, it takes a shortest way around that, and if
 * there is none it is answered with UNREACHABLE at once. Its hop limit then is no more than that way and SKY_ROUTER_SLACK: satellites
 * that do not know the same yet cannot send it to and fro for long. Without a map the rule of SKY_Torus_NextHop is all there is.
 */
void SKY_Router_Decide(SKY_Router_t *router, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint,
                       SKY_Route_t *route);
/** Count a datagram that did not decode. */
void SKY_Router_CountDrop(SKY_Router_t *router, SKY_Status_t status);

#endif
