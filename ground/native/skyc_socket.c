/**
 * @file
 * Socket of the transfer engine, for Linux: sendmmsg, recvmmsg, UDP_SEGMENT, UDP_GRO.
 */
#define _GNU_SOURCE
#include "skyc_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define RX_BYTES      65536u /* a bundle of datagrams is at most one IP packet */
#define TX_BUNDLE     60u    /* packets of a bundle; Linux takes 64, newer ones 128 */
#define TX_PATIENCE   20     /* times to wait 1 ms for room in the send buffer */
#define PACKET_PIECES 3u     /* pieces of a packet: head, payload, tail */
#define BUNDLE_PAUSE  4096u  /* flushes without bundles after the path refused one */
#define SEND_BYTES    (4u << 20)
#define RECEIVE_BYTES (8u << 20)

typedef union
{
    char   bytes[CMSG_SPACE(sizeof(int))];
    size_t align; /* for the alignment of struct cmsghdr */
} control_t;

typedef struct
{
    control_t control;
    uint32_t  first, packets; /* packets of the message in the queue */
    uint32_t  bytes;
    uint16_t  segment; /* bytes of each packet but the last */
    bool      closed;  /* the last packet is shorter, so none can follow */
} message_t;

struct SKYC_Socket
{
    int              fd, wake_fd;
    bool             bundle;
    bool             is_gone;
    uint32_t         bundle_pause; /* flushes to come without bundles */
    SKYC_Counters_t *counters;
    /* Packets to be sent. */
    uint32_t           packets, messages;
    uint8_t            heads[SKYC_TX_PACKETS][SKY_HEAD_MAX];
    uint8_t            tails[SKYC_TX_PACKETS][SKY_TAIL_MAX];
    uint8_t            payloads[SKYC_TX_PACKETS][SKY_CHUNKSET_MAX_BYTES];
    struct sockaddr_in to[SKYC_TX_PACKETS];
    struct iovec       iov[SKYC_TX_PACKETS][PACKET_PIECES];
    message_t          message[SKYC_TX_PACKETS];
    struct mmsghdr     tx[SKYC_TX_PACKETS];
    uint64_t           request_id[SKYC_TX_PACKETS];
    uint64_t           too_large[SKYC_TX_PACKETS]; /* request ids of packets that are too large */
    uint32_t           too_large_count;
    /* Packets received. */
    struct mmsghdr     rx[SKYC_RX_MESSAGES];
    struct sockaddr_in rx_from[SKYC_RX_MESSAGES];
    struct iovec       rx_iov[SKYC_RX_MESSAGES];
    control_t          rx_control[SKYC_RX_MESSAGES];
    uint8_t            rx_data[SKYC_RX_MESSAGES][RX_BYTES];
};

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* Set a buffer's size. The privileged option goes beyond the system's limit; without the privilege the limit is what we get. */
static void set_buffer(int fd, int force, int plain, uint32_t bytes)
{
    if (!set_option(fd, SOL_SOCKET, force, (int)bytes))
    {
        (void)set_option(fd, SOL_SOCKET, plain, (int)bytes);
    }
}

