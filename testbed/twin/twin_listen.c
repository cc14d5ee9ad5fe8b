/**
 * @file
 * Telemetry: when a row begins, every satellite has something to tell, and a host begins to listen to one of the new window. The
 * host listens for a lease and does not renew it, so after that nothing may come any more. With keys that host is the mission.
 */
#include <string.h>

#include "twin_break.h"
#include "twin_priv.h"

#define LISTENER      1u                /* number of the host that listens */
#define REQUEST_ID    UINT64_MAX        /* a request id that belongs to no share */
#define ON_WAY_US     UINT64_C(5000000) /* longer than the request is on its way */
#define MESSAGE_BYTES 16u

/* Send a satellite's telemetry to whoever listens. */
static void tell(SKYT_Twin_t *twin, uint32_t index)
{
    static const uint8_t message[MESSAGE_BYTES];

    SKYT_Node_t   *node = &twin->nodes[index];
    const uint64_t told = node->core.relayed_down;

    SKYT_Break_Lease(twin, index);
    SKY_Node_Telemetry(&node->core, twin->now_us, message, sizeof(message));
    if (node->core.relayed_down != told && twin->now_us > node->listened_us + SKYT_LEASE_US + ON_WAY_US)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_LIFETIME, index, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                        "a satellite sends telemetry to a host whose lease has ended");
    }
}

/* Ask a satellite for its telemetry. */
static void listen_to(SKYT_Twin_t *twin, uint32_t index)
{
    uint8_t      head[SKY_HEAD_MAX];
    uint8_t      tail[SKY_TAIL_MAX];
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = SKY_OP_RELAY;
    pkt.flags      = SKY_FLAG_TLM;
    pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt.src.slot   = LISTENER;
    pkt.dst        = SKYT_AddrOf(twin, index);
    pkt.request_id = REQUEST_ID;

    const uint32_t     head_len = (uint32_t)SKY_Packet_EncodeAround(&pkt, NULL, head, tail);
    const SKYT_Parts_t parts    = {head, NULL, tail, head_len, 0, SKY_PEC_BYTES, SKYT_NONE};

    twin->nodes[index].listened_us = twin->now_us;
    SKYT_Network_Send(twin, twin->now_us, index, SKYT_LINK_UP, LISTENER, &parts);
}

void SKYT_Listen_Row(SKYT_Twin_t *twin)
{
    for (uint32_t index = 0; index < twin->node_count; ++index)
    {
        if (twin->nodes[index].is_up)
        {
            tell(twin, index);
        }
    }
    const uint32_t first = SKYT_NodeOf(twin, SKY_Schedule_Server(&twin->schedule, twin->row, 0));

    if (twin->mission != NULL)
    {
        twin->nodes[first].listened_us = twin->now_us;
        SKYT_Mission_Row(twin, first);
    }
    else
    {
        listen_to(twin, first);
    }
}
