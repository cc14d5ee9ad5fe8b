/**
 * @file
 * Endpoint: where a datagram comes from or goes to, as one number. Its lowest bits are the UDP port, the others the address. The
 * core only compares endpoints. The socket layers know what an address is: over IPv4, its 32 bits in host order.
 */
#ifndef SKY_ENDPOINT_H
#define SKY_ENDPOINT_H

#include <stdint.h>

#define SKY_ENDPOINT_PORT_BITS 16u

static inline uint64_t SKY_Endpoint_Of(uint32_t ipv4, uint16_t port)
{
    return (uint64_t)ipv4 << SKY_ENDPOINT_PORT_BITS | port;
}

/** Return the address. Whoever has it has all its ports. */
static inline uint64_t SKY_Endpoint_Address(uint64_t endpoint)
{
    return endpoint >> SKY_ENDPOINT_PORT_BITS;
}

/** Return the UDP port; 0 means that nobody can be answered there. */
static inline uint16_t SKY_Endpoint_Port(uint64_t endpoint)
{
    return (uint16_t)endpoint;
}

#endif