static bool socket_setup(SKYC_Socket_t *sock, const SKYC_Config_t *config)
{
    struct sockaddr_in local;
    int                got       = 0;
    socklen_t          len       = sizeof(got);
    socklen_t          local_len = sizeof(local);

    (void)memset(&local, 0, sizeof(local));
    local.sin_family      = AF_INET;
    local.sin_addr.s_addr = htonl(config->bind_ipv4);
    if (bind(sock->fd, (const struct sockaddr *)&local, sizeof(local)) != 0)
    {
        return false;
    }
    set_buffer(sock->fd, SO_RCVBUFFORCE, SO_RCVBUF, config->receive_bytes != 0 ? config->receive_bytes : RECEIVE_BYTES);
    set_buffer(sock->fd, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BYTES);
    if (getsockopt(sock->fd, SOL_SOCKET, SO_RCVBUF, &got, &len) != 0)
    {
        return false;
    }
    (void)set_option(sock->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    if (getsockname(sock->fd, (struct sockaddr *)&local, &local_len) != 0)
    {
        return false;
    }
    sock->counters->receive_buffer_bytes = (uint64_t)got;
    sock->counters->port                 = ntohs(local.sin_port);
    sock->bundle               = set_option(sock->fd, IPPROTO_UDP, UDP_SEGMENT, 0); /* 0 sets nothing: a test for bundles */
    sock->counters->rx_offload = set_option(sock->fd, IPPROTO_UDP, UDP_GRO, 1) ? 1 : 0;
    sock->counters->tx_offload = sock->bundle ? 1 : 0;
    return true;
}

SKYC_Socket_t *SKYC_Socket_Open(const SKYC_Config_t *config, SKYC_Counters_t *counters, int *error)
{
    SKYC_Socket_t *sock = calloc(1, sizeof(*sock));

    if (sock == NULL)
    {
        *error = ENOMEM;
        return NULL;
    }
    sock->counters = counters;
    sock->fd       = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sock->wake_fd  = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sock->fd < 0 || sock->wake_fd < 0 || !socket_setup(sock, config))
    {
        *error = errno;
        SKYC_Socket_Close(sock);
        return NULL;
    }
    for (uint32_t i = 0; i < SKYC_RX_MESSAGES; ++i)
    {
        sock->rx_iov[i].iov_base        = sock->rx_data[i];
        sock->rx_iov[i].iov_len         = RX_BYTES;
        sock->rx[i].msg_hdr.msg_iov     = &sock->rx_iov[i];
        sock->rx[i].msg_hdr.msg_iovlen  = 1;
        sock->rx[i].msg_hdr.msg_control = sock->rx_control[i].bytes;
        sock->rx[i].msg_hdr.msg_name    = &sock->rx_from[i];
    }
    return sock;
}

void SKYC_Socket_Close(SKYC_Socket_t *sock)
{
    if (sock->fd >= 0)
    {
        (void)close(sock->fd);
    }
    if (sock->wake_fd >= 0)
    {
        (void)close(sock->wake_fd);
    }
    free(sock);
}

uint8_t *SKYC_Socket_Payload(SKYC_Socket_t *sock)
{
    if (sock->packets == SKYC_TX_PACKETS)
    {
        SKYC_Socket_Flush(sock);
    }
    return sock->payloads[sock->packets];
}

/* Return true if a packet of @p bytes can go with the newest message: all packets of a bundle but the last have the same size. */
static bool message_takes(const SKYC_Socket_t *sock, const message_t *message, const struct sockaddr_in *to, uint32_t bytes)
{
    const struct sockaddr_in *there = &sock->to[message->first];

    return sock->bundle && sock->bundle_pause == 0 && !message->closed && there->sin_addr.s_addr == to->sin_addr.s_addr &&
           there->sin_port == to->sin_port && bytes <= message->segment && message->packets < TX_BUNDLE &&
           message->bytes + bytes <= SKY_LIMIT_PACKET_BYTES;
}

void SKYC_Socket_Add(SKYC_Socket_t *sock, SKYC_Endpoint_t to, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    if (sock->packets == SKYC_TX_PACKETS)
    {
        SKYC_Socket_Flush(sock);
    }
    const uint32_t at   = sock->packets;
    const size_t   head = SKY_Tag_EncodeAround(pkt, key, NULL, sock->heads[at], sock->tails[at]);
    const uint32_t size = (uint32_t)(head + pkt->length + SKY_Packet_TailBytes(pkt));

    if (head == 0)
    {
        ++sock->counters->tx_failed;
        return;
    }
    union
    {
        const uint8_t *in;
        void          *out;
    } payload = {pkt->payload}; /* struct iovec is not const-correct; sendmmsg only reads */

    sock->iov[at][0].iov_base = sock->heads[at];
    sock->iov[at][0].iov_len  = head;
    sock->iov[at][1].iov_base = payload.out;
    sock->iov[at][1].iov_len  = pkt->length;
    sock->iov[at][2].iov_base = sock->tails[at];
    sock->iov[at][2].iov_len  = SKY_Packet_TailBytes(pkt);
    sock->request_id[at]      = pkt->request_id;
    ++sock->packets;

    sock->to[at].sin_family      = AF_INET;
    sock->to[at].sin_addr.s_addr = htonl(to.ipv4);
    sock->to[at].sin_port        = htons(to.port);
    message_t *message           = sock->messages > 0 ? &sock->message[sock->messages - 1] : NULL;

    if (message == NULL || !message_takes(sock, message, &sock->to[at], size))
    {
        message          = &sock->message[sock->messages++];
        message->first   = at;
        message->packets = 0;
        message->bytes   = 0;
        message->segment = (uint16_t)size;
        message->closed  = false;
    }
    ++message->packets;
    message->bytes += size;
    message->closed = size < message->segment;
    ++sock->counters->tx_packets;
    sock->counters->tx_bytes += size;
}

