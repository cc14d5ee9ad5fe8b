/**
 * @file
 * Sockets, select, clock, delay.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec_priv.h"

typedef struct
{
    uint32 id;
    int    fd;
    bool   bound;
} Stream_t;

CompileTimeAssert(sizeof(struct sockaddr_in6) <= OS_SOCKADDR_MAX_LEN, AddressFits);

static Stream_t net_streams[OS_MAX_NUM_OPEN_FILES];
static uint32   net_last;

void EXEC_SocketReset(void)
{
    for (uint32 i = 0; i < OS_MAX_NUM_OPEN_FILES; ++i)
    {
        if (net_streams[i].id != 0)
        {
            (void)close(net_streams[i].fd);
            net_streams[i].id = 0;
        }
    }
}

static Stream_t *Find(osal_id_t id)
{
    const uint32 index = EXEC_IdIndex(id.v, EXEC_ID_STREAM, OS_MAX_NUM_OPEN_FILES);
    return index != EXEC_NONE && net_streams[index].id == id.v ? &net_streams[index] : NULL;
}

static uint16 Family(const OS_SockAddr_t *address)
{
    struct sockaddr any;
    (void)memcpy(&any, &address->AddrData, sizeof any);
    return any.sa_family;
}

int32 OS_SocketAddrInit(OS_SockAddr_t *Addr, OS_SocketDomain_t Domain)
{
    if (Addr == NULL)
    {
        return OS_INVALID_POINTER;
    }
    struct sockaddr any;
    (void)memset(Addr, 0, sizeof *Addr);
    (void)memset(&any, 0, sizeof any);
    if (Domain == OS_SocketDomain_INET)
    {
        Addr->ActualLength = sizeof(struct sockaddr_in);
        any.sa_family      = AF_INET;
    }
    else if (Domain == OS_SocketDomain_INET6)
    {
        Addr->ActualLength = sizeof(struct sockaddr_in6);
        any.sa_family      = AF_INET6;
    }
    else
    {
        return OS_ERR_NOT_IMPLEMENTED;
    }
    (void)memcpy(&Addr->AddrData, &any, sizeof any);
    return OS_SUCCESS;
}

int32 OS_SocketAddrFromString(OS_SockAddr_t *Addr, const char *string)
{
    if (Addr == NULL || string == NULL)
    {
        return OS_INVALID_POINTER;
    }
    const uint16 family = Family(Addr);
    const size_t at     = family == AF_INET ? offsetof(struct sockaddr_in, sin_addr) : offsetof(struct sockaddr_in6, sin6_addr);
    if (family != AF_INET && family != AF_INET6)
    {
        return OS_ERR_BAD_ADDRESS;
    }
    return inet_pton(family, string, &Addr->AddrData.Buffer[at]) == 1 ? OS_SUCCESS : OS_ERROR;
}

/* Both families have the port at the same place. */
CompileTimeAssert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), PortAtSamePlace);
#define PORT_AT offsetof(struct sockaddr_in, sin_port)

int32 OS_SocketAddrGetPort(uint16 *PortNum, const OS_SockAddr_t *Addr)
{
    if (PortNum == NULL || Addr == NULL)
    {
        return OS_INVALID_POINTER;
    }
    if (Family(Addr) != AF_INET && Family(Addr) != AF_INET6)
    {
        return OS_ERR_BAD_ADDRESS;
    }
    *PortNum = (uint16)((Addr->AddrData.Buffer[PORT_AT] << 8) | Addr->AddrData.Buffer[PORT_AT + 1]);
    return OS_SUCCESS;
}

int32 OS_SocketAddrSetPort(OS_SockAddr_t *Addr, uint16 PortNum)
{
    if (Addr == NULL)
    {
        return OS_INVALID_POINTER;
    }
    if (Family(Addr) != AF_INET && Family(Addr) != AF_INET6)
    {
        return OS_ERR_BAD_ADDRESS;
    }
    Addr->AddrData.Buffer[PORT_AT]     = (uint8)(PortNum >> 8);
    Addr->AddrData.Buffer[PORT_AT + 1] = (uint8)(PortNum & 0xFFu);
    return OS_SUCCESS;
}

