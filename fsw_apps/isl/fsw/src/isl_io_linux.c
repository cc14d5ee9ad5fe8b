/**
 * @file
 * The socket of ISL on Linux: many packets a system call.
 *
 * Out: packets wait in a queue as head, body, tail; those that follow each other to the same endpoint with the same size leave as
 * one datagram train (UDP_SEGMENT), gathered by iovec straight from the store. In: recvmmsg, and trains are taken whole (UDP_GRO)
 * and cut here. Kernels and devices without these get the same packets one by one.
 */
#define _GNU_SOURCE 1 /* recvmmsg, sendmmsg, ppoll */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "isl_app.h"
#include "isl_eventids.h"
#include "isl_io.h"

/* The names of <linux/udp.h>; C libraries have defined them since about 2.28. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define ISL_IO_RX_MESSAGES 8u /* receive buffers for datagrams or trains */
#define ISL_IO_RX_PACKETS  1024u
#define ISL_IO_TX_PACKETS  64u
#define ISL_IO_TX_PARTS    3u
#define ISL_IO_TRAIN_MAX   64u    /* most packets of a train: every kernel with UDP_SEGMENT takes as many */
#define ISL_IO_TRAIN_BYTES 65000u /* most bytes of a train: the kernel takes it for one IP datagram */
#define ISL_IO_GIVE_UP     16u    /* refused trains in a row, until none is tried for a while: */
#define ISL_IO_RETRY       4096u  /* that many rounds of sending */

/* The control message of one train is aligned for struct cmsghdr, which begins with a size. */
typedef union
{
    size_t align;
    char   bytes[CMSG_SPACE(sizeof(int))];
} ISL_IO_Control_t;

typedef struct
{
    uint64_t       endpoint;
    uint64_t      *errors;
    const uint8_t *body; /* NULL: the body was copied behind the head */
    uint32_t       body_len;
    uint32_t       head_len;
    uint32_t       tail_len;
    uint32_t       len;
    uint8_t        bytes[SKY_NODE_HEAD_BYTES + SKY_NODE_COPY_BYTES]; /* head, or head and body; then the tail */
} ISL_IO_Waiting_t;

static struct
{
    int                socket;  /* -1: closed */
    bool               trains;  /* the kernel knows trains */
    bool               exact;   /* the I/O task is woken without the kernel's 50 us of slack */
    uint32_t           refused; /* refused trains in a row */
    uint32_t           pause;   /* rounds of sending still to go without trains */
    uint64_t           room_us; /* time left in this turn to wait for room */
    uint32_t           waiting;
    ISL_IO_Waiting_t   queue[ISL_IO_TX_PACKETS];
    struct mmsghdr     tx[ISL_IO_TX_PACKETS];
    struct iovec       tx_parts[ISL_IO_TX_PACKETS * ISL_IO_TX_PARTS];
    struct sockaddr_in tx_to[ISL_IO_TX_PACKETS];
    ISL_IO_Control_t   tx_control[ISL_IO_TX_PACKETS];
    uint32_t           tx_first[ISL_IO_TX_PACKETS]; /* first packet of each message in the queue */
    uint32_t           tx_count[ISL_IO_TX_PACKETS];
    struct mmsghdr     rx[ISL_IO_RX_MESSAGES];
    struct iovec       rx_part[ISL_IO_RX_MESSAGES];
    struct sockaddr_in rx_from[ISL_IO_RX_MESSAGES];
    ISL_IO_Control_t   rx_control[ISL_IO_RX_MESSAGES];
    ISL_IO_Packet_t    packets[ISL_IO_RX_PACKETS];
    uint8_t            rx_bytes[ISL_IO_RX_MESSAGES][ISL_IO_DATAGRAM_BYTES];
} ISL_IO = {.socket = -1};

/* ---- open, close, wait --------------------------------------------------------------------------------------------- */

static void ISL_IO_ToAddress(uint64_t endpoint, struct sockaddr_in *address)
{
    memset(address, 0, sizeof(*address));
    address->sin_family      = AF_INET;
    address->sin_addr.s_addr = htonl((uint32_t)SKY_Endpoint_Address(endpoint));
    address->sin_port        = htons(SKY_Endpoint_Port(endpoint));
}