static void message_header(SKYC_Socket_t *sock, message_t *message, struct msghdr *hdr)
{
    (void)memset(hdr, 0, sizeof(*hdr));
    hdr->msg_name    = &sock->to[message->first];
    hdr->msg_namelen = sizeof(sock->to[message->first]);
    hdr->msg_iov     = sock->iov[message->first];
    hdr->msg_iovlen  = (size_t)PACKET_PIECES * message->packets;
    if (message->packets > 1)
    {
        struct cmsghdr *cmsg;

        hdr->msg_control    = message->control.bytes;
        hdr->msg_controllen = CMSG_SPACE(sizeof(uint16_t));
        cmsg                = CMSG_FIRSTHDR(hdr);
        cmsg->cmsg_level    = IPPROTO_UDP;
        cmsg->cmsg_type     = UDP_SEGMENT;
        cmsg->cmsg_len      = CMSG_LEN(sizeof(uint16_t));
        (void)memcpy(CMSG_DATA(cmsg), &message->segment, sizeof(message->segment));
    }
}

/* Make each packet from message @p from on a message of its own, because the path did not take a bundle. */
static void socket_unbundle(SKYC_Socket_t *sock, uint32_t from)
{
    const uint32_t first = sock->message[from].first;

    sock->messages = from;
    for (uint32_t i = first; i < sock->packets; ++i)
    {
        message_t *message = &sock->message[sock->messages++];

        message->first   = i;
        message->packets = 1;
    }
}

static void socket_headers(SKYC_Socket_t *sock, uint32_t from)
{
    for (uint32_t m = from; m < sock->messages; ++m)
    {
        message_header(sock, &sock->message[m], &sock->tx[m].msg_hdr);
    }
}

static void socket_pause_bundles(SKYC_Socket_t *sock, uint32_t flushes)
{
    sock->bundle_pause         = flushes;
    sock->counters->tx_offload = sock->bundle && flushes == 0 ? 1 : 0;
}

/* Note an error after which the descriptor is none of ours any more. ENOTCONN: it is another socket's. */
static void note_error(SKYC_Socket_t *sock, int error)
{
    sock->is_gone = sock->is_gone || error == EBADF || error == ENOTSOCK || error == ENOTCONN;
}

/* Count a message that the system will not take. */
static void message_failed(SKYC_Socket_t *sock, const message_t *message, int error)
{
    sock->counters->tx_failed += message->packets;
    note_error(sock, error);
    if (error == EMSGSIZE && sock->too_large_count < SKYC_TX_PACKETS)
    {
        sock->too_large[sock->too_large_count++] = sock->request_id[message->first];
    }
}

