/**
 * @file
 * Where a packet goes: to a service of this satellite, over one of the four ISLs, down to a ground host, or nowhere.
 *
 * A ground host is known to the satellites it talks to by the address its packets come from; those satellites are its gateways.
 * A request carries its gateway, so that a response from any satellite finds the way back. The table of ground hosts is small and
 * bounded; the one unheard for longest makes room.
 */
#ifndef SKY_ROUTER_H
#define SKY_ROUTER_H

#include "sky_torus.h"

#define SKY_ROUTER_GROUNDS 64u

typedef enum
{
    SKY_ROUTE_DELIVER = 0, /**< to the application of the APID */
    SKY_ROUTE_FORWARD,     /**< over link */
    SKY_ROUTE_GROUND,      /**< to endpoint */
    SKY_ROUTE_ANSWER,      /**< cannot be routed: send `status` back to where it came from */
    SKY_ROUTE_DROP
} SKY_RouteAction_t;

typedef struct
{
    SKY_RouteAction_t action;
    SKY_LinkId_t      link;
    uint64_t          endpoint;  /**< opaque: the socket layer's address of a ground host */
    uint8_t           hop_limit; /**< to write into the packet, with gateway: SKY_Packet_Relabel */
    SKY_Addr_t        gateway;
    SKY_Status_t      status;    /**< why it is answered or dropped */
} SKY_Route_t;

typedef struct
{
    uint16_t host;
    uint64_t endpoint;
    uint64_t heard_us;
    bool     used;
} SKY_Ground_t;

typedef struct
{
    uint64_t delivered, forwarded, to_ground;
    uint64_t drops[SKY_STATUS_SHORT + 1u]; /**< by status */
    uint64_t no_service;
} SKY_RouterCounters_t;

typedef struct
{
    SKY_Torus_t          torus;
    SKY_Addr_t           self;
    uint32_t             usable; /**< bit (1 << link) of each ISL that is up */
    SKY_Ground_t         grounds[SKY_ROUTER_GROUNDS];
    SKY_RouterCounters_t counters;
} SKY_Router_t;

/** @return false if @p self is not on the torus. */
bool SKY_Router_Init(SKY_Router_t *router, const SKY_Torus_t *torus, SKY_Addr_t self);
void SKY_Router_SetLinkUp(SKY_Router_t *router, SKY_LinkId_t link, bool up);
/**
 * Decide about a decoded packet that came in over @p ingress (SKY_LINK_GROUND with the sender's @p endpoint, an ISL, or
 * SKY_LINK_NONE for one of our own). Learns ground hosts from SKY_LINK_GROUND only: a request whose source says plane 0.
 * A packet from the ground that claims a satellite as its source is refused (BAD_ADDRESS); one that claims another gateway gets ours.
 */
void SKY_Router_Decide(SKY_Router_t *router, uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress, uint64_t endpoint,
                       SKY_Route_t *route);
/** Count a datagram that did not decode. */
void SKY_Router_CountDrop(SKY_Router_t *router, SKY_Status_t status);

#endif
