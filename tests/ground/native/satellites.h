/**
 * @file
 * Satellites to which a client really sends: services of the flight core behind sockets of their own, in one thread.
 */
#ifndef SATELLITES_H
#define SATELLITES_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"
#include "sky_host.h"

#define SATELLITES 2u

static rig_t           rigs[SATELLITES];
static int             sockets[SATELLITES];
static SKY_HostPlace_t servers[SATELLITES];
static bool            is_over;   /* atomic */
static uint32_t        undecoded; /* datagrams, atomic */

/* Before a satellite sends its responses. */
static void before_responses(uint32_t satellite);
/* A response, which this may change. Return false: it is lost. */
static bool passes(uint32_t satellite, rig_out_t *response);

static void serve(uint32_t i)
{
    static uint8_t     data[SKY_LIMIT_PACKET_BYTES];
    struct sockaddr_in from;
    socklen_t          from_len = sizeof(from);
    const ssize_t      len      = recvfrom(sockets[i], data, sizeof(data), 0, (struct sockaddr *)&from, &from_len);
    SKY_Packet_t       pkt;

    if (len <= 0 || SKY_Packet_Decode(data, (size_t)len, &pkt) != SKY_STATUS_OK)
    {
        (void)__atomic_add_fetch(&undecoded, 1, __ATOMIC_RELAXED);
        return;
    }
    if (pkt.op == SKY_OP_ASSOCIATE) /* there is no node here, which would answer */
    {
        static uint8_t bytes[SKY_RESPONSE_BYTES];
        SKY_Packet_t   reply;

        before_responses(i);
        SKY_Packet_Reply(&pkt, rigs[i].svc.core.cfg.self, SKY_STATUS_OK, &reply);
        (void)sendto(sockets[i], bytes, SKY_Packet_Encode(&reply, bytes, sizeof(bytes)), 0, (struct sockaddr *)&from, from_len);
        return;
    }
    rigs[i].now_us += 1000;
    SKY_Service_Begin(&rigs[i].svc, rigs[i].now_us, &pkt);
    rig_pull(&rigs[i]);
    if (rigs[i].count > 0)
    {
        before_responses(i);
    }
    for (uint32_t n = 0; n < rigs[i].count; ++n)
    {
        if (passes(i, &rigs[i].out[n]))
        {
            (void)sendto(sockets[i], rigs[i].out[n].bytes, rigs[i].out[n].len, 0, (struct sockaddr *)&from, from_len);
        }
    }
}

static void *fly(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
    {
        struct pollfd ready[SATELLITES];

        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            ready[i] = (struct pollfd){sockets[i], POLLIN, 0};
        }
        if (poll(ready, SATELLITES, 10) <= 0)
        {
            continue;
        }
        for (uint32_t i = 0; i < SATELLITES; ++i)
        {
            if ((ready[i].revents & POLLIN) != 0)
            {
                serve(i);
            }
        }
    }
    return NULL;
}

static pthread_t launch(void)
{
    pthread_t flight;

    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        struct sockaddr_in at     = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t          at_len = sizeof(at);

        rig_open(&rigs[i], (SKY_Addr_t){1, (uint16_t)(i + 1)}, 64, 1472);
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        CHECK(bind(sockets[i], (struct sockaddr *)&at, sizeof(at)) == 0);
        CHECK(getsockname(sockets[i], (struct sockaddr *)&at, &at_len) == 0);
        servers[i].plane       = 1;
        servers[i].slot        = (uint16_t)(i + 1);
        servers[i].endpoint    = (uint64_t)INADDR_LOOPBACK << 16 | ntohs(at.sin_port);
        servers[i].entry_plane = 1;
        servers[i].entry_slot  = (uint16_t)(i + 1);
    }
    CHECK(pthread_create(&flight, NULL, fly, NULL) == 0);
    return flight;
}

static void land(pthread_t flight)
{
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    (void)pthread_join(flight, NULL);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        (void)close(sockets[i]);
        free(rigs[i].memory);
    }
}

#endif