void SKYC_Socket_Flush(SKYC_Socket_t *sock)
{
    uint32_t sent     = 0;
    int      patience = TX_PATIENCE;
    bool     in_doubt = false; /* a bundle was refused, maybe because it is one */

    if (sock->bundle_pause > 0 && sock->messages > 0)
    {
        socket_pause_bundles(sock, sock->bundle_pause - 1);
    }
    socket_headers(sock, 0);
    while (sent < sock->messages)
    {
        const int n = sendmmsg(sock->fd, &sock->tx[sent], sock->messages - sent, 0);

        ++sock->counters->tx_calls;
        if (n > 0)
        {
            sent += (uint32_t)n;
            if (in_doubt)
            {
                socket_pause_bundles(sock, BUNDLE_PAUSE);
                in_doubt = false;
            }
        }
        else if ((errno == EAGAIN || errno == ENOBUFS) && patience > 0)
        {
            struct pollfd pfd = {sock->fd, POLLOUT, 0};

            --patience;
            (void)poll(&pfd, 1, 1);
        }
        else if (sock->message[sent].packets > 1 && (errno == EIO || errno == EINVAL || errno == EMSGSIZE))
        {
            in_doubt = true;
            socket_unbundle(sock, sent);
            socket_headers(sock, sent);
        }
        else if (errno != EINTR)
        {
            in_doubt = false;
            message_failed(sock, &sock->message[sent], errno);
            ++sent;
        }
    }
    sock->packets  = 0;
    sock->messages = 0;
}

bool SKYC_Socket_IsGone(const SKYC_Socket_t *sock)
{
    return sock->is_gone;
}

bool SKYC_Socket_NextTooLarge(SKYC_Socket_t *sock, uint64_t *request_id)
{
    if (sock->too_large_count == 0)
    {
        return false;
    }
    *request_id = sock->too_large[--sock->too_large_count];
    return true;
}

/* Return the size of the datagrams of a bundle, or that of a message which is no bundle. */
static size_t message_segment(struct msghdr *hdr, size_t len)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(hdr); cmsg != NULL; cmsg = CMSG_NXTHDR(hdr, cmsg))
    {
        if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
        {
            int size = 0;

            (void)memcpy(&size, CMSG_DATA(cmsg), sizeof(size));
            return size > 0 ? (size_t)size : len;
        }
    }
    return len;
}

uint32_t SKYC_Socket_Receive(SKYC_Socket_t *sock, SKYC_OnDatagram_t on_datagram, void *context)
{
    for (uint32_t i = 0; i < SKYC_RX_MESSAGES; ++i)
    {
        sock->rx[i].msg_hdr.msg_controllen = sizeof(sock->rx_control[i].bytes);
        sock->rx[i].msg_hdr.msg_namelen    = sizeof(sock->rx_from[i]);
    }
    const int n = recvmmsg(sock->fd, sock->rx, SKYC_RX_MESSAGES, MSG_DONTWAIT, NULL);

    ++sock->counters->rx_calls;
    note_error(sock, n < 0 ? errno : 0);
    for (int i = 0; i < n; ++i)
    {
        const SKYC_Endpoint_t from    = {ntohl(sock->rx_from[i].sin_addr.s_addr), ntohs(sock->rx_from[i].sin_port)};
        const size_t          len     = sock->rx[i].msg_len;
        const size_t          segment = message_segment(&sock->rx[i].msg_hdr, len);

        for (size_t at = 0; at < len; at += segment)
        {
            const size_t bytes = len - at < segment ? len - at : segment;

            ++sock->counters->rx_packets;
            sock->counters->rx_bytes += bytes;
            on_datagram(context, from, &sock->rx_data[i][at], bytes);
        }
    }
    return n > 0 ? (uint32_t)n : 0;
}

bool SKYC_Socket_Wait(SKYC_Socket_t *sock, uint64_t timeout_us)
{
    struct pollfd         pfd[2]  = {{sock->fd, POLLIN, 0}, {sock->wake_fd, POLLIN, 0}};
    const struct timespec timeout = {(time_t)(timeout_us / 1000000u), (long)(timeout_us % 1000000u) * 1000};

    const int ready = ppoll(pfd, 2, &timeout, NULL);

    if (ready <= 0)
    {
        return ready == 0;
    }
    sock->is_gone = sock->is_gone || ((pfd[0].revents | pfd[1].revents) & POLLNVAL) != 0;
    if ((pfd[1].revents & POLLIN) != 0)
    {
        uint64_t count;

        (void)!read(sock->wake_fd, &count, sizeof(count)); /* the waker has left a flag; this only empties the counter */
    }
    return true;
}

void SKYC_Socket_Wake(SKYC_Socket_t *sock)
{
    const uint64_t one = 1;

    (void)!write(sock->wake_fd, &one, sizeof(one)); /* a write fails only when many wake-ups wait already */
}