CFE_Status_t ISL_IO_Open(uint32_t ipv4, uint16_t port)
{
    const int          on     = 1;
    const int          buffer = ISL_PLATFORM_SOCKET_BYTES;
    struct sockaddr_in address;
    int                fd;

    ISL_IO_ToAddress(SKY_Endpoint_Of(ipv4, port), &address);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
    {
        (void)CFE_EVS_SendEvent(ISL_SOCKET_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: no socket on %u.%u.%u.%u:%u: %s",
                                (unsigned)(ipv4 >> 24), (unsigned)(ipv4 >> 16) & 0xFFu, (unsigned)(ipv4 >> 8) & 0xFFu,
                                (unsigned)ipv4 & 0xFFu, (unsigned)port, strerror(errno));
        if (fd >= 0)
        {
            (void)close(fd);
        }
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    /* Set the options that help: the system may give less memory, and may not know trains. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
    ISL_IO.trains  = setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
    ISL_IO.exact   = false;
    ISL_IO.refused = 0;
    ISL_IO.pause   = 0;
    ISL_IO.waiting = 0;
    ISL_IO.socket  = fd;
    return CFE_SUCCESS;
}

void ISL_IO_Close(void)
{
    if (ISL_IO.socket >= 0)
    {
        (void)close(ISL_IO.socket);
        ISL_IO.socket = -1;
    }
}

ISL_IO_Event_t ISL_IO_Wait(uint64_t timeout_us)
{
    struct pollfd   waiting = {ISL_IO.socket, POLLIN, 0};
    struct timespec timeout;
    int             before;
    int             ready;

    if (!ISL_IO.exact) /* the slack of a thread would make emulated links that much slower, each way */
    {
        (void)prctl(PR_SET_TIMERSLACK, 1000uL, 0uL, 0uL, 0uL);
        ISL_IO.exact = true;
    }
    timeout.tv_sec  = (time_t)(timeout_us / 1000000u);
    timeout.tv_nsec = (long)(timeout_us % 1000000u) * 1000;
    /* To delete a task is to cancel a thread. Anywhere but here it would take the locks of others with it. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    ready = ppoll(&waiting, 1, &timeout, NULL);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (ready == 0 || (ready < 0 && errno == EINTR))
    {
        return ISL_IO_IDLE;
    }
    return (ready > 0 && (waiting.revents & POLLIN) != 0) ? ISL_IO_READABLE : ISL_IO_FAILED;
}

void ISL_IO_Turn(void)
{
    ISL_IO.room_us = ISL_PLATFORM_SEND_WAIT_MS * UINT64_C(1000);
}

/* ---- receive ------------------------------------------------------------------------------------------------------- */

/** Return the size of the packets in a received message: of each but the last, if it is a train. */
static uint32_t ISL_IO_SegmentBytes(struct msghdr *message, uint32_t len)
{
    struct cmsghdr *control;
    int             bytes = 0;

    for (control = CMSG_FIRSTHDR(message); control != NULL; control = CMSG_NXTHDR(message, control))
    {
        if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
        {
            memcpy(&bytes, CMSG_DATA(control), sizeof(bytes));
        }
    }
    return bytes > 0 ? (uint32_t)bytes : len;
}

static uint32_t ISL_IO_Cut(uint32_t message, uint32_t found)
{
    const uint32_t len     = ISL_IO.rx[message].msg_len;
    const uint32_t segment = ISL_IO_SegmentBytes(&ISL_IO.rx[message].msg_hdr, len);
    const uint64_t from =
        SKY_Endpoint_Of(ntohl(ISL_IO.rx_from[message].sin_addr.s_addr), ntohs(ISL_IO.rx_from[message].sin_port));
    uint32_t at = 0;

    do /* an empty datagram counts as well, as somebody's mistake */
    {
        const uint32_t left = len - at;

        ISL_IO.packets[found].endpoint = from;
        ISL_IO.packets[found].data     = &ISL_IO.rx_bytes[message][at];
        ISL_IO.packets[found].len      = left < segment ? left : segment;
        at += ISL_IO.packets[found].len;
        ++found;
    } while (at < len && found < ISL_IO_RX_PACKETS);
    return found;
}

uint32_t ISL_IO_Receive(const ISL_IO_Packet_t **packets)
{
    uint32_t found = 0;
    int      got;
    uint32_t i;

    for (i = 0; i < ISL_IO_RX_MESSAGES; ++i)
    {
        struct msghdr *const header = &ISL_IO.rx[i].msg_hdr;

        ISL_IO.rx_part[i].iov_base = ISL_IO.rx_bytes[i];
        ISL_IO.rx_part[i].iov_len  = sizeof(ISL_IO.rx_bytes[i]);
        header->msg_name           = &ISL_IO.rx_from[i];
        header->msg_namelen        = sizeof(ISL_IO.rx_from[i]);
        header->msg_iov            = &ISL_IO.rx_part[i];
        header->msg_iovlen         = 1;
        header->msg_control        = &ISL_IO.rx_control[i];
        header->msg_controllen     = sizeof(ISL_IO.rx_control[i]);
        header->msg_flags          = 0;
    }
    if (ISL_IO.socket < 0)
    {
        return 0;
    }
    got = recvmmsg(ISL_IO.socket, ISL_IO.rx, ISL_IO_RX_MESSAGES, MSG_DONTWAIT, NULL);
    for (i = 0; got > 0 && i < (uint32_t)got && found < ISL_IO_RX_PACKETS; ++i)
    {
        found = ISL_IO_Cut(i, found);
    }
    *packets = ISL_IO.packets;
    return found;
}

/* ---- send ---------------------------------------------------------------------------------------------------------- */

/** Count the packets of the queue from @p first on that can leave as one train. */
static uint32_t ISL_IO_TrainLength(uint32_t first)
{
    const ISL_IO_Waiting_t *const head  = &ISL_IO.queue[first];
    uint32_t                      bytes = head->len;
    uint32_t                      n     = 1;

    while (ISL_IO.trains && ISL_IO.pause == 0 && first + n < ISL_IO.waiting && n < ISL_IO_TRAIN_MAX)
    {
        const ISL_IO_Waiting_t *const next = &ISL_IO.queue[first + n];

        if (next->endpoint != head->endpoint || next->len > head->len || bytes + next->len > ISL_IO_TRAIN_BYTES)
        {
            break;
        }
        bytes += next->len;
        ++n;
        if (next->len < head->len)
        {
            break; /* only the last packet may be shorter */
        }
    }
    return n;
}

/** Describe packets @p first .. first + @p count - 1 as message @p message, its parts from @p part on. @return next free part */
static uint32_t ISL_IO_Describe(uint32_t message, uint32_t first, uint32_t count, uint32_t part)
{
    struct msghdr *const header     = &ISL_IO.tx[message].msg_hdr;
    const uint32_t       first_part = part;
    uint32_t             i;

    for (i = first; i < first + count; ++i)
    {
        ISL_IO_Waiting_t *const packet = &ISL_IO.queue[i];
        const bool              apart  = packet->body != NULL;

        ISL_IO.tx_parts[part].iov_base = packet->bytes;
        ISL_IO.tx_parts[part].iov_len  = apart ? packet->head_len : packet->len;
        ++part;
        if (apart)
        {
            ISL_IO.tx_parts[part].iov_base = (void *)packet->body; /* sendmsg does not write to the body */
            ISL_IO.tx_parts[part].iov_len  = packet->body_len;
            ++part;
            if (packet->tail_len > 0)
            {
                ISL_IO.tx_parts[part].iov_base = &packet->bytes[packet->head_len];
                ISL_IO.tx_parts[part].iov_len  = packet->tail_len;
                ++part;
            }
        }
    }
    ISL_IO_ToAddress(ISL_IO.queue[first].endpoint, &ISL_IO.tx_to[message]);
    memset(header, 0, sizeof(*header));
    header->msg_name    = &ISL_IO.tx_to[message];
    header->msg_namelen = sizeof(ISL_IO.tx_to[message]);
    header->msg_iov     = &ISL_IO.tx_parts[first_part];
    header->msg_iovlen  = part - first_part;
    if (count > 1)
    {
        const uint16_t  segment = (uint16_t)ISL_IO.queue[first].len;
        struct cmsghdr *control;

        header->msg_control    = &ISL_IO.tx_control[message];
        header->msg_controllen = CMSG_SPACE(sizeof(segment));
        control                = CMSG_FIRSTHDR(header);
        control->cmsg_level    = IPPROTO_UDP;
        control->cmsg_type     = UDP_SEGMENT;
        control->cmsg_len      = CMSG_LEN(sizeof(segment));
        memcpy(CMSG_DATA(control), &segment, sizeof(segment));
    }
    ISL_IO.tx_first[message] = first;
    ISL_IO.tx_count[message] = count;
    return part;
}

/** Send one message, waiting once for room while this turn has time for that. @return 0 or errno */
static int ISL_IO_SendMessage(const struct msghdr *message)
{
    struct pollfd room  = {ISL_IO.socket, POLLOUT, 0};
    int           error = sendmsg(ISL_IO.socket, message, MSG_DONTWAIT) >= 0 ? 0 : errno;

    if ((error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS) && ISL_IO.room_us > 0)
    {
        const uint64_t start_us = SKY_LIB_NowUs();
        const int      ready    = poll(&room, 1, (int)((ISL_IO.room_us + 999u) / 1000u));
        const uint64_t spent_us = SKY_LIB_NowUs() - start_us;

        ISL_IO.room_us -= spent_us < ISL_IO.room_us ? spent_us : ISL_IO.room_us;
        if (ready > 0)
        {
            error = sendmsg(ISL_IO.socket, message, MSG_DONTWAIT) >= 0 ? 0 : errno;
        }
    }
    return error;
}

/** Send the packets of a refused train one by one. @return those that were sent */
static uint32_t ISL_IO_SendSingly(uint32_t message, uint32_t first, uint32_t count)
{
    uint32_t sent = 0;
    uint32_t i;

    for (i = first; i < first + count; ++i)
    {
        /* Send one packet of a refused train. Its parts are described again, so nothing else may wait behind them: see
         * ISL_IO_SendQueue. */
        (void)ISL_IO_Describe(message, i, 1, 0);
        if (ISL_IO_SendMessage(&ISL_IO.tx[message].msg_hdr) == 0)
        {
            ++sent;
        }
        else
        {
            ++*ISL_IO.queue[i].errors;
        }
    }
    return sent;
}

/** Send a message again that sendmmsg would not take: a train that cannot be sent as one goes packet by packet. */
static void ISL_IO_SendRefused(uint32_t message)
{
    const uint32_t first = ISL_IO.tx_first[message];
    const uint32_t count = ISL_IO.tx_count[message];
    const int      error = ISL_IO_SendMessage(&ISL_IO.tx[message].msg_hdr);
    uint32_t       i;

    if (error != 0 && count > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE))
    {
        /* Trains are to blame only if the same packets go out without one: the address may be wrong instead. */
        if (ISL_IO_SendSingly(message, first, count) == count && ++ISL_IO.refused >= ISL_IO_GIVE_UP)
        {
            ISL_IO.refused = 0;
            ISL_IO.pause   = ISL_IO_RETRY;
        }
    }
    else if (error != 0)
    {
        for (i = first; i < first + count; ++i)
        {
            ++*ISL_IO.queue[i].errors;
        }
    }
}

static void ISL_IO_SendQueue(void)
{
    uint32_t next = 0;

    if (ISL_IO.waiting > 0 && ISL_IO.pause > 0)
    {
        --ISL_IO.pause;
    }
    /* Send all rounds. A refused message ends a round, because its parts are then written anew. Every round sends at least one
     * message. */
    while (next < ISL_IO.waiting)
    {
        uint32_t messages = 0;
        uint32_t part     = 0;
        uint32_t at       = next;
        int      sent;

        while (at < ISL_IO.waiting)
        {
            const uint32_t count = ISL_IO_TrainLength(at);

            part = ISL_IO_Describe(messages, at, count, part);
            at += count;
            ++messages;
        }
        sent = ISL_IO.socket >= 0 ? sendmmsg(ISL_IO.socket, ISL_IO.tx, messages, MSG_DONTWAIT) : -1;
        if (sent < 0)
        {
            sent = 0;
        }
        if ((uint32_t)sent < messages)
        {
            next = ISL_IO.tx_first[sent] + ISL_IO.tx_count[sent];
            ISL_IO_SendRefused((uint32_t)sent);
        }
        else
        {
            next           = ISL_IO.waiting;
            ISL_IO.refused = 0;
        }
    }
    ISL_IO.waiting = 0;
}

void ISL_IO_Flush(void)
{
    int before;

    /* Cancelling is off here, because a thread can be cancelled while it sends. The caller has the node's lock, and nobody would
     * give it back. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    ISL_IO_SendQueue();
    (void)pthread_setcancelstate(before, &before);
}

void ISL_IO_Send(uint64_t endpoint, const SKY_PacketParts_t *parts, uint64_t *errors)
{
    ISL_IO_Waiting_t *packet;
    const bool        copies = parts->body_len <= SKY_NODE_COPY_BYTES;
    uint8_t          *at;

    if (parts->head_len + parts->tail_len > SKY_NODE_HEAD_BYTES)
    {
        ++*errors;
        return;
    }
    if (ISL_IO.waiting == ISL_IO_TX_PACKETS)
    {
        ISL_IO_Flush();
    }
    packet           = &ISL_IO.queue[ISL_IO.waiting];
    packet->endpoint = endpoint;
    packet->errors   = errors;
    packet->body     = copies ? NULL : parts->body;
    packet->head_len = parts->head_len;
    packet->body_len = parts->body_len;
    packet->tail_len = parts->tail_len;
    packet->len      = parts->head_len + parts->body_len + parts->tail_len;
    at               = packet->bytes;
    if (parts->head_len > 0)
    {
        memcpy(at, parts->head, parts->head_len);
        at += parts->head_len;
    }
    if (copies && parts->body_len > 0)
    {
        memcpy(at, parts->body, parts->body_len);
        at += parts->body_len;
    }
    if (parts->tail_len > 0)
    {
        memcpy(at, parts->tail, parts->tail_len);
    }
    ++ISL_IO.waiting;
}