int32 OS_SocketOpen(osal_id_t *sock_id, OS_SocketDomain_t Domain, OS_SocketType_t Type)
{
    if (sock_id == NULL)
    {
        return OS_INVALID_POINTER;
    }
    if ((Domain != OS_SocketDomain_INET && Domain != OS_SocketDomain_INET6) || Type != OS_SocketType_DATAGRAM)
    {
        return OS_ERR_NOT_IMPLEMENTED; /* streams are not offered */
    }
    const int on = 1;
    const int fd = socket(Domain == OS_SocketDomain_INET ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
    {
        return OS_ERROR;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
                     sizeof on); /* as in OSAL, a second socket on a port steals it and does not fail */
    EXEC_Lock();
    const uint32 id = EXEC_IdNext(net_last, EXEC_ID_STREAM, &net_streams[0].id, sizeof net_streams[0], OS_MAX_NUM_OPEN_FILES);
    if (id != 0)
    {
        Stream_t *stream = &net_streams[EXEC_IdIndex(id, EXEC_ID_STREAM, OS_MAX_NUM_OPEN_FILES)];
        stream->fd       = fd;
        stream->bound    = false;
        stream->id       = id;
        net_last         = id;
        sock_id->v       = id;
    }
    EXEC_Unlock();
    if (id == 0)
    {
        (void)close(fd);
        return OS_ERR_NO_FREE_IDS;
    }
    return OS_SUCCESS; /* cppcheck-suppress resourceLeak ; the record has it */
}

int32 OS_SocketBind(osal_id_t sock_id, const OS_SockAddr_t *Addr)
{
    if (Addr == NULL)
    {
        return OS_INVALID_POINTER;
    }
    Stream_t *stream = Find(sock_id);
    if (stream == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    if (stream->bound)
    {
        return OS_ERR_INCORRECT_OBJ_STATE;
    }
    if (bind(stream->fd, (const struct sockaddr *)(const void *)&Addr->AddrData, (socklen_t)Addr->ActualLength) != 0)
    {
        return OS_ERROR;
    }
    stream->bound = true;
    return OS_SUCCESS;
}

int32 OS_SocketRecvFrom(osal_id_t sock_id, void *buffer, size_t buflen, OS_SockAddr_t *RemoteAddr, int32 timeout)
{
    if (buffer == NULL)
    {
        return OS_INVALID_POINTER;
    }
    const Stream_t *stream = Find(sock_id);
    if (stream == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    struct pollfd wait  = {stream->fd, POLLIN, 0};
    const int     ready = poll(&wait, 1, timeout < 0 ? -1 : timeout);
    if (ready <= 0)
    {
        return ready == 0 || errno == EINTR ? OS_ERROR_TIMEOUT : OS_ERROR;
    }
    socklen_t        length = OS_SOCKADDR_MAX_LEN;
    struct sockaddr *from   = RemoteAddr != NULL ? (struct sockaddr *)(void *)&RemoteAddr->AddrData : NULL;
    const ssize_t    got    = recvfrom(stream->fd, buffer, buflen, MSG_DONTWAIT, from, from != NULL ? &length : NULL);
    if (got < 0)
    {
        return errno == EAGAIN || errno == EWOULDBLOCK ? OS_QUEUE_EMPTY : OS_ERROR;
    }
    if (RemoteAddr != NULL)
    {
        RemoteAddr->ActualLength = length;
    }
    return (int32)got;
}

int32 OS_SocketSendTo(osal_id_t sock_id, const void *buffer, size_t buflen, const OS_SockAddr_t *RemoteAddr)
{
    if (buffer == NULL || RemoteAddr == NULL)
    {
        return OS_INVALID_POINTER;
    }
    if (buflen == 0)
    {
        return OS_ERR_INVALID_SIZE;
    }
    const Stream_t *stream = Find(sock_id);
    if (stream == NULL)
    {
        return OS_ERR_INVALID_ID;
    }
    const ssize_t sent =
        sendto(stream->fd, buffer, buflen, MSG_DONTWAIT, (const struct sockaddr *)(const void *)&RemoteAddr->AddrData,
               (socklen_t)RemoteAddr->ActualLength);
    return sent < 0 ? OS_ERROR : (int32)sent;
}

int32 OS_close(osal_id_t filedes)
{
    int fd = -1;
    EXEC_Lock();
    Stream_t *stream = Find(filedes);
    if (stream != NULL)
    {
        fd         = stream->fd;
        stream->id = 0;
    }
    EXEC_Unlock();
    if (fd < 0)
    {
        return OS_ERR_INVALID_ID;
    }
    (void)close(fd);
    return OS_SUCCESS;
}

/* -------------------------------------------------------------------------------------------------------------- select */

int32 OS_SelectFdZero(OS_FdSet *Set)
{
    if (Set == NULL)
    {
        return OS_INVALID_POINTER;
    }
    (void)memset(Set, 0, sizeof *Set);
    return OS_SUCCESS;
}

int32 OS_SelectFdAdd(OS_FdSet *Set, osal_id_t objid)
{
    const Stream_t *stream = Find(objid);
    if (Set == NULL || stream == NULL)
    {
        return Set == NULL ? OS_INVALID_POINTER : OS_ERR_INVALID_ID;
    }
    const uint32 index         = (uint32)(stream - net_streams);
    Set->object_ids[index / 8] = (uint8)(Set->object_ids[index / 8] | (1u << (index % 8)));
    return OS_SUCCESS;
}

static bool InSet(const OS_FdSet *set, uint32 index)
{
    return set != NULL && (set->object_ids[index / 8] & (1u << (index % 8))) != 0;
}

bool OS_SelectFdIsSet(const OS_FdSet *Set, osal_id_t objid)
{
    const Stream_t *stream = Find(objid);
    return stream != NULL && InSet(Set, (uint32)(stream - net_streams));
}

int32 OS_SelectMultiple(OS_FdSet *ReadSet, OS_FdSet *WriteSet, int32 msecs)
{
    struct pollfd waits[OS_MAX_NUM_OPEN_FILES];
    uint32        streams[OS_MAX_NUM_OPEN_FILES];
    nfds_t        count = 0;
    for (uint32 i = 0; i < OS_MAX_NUM_OPEN_FILES; ++i)
    {
        const int events = (InSet(ReadSet, i) ? POLLIN : 0) | (InSet(WriteSet, i) ? POLLOUT : 0);
        if (events != 0 && net_streams[i].id != 0)
        {
            waits[count].fd      = net_streams[i].fd;
            waits[count].events  = (short)events;
            waits[count].revents = 0;
            streams[count]       = i;
            ++count;
        }
    }
    if (count == 0)
    {
        return OS_ERR_INVALID_ID;
    }
    const int ready = poll(waits, count, msecs < 0 ? -1 : msecs);
    if (ready < 0)
    {
        return errno == EINTR ? OS_ERROR_TIMEOUT : OS_ERROR;
    }
    if (ReadSet != NULL)
    {
        (void)OS_SelectFdZero(ReadSet);
    }
    if (WriteSet != NULL)
    {
        (void)OS_SelectFdZero(WriteSet);
    }
    for (nfds_t i = 0; i < count; ++i)
    {
        const uint8 bit = (uint8)(1u << (streams[i] % 8));
        if (ReadSet != NULL && (waits[i].events & POLLIN) != 0 && (waits[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0)
        {
            ReadSet->object_ids[streams[i] / 8] = (uint8)(ReadSet->object_ids[streams[i] / 8] | bit);
        }
        if (WriteSet != NULL && (waits[i].revents & POLLOUT) != 0)
        {
            WriteSet->object_ids[streams[i] / 8] = (uint8)(WriteSet->object_ids[streams[i] / 8] | bit);
        }
    }
    return ready == 0 ? OS_ERROR_TIMEOUT : OS_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------- time */

int32 OS_GetMonotonicTime(OS_time_t *time_struct)
{
    if (time_struct == NULL)
    {
        return OS_INVALID_POINTER;
    }
    time_struct->ticks = EXEC_NowNs() / OS_TIME_TICK_RESOLUTION_NS;
    return OS_SUCCESS;
}

int32 OS_TaskDelay(uint32 millisecond)
{
    const int64           until = EXEC_NowNs() + (int64)millisecond * 1000000;
    const struct timespec at    = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    int                   rc    = EINTR;
    while (rc == EINTR)
    {
        rc = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    return rc == 0 ? OS_SUCCESS : OS_ERROR;
}
