/**
 * @file
 * The core of the service: request ids, own requests, packets that leave, errors.
 */
#include "sky_service_core.h"

#include <string.h>

#include "sky_assert.h"

uint64_t SKY_ServiceCore_TakeIds(SKY_ServiceCore_t *core)
{
    const uint64_t first = core->next_request_id;

    core->next_request_id += SKY_REQUEST_IDS;
    return first;
}

void SKY_ServiceCore_Request(const SKY_ServiceCore_t *core, uint8_t op, SKY_Addr_t dst, uint64_t request_id, SKY_Packet_t *pkt)
{
    (void)memset(pkt, 0, sizeof(*pkt));
    pkt->is_request = true;
    pkt->apid       = SKY_APID_KVC;
    pkt->seq_flags  = SKY_SEQ_WHOLE;
    pkt->op         = op;
    pkt->hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt->src        = core->cfg.self;
    pkt->dst        = dst;
    pkt->request_id = request_id;
    SKY_ASSERT(SKY_Torus_Contains(&core->cfg.torus, dst));
    SKY_ASSERT(!SKY_Addr_Equal(dst, core->cfg.self)); /* no satellite asks itself */
}

void SKY_ServiceCore_Emit(SKY_ServiceCore_t *core, uint64_t now_us, SKY_Packet_t *pkt, const uint16_t *payload_crc16,
                          SKY_Out_t *out)
{
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, core->cfg.self));
    pkt->seq_count  = core->seq_count;
    core->seq_count = (uint16_t)((core->seq_count + 1u) & SKY_SEQ_COUNT_MASK);
    SKY_Packet_SetTime(pkt, now_us + core->cfg.clock_offset_us);

    out->pkt           = *pkt;
    out->has_crc16     = payload_crc16 != NULL;
    out->payload_crc16 = payload_crc16 != NULL ? *payload_crc16 : 0;
    SKY_ASSERT(core->seq_count <= SKY_SEQ_COUNT_MASK);
    SKY_ASSERT(pkt->length == 0 || pkt->payload != NULL);
    SKY_ASSERT(pkt->length + SKY_REQUEST_OVERHEAD <= core->cfg.packet_bytes); /* the links take such a packet */
    SKY_ASSERT(pkt->is_request || pkt->length + SKY_RESPONSE_OVERHEAD <= core->cfg.packet_bytes);
}

void SKY_ServiceCore_CountError(SKY_ServiceCore_t *core, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    if (status < SKY_STATUS_COUNT)
    {
        ++core->counters.errors[status];
    }
}
