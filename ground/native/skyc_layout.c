/**
 * @file
 * Where the fields of every structure lie that a binding declares again in its own language.
 */
#include "skyc.h"

#include "sky.h"

#define ENTRY(structure, field, offset, size) \
    {                                         \
        structure, field, offset, size        \
    }
#define FIELD(type, field) ENTRY(#type, #field, offsetof(type, field), sizeof(((type *)0)->field))
#define WHOLE(type)        ENTRY(#type, NULL, 0, sizeof(type))

static const SKYC_Layout_t layouts[] = {
    WHOLE(SKYC_Config_t),
    FIELD(SKYC_Config_t, packet_bytes),
    FIELD(SKYC_Config_t, window_max),
    FIELD(SKYC_Config_t, burst),
    FIELD(SKYC_Config_t, receive_bytes),
    FIELD(SKYC_Config_t, bind_ipv4),
    FIELD(SKYC_Config_t, host_number),
    FIELD(SKYC_Config_t, no_offload),

    WHOLE(SKYC_Satellite_t),
    FIELD(SKYC_Satellite_t, plane),
    FIELD(SKYC_Satellite_t, slot),
    FIELD(SKYC_Satellite_t, entry_plane),
    FIELD(SKYC_Satellite_t, entry_slot),
    FIELD(SKYC_Satellite_t, entry_ipv4),
    FIELD(SKYC_Satellite_t, entry_port),
    FIELD(SKYC_Satellite_t, reserved),

    WHOLE(SKYC_Block_t),
    FIELD(SKYC_Block_t, key),
    FIELD(SKYC_Block_t, tenant),
    FIELD(SKYC_Block_t, epoch),
    FIELD(SKYC_Block_t, block_len),
    FIELD(SKYC_Block_t, chunk_len),
    FIELD(SKYC_Block_t, chunk_total),
    FIELD(SKYC_Block_t, deadline_ms),
    FIELD(SKYC_Block_t, data),
    FIELD(SKYC_Block_t, servers),   /* NOLINT(bugprone-sizeof-expression): the size of the pointer is meant */
    FIELD(SKYC_Block_t, fallbacks), /* NOLINT(bugprone-sizeof-expression) */
    FIELD(SKYC_Block_t, server_count),
    FIELD(SKYC_Block_t, rounds),
    FIELD(SKYC_Block_t, state),
    FIELD(SKYC_Block_t, last_status),
    FIELD(SKYC_Block_t, failed_plane),
    FIELD(SKYC_Block_t, failed_slot),
    FIELD(SKYC_Block_t, chunks),
    FIELD(SKYC_Block_t, requests),
    FIELD(SKYC_Block_t, repeats),
    FIELD(SKYC_Block_t, duplicates),
    FIELD(SKYC_Block_t, corrupt),
    FIELD(SKYC_Block_t, bytes),
    FIELD(SKYC_Block_t, duration_us),

    WHOLE(SKYC_Counters_t),
    FIELD(SKYC_Counters_t, tx_packets),
    FIELD(SKYC_Counters_t, tx_bytes),
    FIELD(SKYC_Counters_t, tx_calls),
    FIELD(SKYC_Counters_t, tx_failed),
    FIELD(SKYC_Counters_t, rx_packets),
    FIELD(SKYC_Counters_t, rx_bytes),
    FIELD(SKYC_Counters_t, rx_calls),
    FIELD(SKYC_Counters_t, rx_bad),
    FIELD(SKYC_Counters_t, rx_stale),
    FIELD(SKYC_Counters_t, receive_buffer_bytes),
    FIELD(SKYC_Counters_t, tx_offload),
    FIELD(SKYC_Counters_t, rx_offload),
    FIELD(SKYC_Counters_t, host_number),

    WHOLE(SKYC_Served_t),
    FIELD(SKYC_Served_t, plane),
    FIELD(SKYC_Served_t, slot),
    FIELD(SKYC_Served_t, entry_plane),
    FIELD(SKYC_Served_t, entry_slot),
    FIELD(SKYC_Served_t, srtt_us),
    FIELD(SKYC_Served_t, chunks),
    FIELD(SKYC_Served_t, requests),
    FIELD(SKYC_Served_t, repeats),
    FIELD(SKYC_Served_t, bytes),
    FIELD(SKYC_Served_t, asked_us),
    FIELD(SKYC_Served_t, first_us),
    FIELD(SKYC_Served_t, last_us),

    WHOLE(SKYC_Progress_t),
    FIELD(SKYC_Progress_t, chunks_done),
    FIELD(SKYC_Progress_t, chunks_total),
    FIELD(SKYC_Progress_t, calls),

    WHOLE(SKY_Addr_t),
    FIELD(SKY_Addr_t, plane),
    FIELD(SKY_Addr_t, slot),

    WHOLE(SKY_Packet_t),
    FIELD(SKY_Packet_t, is_request),
    FIELD(SKY_Packet_t, apid),
    FIELD(SKY_Packet_t, seq_flags),
    FIELD(SKY_Packet_t, seq_count),
    FIELD(SKY_Packet_t, time_s),
    FIELD(SKY_Packet_t, time_subs),
    FIELD(SKY_Packet_t, op),
    FIELD(SKY_Packet_t, status),
    FIELD(SKY_Packet_t, flags),
    FIELD(SKY_Packet_t, hop_limit),
    FIELD(SKY_Packet_t, security),
    FIELD(SKY_Packet_t, credit),
    FIELD(SKY_Packet_t, src),
    FIELD(SKY_Packet_t, dst),
    FIELD(SKY_Packet_t, gateway),
    FIELD(SKY_Packet_t, tenant),
    FIELD(SKY_Packet_t, epoch),
    FIELD(SKY_Packet_t, deadline_ms),
    FIELD(SKY_Packet_t, request_id),
    FIELD(SKY_Packet_t, key),
    FIELD(SKY_Packet_t, chunk_id),
    FIELD(SKY_Packet_t, chunk_total),
    FIELD(SKY_Packet_t, block_len),
    FIELD(SKY_Packet_t, chunk_len),
    FIELD(SKY_Packet_t, offset),
    FIELD(SKY_Packet_t, length),
    FIELD(SKY_Packet_t, chunk_crc),
    FIELD(SKY_Packet_t, payload),
    FIELD(SKY_Packet_t, payload_crc16),

    WHOLE(SKY_Torus_t),
    FIELD(SKY_Torus_t, planes),
    FIELD(SKY_Torus_t, slots),
    FIELD(SKY_Torus_t, seam_cut),
};

bool SKYC_Layout(uint32_t index, SKYC_Layout_t *layout)
{
    if (index >= sizeof(layouts) / sizeof(layouts[0]))
    {
        return false;
    }
    *layout = layouts[index];
    return true;
}
