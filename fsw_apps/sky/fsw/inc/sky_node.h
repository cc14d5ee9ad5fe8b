/**
 * @file
 * A satellite's node: decides what becomes of each packet, which links are up, what it answers itself, and who may do what.
 *
 * Sans I/O. Time comes in as an argument, memory is handed in. The shell around it moves bytes: it calls SKY_Node_Receive for each
 * datagram and SKY_Node_Run when it is due, and offers a table of functions (SKY_NodeShell_t) through which the node sends
 * packets, finds the services of other apps and puts commands on the bus. Shells are the cFS app `isl` and the twin. After each batch of
 * datagrams SKY_Node_Run is due: until then a service may stay locked, and bodies wait to be sent.
 *
 * A packet whose endpoint is a neighbour's counts as having come over that ISL; all others are from the ground. Who may ask for what is
 * decided by sky_security.h. Without a master key whoever can forge a neighbour's address is that neighbour.
 */
#ifndef SKY_NODE_H
#define SKY_NODE_H

#include "sky_hello.h"
#include "sky_link.h"
#include "sky_security.h"
#include "sky_service.h"

#define SKY_NODE_SERVICES   4u    /**< places of services */
#define SKY_NODE_BURST_MAX  4096u /**< packets that one Begin or Poll of a service may cause; the rest is cut off and counted */
#define SKY_NODE_COPY_BYTES 1152u /**< a body of at most this size is copied by the shell's Send */
#define SKY_NODE_HEAD_BYTES 192u  /**< the longest head that the node sends */

/** A packet as parts, which follow each other. */
typedef struct
{
    const uint8_t *head;
    const uint8_t *body;
    const uint8_t *tail;
    uint32_t       head_len; /**< at most SKY_NODE_HEAD_BYTES, with tail_len */
    uint32_t       body_len;
    uint32_t       tail_len;
} SKY_PacketParts_t;

/** A service of this satellite. Packets for its APID go there. */
typedef struct
{
    void *context; /**< the first argument of all functions */
    /** Act on a packet. Its answers are pulled with Next until that returns false. */
    void (*Begin)(void *context, uint64_t now_us, const SKY_Packet_t *pkt);
    /** Get the next packet to send. Its body stays in place until the next Begin or Poll, or until the shell's Release. */
    bool (*Next)(void *context, uint64_t now_us, SKY_Out_t *out);
    /** Let time act. *next_us: time of the next Poll, UINT64_MAX for never. */
    void (*Poll)(void *context, uint64_t now_us, uint64_t *next_us);
    /** Count a packet for this APID that did not decode. */
    void (*Reject)(void *context, SKY_Status_t status);
    /** Note that no way leads from here to @p dst, to which the service sent. Never called within a pull. */
    void (*Unreachable)(void *context, SKY_Addr_t dst);
} SKY_NodeService_t;

/** Functions that the shell offers to the node. */
typedef struct
{
    void *context; /**< the first argument of all functions */
    /**
     * Send a packet over a link that is not cut. A body longer than SKY_NODE_COPY_BYTES stays in place until Flush.
     * @param endpoint  that of the neighbour, or of a ground host
     * @return false if the packet was dropped, and the shell has counted that in the counters of the link
     */
    bool (*Send)(void *context, uint64_t now_us, SKY_LinkId_t link, uint64_t endpoint, const SKY_PacketParts_t *parts);
    /** Send all waiting packets, so that their bodies may change. */
    void (*Flush)(void *context);
    /** Find the service of an APID and lock it, until Release. @return NULL if nobody serves it now; nothing is locked then */
    const SKY_NodeService_t *(*Acquire)(void *context, uint16_t apid);
    /** Do as Acquire by place, 0 .. SKY_NODE_SERVICES - 1. @param apid  receives the APID */
    const SKY_NodeService_t *(*AcquireAt)(void *context, uint32_t place, uint16_t *apid);
    void (*Release)(void *context);
    /** Put a relayed command on the bus of this satellite, if that is allowed. @return OK, or why it was not put there */
    SKY_Status_t (*Command)(void *context, const uint8_t *message, uint32_t len);
    /** Return the offset from the node's time to that of packets; add it modulo 2^64. */
    uint64_t (*ClockOffsetUs)(void *context);
} SKY_NodeShell_t;

