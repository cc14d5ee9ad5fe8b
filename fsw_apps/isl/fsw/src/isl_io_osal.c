/**
 * @file
 * The socket of ISL over OSAL: one packet a call, on any operating system that OSAL knows.
 */
#include <string.h>

#include "isl_app.h"
#include "isl_eventids.h"
#include "isl_io.h"

#define ISL_IO_IPV4_BYTES 4u
#define ISL_IO_NOWHERE    SIZE_MAX

static struct
{
    osal_id_t       socket;
    bool            open;
    size_t          ipv4_at; /* offset of the four address bytes in an OSAL address */
    OS_SockAddr_t   blank;
    ISL_IO_Packet_t packet;
    uint8_t         rx[ISL_IO_DATAGRAM_BYTES];
    uint8_t         tx[ISL_IO_DATAGRAM_BYTES];
} ISL_IO;

/** Find where an OSAL address has its bytes, by an address whose bytes are known: OSAL shows addresses as text only. */
static size_t ISL_IO_FindIpv4(OS_SockAddr_t *address)
{
    static const uint8_t probe[ISL_IO_IPV4_BYTES] = {201, 102, 53, 154};
    size_t               at;

    if (OS_SocketAddrInit(address, OS_SocketDomain_INET) != OS_SUCCESS ||
        OS_SocketAddrFromString(address, "201.102.53.154") != OS_SUCCESS ||
        address->ActualLength > sizeof(address->AddrData.Buffer))
    {
        return ISL_IO_NOWHERE;
    }
    for (at = 0; at + ISL_IO_IPV4_BYTES <= address->ActualLength; ++at)
    {
        if (memcmp(&address->AddrData.Buffer[at], probe, ISL_IO_IPV4_BYTES) == 0)
        {
            return at;
        }
    }
    return ISL_IO_NOWHERE;
}

static bool ISL_IO_ToAddress(uint64_t endpoint, OS_SockAddr_t *address)
{
    const uint64_t ipv4  = SKY_Endpoint_Address(endpoint);
    uint8_t *const bytes = &address->AddrData.Buffer[ISL_IO.ipv4_at];

    *address = ISL_IO.blank;
    bytes[0] = (uint8_t)(ipv4 >> 24);
    bytes[1] = (uint8_t)(ipv4 >> 16);
    bytes[2] = (uint8_t)(ipv4 >> 8);
    bytes[3] = (uint8_t)ipv4;
    return OS_SocketAddrSetPort(address, SKY_Endpoint_Port(endpoint)) == OS_SUCCESS;
}

static bool ISL_IO_FromAddress(const OS_SockAddr_t *address, uint64_t *endpoint)
{
    const uint8_t *const bytes = &address->AddrData.Buffer[ISL_IO.ipv4_at];
    uint16               port;

    if (OS_SocketAddrGetPort(&port, address) != OS_SUCCESS)
    {
        return false;
    }
    *endpoint =
        SKY_Endpoint_Of(((uint32_t)bytes[0] << 24) | ((uint32_t)bytes[1] << 16) | ((uint32_t)bytes[2] << 8) | bytes[3], port);
    return true;
}

CFE_Status_t ISL_IO_Open(uint32_t ipv4, uint16_t port)
{
    OS_SockAddr_t address;
    int32         status;

    memset(&ISL_IO, 0, sizeof(ISL_IO));
    ISL_IO.ipv4_at = ISL_IO_FindIpv4(&ISL_IO.blank);
    if (ISL_IO.ipv4_at == ISL_IO_NOWHERE || !ISL_IO_ToAddress(SKY_Endpoint_Of(ipv4, port), &address))
    {
        (void)CFE_EVS_SendEvent(ISL_SOCKET_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: OSAL has no IPv4 addresses");
        return CFE_STATUS_NOT_IMPLEMENTED;
    }
    status = OS_SocketOpen(&ISL_IO.socket, OS_SocketDomain_INET, OS_SocketType_DATAGRAM);
    if (status == OS_SUCCESS)
    {
        status = OS_SocketBind(ISL_IO.socket, &address);
        if (status != OS_SUCCESS)
        {
            (void)OS_close(ISL_IO.socket);
        }
    }
    if (status != OS_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(ISL_SOCKET_ERR_EID, CFE_EVS_EventType_ERROR, "ISL: no socket on %u.%u.%u.%u:%u, OSAL status %ld",
                                (unsigned)(ipv4 >> 24), (unsigned)(ipv4 >> 16) & 0xFFu, (unsigned)(ipv4 >> 8) & 0xFFu,
                                (unsigned)ipv4 & 0xFFu, (unsigned)port, (long)status);
        return CFE_STATUS_EXTERNAL_RESOURCE_FAIL;
    }
    ISL_IO.open = true;
    return CFE_SUCCESS;
}

void ISL_IO_Close(void)
{
    if (ISL_IO.open)
    {
        ISL_IO.open = false;
        (void)OS_close(ISL_IO.socket);
    }
}

ISL_IO_Event_t ISL_IO_Wait(uint64_t timeout_us)
{
    const uint64_t timeout_ms = (timeout_us + 999u) / 1000u;
    OS_FdSet       readable;
    int32          status;

    if (OS_SelectFdZero(&readable) != OS_SUCCESS || OS_SelectFdAdd(&readable, ISL_IO.socket) != OS_SUCCESS)
    {
        return ISL_IO_FAILED;
    }
    status = OS_SelectMultiple(&readable, NULL, (int32)timeout_ms);
    if (status == OS_SUCCESS)
    {
        return ISL_IO_READABLE;
    }
    return status == OS_ERROR_TIMEOUT ? ISL_IO_IDLE : ISL_IO_FAILED;
}

void ISL_IO_Turn(void)
{
    /* Sending does not wait here. */
}

uint32_t ISL_IO_Receive(const ISL_IO_Packet_t **packets)
{
    OS_SockAddr_t from;
    int32         len;

    if (!ISL_IO.open || OS_SocketAddrInit(&from, OS_SocketDomain_INET) != OS_SUCCESS)
    {
        return 0;
    }
    len = OS_SocketRecvFrom(ISL_IO.socket, ISL_IO.rx, sizeof(ISL_IO.rx), &from, OS_CHECK);
    if (len < 0 || !ISL_IO_FromAddress(&from, &ISL_IO.packet.endpoint))
    {
        return 0;
    }
    ISL_IO.packet.data = ISL_IO.rx;
    ISL_IO.packet.len  = (uint32_t)len;
    *packets           = &ISL_IO.packet;
    return 1;
}

void ISL_IO_Send(uint64_t endpoint, const SKY_PacketParts_t *parts, uint64_t *errors)
{
    const size_t  len = (size_t)parts->head_len + parts->body_len + parts->tail_len;
    OS_SockAddr_t to;
    uint8_t      *at = ISL_IO.tx;

    if (!ISL_IO.open || len > sizeof(ISL_IO.tx) || !ISL_IO_ToAddress(endpoint, &to))
    {
        ++*errors;
        return;
    }
    if (parts->head_len > 0)
    {
        memcpy(at, parts->head, parts->head_len);
        at += parts->head_len;
    }
    if (parts->body_len > 0)
    {
        memcpy(at, parts->body, parts->body_len);
        at += parts->body_len;
    }
    if (parts->tail_len > 0)
    {
        memcpy(at, parts->tail, parts->tail_len);
    }
    if (OS_SocketSendTo(ISL_IO.socket, ISL_IO.tx, len, &to) != (int32)len)
    {
        ++*errors;
    }
}

void ISL_IO_Flush(void)
{
    /* Nothing waits here, because OSAL takes one packet a call. */
}