typedef struct
{
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t drop_queue, drop_loss, drop_cut, drop_error;
} SKY_NodeLinkCounters_t;

/** One of the links north, east, south, west, ground. */
typedef struct
{
    bool                   is_present;
    SKY_Addr_t             peer;         /**< neighbour; {0, 0}: the ground */
    uint64_t               endpoint;     /**< endpoint of the neighbour */
    SKY_LinkModel_t        model;        /**< model that the shell emulates; the node uses `cut` only and reports the rest */
    uint32_t               queue_depth;  /**< packets that wait in the shell, which counts them here */
    uint64_t               cut_until_us; /**< end of a cut by command; 0: none */
    SKY_NodeLinkCounters_t counters;
    bool                   heard_once;
    uint64_t               heard_us; /**< time of the last packet over the link, or of the start */
} SKY_NodeLink_t;

/** A ground host to which telemetry is relayed for a while. */
typedef struct
{
    SKY_Addr_t host;
    SKY_Addr_t gateway;
    uint64_t   endpoint; /**< endpoint of the host; 0: it is behind its gateway */
    uint64_t   request_id;
    uint32_t   spi;      /**< association under which it asked; SKY_SPI_NONE: without one */
    uint64_t   until_us; /**< end of the lease; 0: the entry is free */
} SKY_NodeListener_t;

/** A command that was put on the bus. The number alone could belong to another one of a host that counts anew. */
typedef struct
{
    SKY_Addr_t host; /**< {0, 0}: none */
    uint64_t   request_id;
    uint32_t   crc;
} SKY_NodeRelayed_t;

/** Memory of a node. It stays in place. */
typedef struct
{
    uint32_t           *map; /**< memory of link states; used as far as the constellation needs */
    size_t              map_bytes;
    SKY_NodeListener_t *listeners;
    uint32_t            listener_count; /**< from 1 */
    SKY_NodeRelayed_t  *relayed;
    uint32_t            relayed_count; /**< from 1 */
} SKY_NodeMemory_t;

typedef struct
{
    bool       is_present;
    SKY_Addr_t addr;
    uint64_t   endpoint;
} SKY_NodeNeighbour_t;

typedef struct
{
    SKY_Addr_t          self;
    SKY_Torus_t         torus;
    uint32_t            packet_bytes; /**< largest packet that is forwarded */
    uint64_t            hello_us;     /**< period of greetings; 0: none, and no map */
    uint64_t            poll_most_us; /**< longest time between polls of services, to which their own apps give work too */
    uint64_t            lease_us;     /**< time for which a listener gets telemetry */
    SKY_NodeNeighbour_t neighbours[SKY_ISL_COUNT];
} SKY_NodeCfg_t;

typedef enum
{
    SKY_NODE_REFUSED = 0, /**< refused: the satellite is not on its torus; nothing has changed */
    SKY_NODE_MAPLESS, /**< configured without a map, which has no room for the constellation: the own links alone decide routes */
    SKY_NODE_CONFIGURED
} SKY_NodeResult_t;

typedef struct
{
    SKY_NodeShell_t  shell;
    SKY_NodeMemory_t memory;
    SKY_NodeCfg_t    cfg;
    SKY_Router_t     router;
    SKY_Map_t        map;
    SKY_Hello_t      hello;
    SKY_NodeLink_t   links[SKY_LINK_COUNT];
    uint64_t         started_us;
    uint64_t         poll_due_us;  /**< time of the next poll of services */
    uint64_t         undecoded;    /**< datagrams that did not decode */
    uint32_t         relayed_next; /**< place of the oldest command */
    uint32_t         relayed_up, relayed_down, relay_errors;
    uint16_t         seq_count;

    uint64_t asker; /**< endpoint of the ground host whose request is at hand; answers go straight there. 0: none */

    SKY_Security_t     *security;    /**< NULL: nobody is asked for a cookie or a tag */
    SKY_Association_t  *association; /**< that of the request at hand, under which it is answered; NULL: none */
    const SKY_TagKey_t *handshake;   /**< key of the handshake that is being sent; NULL: none */

    const SKY_NodeService_t *held; /**< the service that is locked; NULL: none */
    uint16_t                 held_apid;
    bool                     bodies_wait; /**< bodies in the service's memory are queued for sending */
} SKY_Node_t;

/** Begin a node without a configuration; call SKY_Node_Configure next. @return false if a table of the memory has no entries */
bool SKY_Node_Init(SKY_Node_t *node, const SKY_NodeShell_t *shell, const SKY_NodeMemory_t *memory);
/** Ask senders for cookies and, once it is keyed, for tags. @param security  stays with the node; NULL: ask nobody */
void SKY_Node_Secure(SKY_Node_t *node, SKY_Security_t *security);
/** Return true if the node serves nobody without a tag. */
static inline bool SKY_Node_IsKeyed(const SKY_Node_t *node)
{
    return node->security != NULL && node->security->is_keyed;
}
/** Take a configuration over; all functions below need one. Counters, listeners, known ground hosts and the map are kept if the
 *  satellite stays the same. */
SKY_NodeResult_t SKY_Node_Configure(SKY_Node_t *node, uint64_t now_us, const SKY_NodeCfg_t *cfg);
void             SKY_Node_ResetCounters(SKY_Node_t *node);

/** Take in a datagram from @p endpoint. It stays in place until a Flush; the node may change its bytes. */
void SKY_Node_Receive(SKY_Node_t *node, uint64_t now_us, uint8_t *data, uint32_t len, uint64_t endpoint);
/** Let time act: cuts, services, hellos. Call it after the last datagram of a batch, and at SKY_Node_NextDue. */
void SKY_Node_Run(SKY_Node_t *node, uint64_t now_us);
/** Return the time of the next SKY_Node_Run, at the latest. */
uint64_t SKY_Node_NextDue(const SKY_Node_t *node);
/** Poll all services at the next SKY_Node_Run: one has got work from elsewhere. */
void SKY_Node_Wake(SKY_Node_t *node);

/** Return the ISL over which packets of @p endpoint come, or SKY_LINK_GROUND. */
SKY_LinkId_t SKY_Node_LinkOf(const SKY_Node_t *node, uint64_t endpoint);
bool         SKY_Node_IsCut(const SKY_Node_t *node, SKY_LinkId_t id);
/** Return true if the link is there and not cut, and, for an ISL, the neighbour answers. */
bool SKY_Node_IsUp(const SKY_Node_t *node, SKY_LinkId_t id);
/** Set how a link is emulated. A cut link leaves the routes, and comes back when the neighbour is heard. */
void SKY_Node_SetModel(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, const SKY_LinkModel_t *model);
/**
 * Cut a link for @p seconds, or with 0 end such a cut. The last link that is up stays: nobody may be able to silence the satellite.
 * @return false: there is no such link, or it is the last one that is up
 */
bool SKY_Node_Cut(SKY_Node_t *node, uint64_t now_us, SKY_LinkId_t id, uint32_t seconds);

/** Send a telemetry message to all listeners, byte for byte. */
void     SKY_Node_Telemetry(SKY_Node_t *node, uint64_t now_us, const uint8_t *message, uint32_t len);
uint32_t SKY_Node_Listeners(const SKY_Node_t *node, uint64_t now_us);

#endif
