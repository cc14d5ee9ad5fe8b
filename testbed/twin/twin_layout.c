/**
 * @file
 * Where the fields of every structure lie that the binding in Python declares again.
 */
#include "twin.h"

#define ENTRY(structure, field, offset, size) \
    {                                         \
        structure, field, offset, size        \
    }
#define FIELD(type, field) ENTRY(#type, #field, offsetof(type, field), sizeof(((type *)0)->field))
#define WHOLE(type)        ENTRY(#type, NULL, 0, sizeof(type))

static const SKYT_Layout_t layouts[] = {
    WHOLE(SKYT_Config_t),
    FIELD(SKYT_Config_t, seed),
    FIELD(SKYT_Config_t, start_us),
    FIELD(SKYT_Config_t, planes),
    FIELD(SKYT_Config_t, slots),
    FIELD(SKYT_Config_t, seam_cut),
    FIELD(SKYT_Config_t, layout),
    FIELD(SKYT_Config_t, servers),
    FIELD(SKYT_Config_t, uplink),
    FIELD(SKYT_Config_t, hosts),
    FIELD(SKYT_Config_t, tenants),
    FIELD(SKYT_Config_t, slot_bytes),
    FIELD(SKYT_Config_t, slot_count),
    FIELD(SKYT_Config_t, packet_bytes),
    FIELD(SKYT_Config_t, credit),
    FIELD(SKYT_Config_t, part_lifetime_ms),
    FIELD(SKYT_Config_t, chunk_bytes),
    FIELD(SKYT_Config_t, block_bytes),
    FIELD(SKYT_Config_t, handover_ms),
    FIELD(SKYT_Config_t, active_max),
    FIELD(SKYT_Config_t, packets_max),
    FIELD(SKYT_Config_t, isl_kbps),
    FIELD(SKYT_Config_t, ground_kbps),
    FIELD(SKYT_Config_t, queue_ms),
    FIELD(SKYT_Config_t, gossip),
    FIELD(SKYT_Config_t, scrub_ms),
    FIELD(SKYT_Config_t, lazy_purge),
    FIELD(SKYT_Config_t, hello_ms),
    FIELD(SKYT_Config_t, chunk_us),

    WHOLE(SKYT_Block_t),
    FIELD(SKYT_Block_t, block_len),
    FIELD(SKYT_Block_t, epoch),

    WHOLE(SKYT_Op_t),
    FIELD(SKYT_Op_t, time_us),
    FIELD(SKYT_Op_t, kind),
    FIELD(SKYT_Op_t, block),
    FIELD(SKYT_Op_t, host),
    FIELD(SKYT_Op_t, deadline_ms),

    WHOLE(SKYT_Result_t),
    FIELD(SKYT_Result_t, ended),
    FIELD(SKYT_Result_t, cause),
    FIELD(SKYT_Result_t, duration_us),
    FIELD(SKYT_Result_t, tries),

    WHOLE(SKYT_Model_t),
    FIELD(SKYT_Model_t, loss_ppm),
    FIELD(SKYT_Model_t, burst_enter_ppm),
    FIELD(SKYT_Model_t, burst_leave_ppm),
    FIELD(SKYT_Model_t, burst_loss_ppm),
    FIELD(SKYT_Model_t, jitter_us),
    FIELD(SKYT_Model_t, reorder_ppm),
    FIELD(SKYT_Model_t, reorder_us),
    FIELD(SKYT_Model_t, duplicate_ppm),
    FIELD(SKYT_Model_t, flip_ppm),

    WHOLE(SKYT_Fault_t),
    FIELD(SKYT_Fault_t, time_us),
    FIELD(SKYT_Fault_t, kind),
    FIELD(SKYT_Fault_t, node),
    FIELD(SKYT_Fault_t, link),
    FIELD(SKYT_Fault_t, value),
    FIELD(SKYT_Fault_t, model),

    WHOLE(SKYT_Violation_t),
    FIELD(SKYT_Violation_t, time_us),
    FIELD(SKYT_Violation_t, invariant),
    FIELD(SKYT_Violation_t, node),
    FIELD(SKYT_Violation_t, op),
    FIELD(SKYT_Violation_t, block),
    FIELD(SKYT_Violation_t, chunk),
    FIELD(SKYT_Violation_t, text),

    WHOLE(SKYT_Counters_t),
    FIELD(SKYT_Counters_t, now_us),
    FIELD(SKYT_Counters_t, digest),
    FIELD(SKYT_Counters_t, events),
    FIELD(SKYT_Counters_t, packets),
    FIELD(SKYT_Counters_t, packet_bytes),
    FIELD(SKYT_Counters_t, packets_on_way),
    FIELD(SKYT_Counters_t, packets_on_way_most),
    FIELD(SKYT_Counters_t, lost),
    FIELD(SKYT_Counters_t, lost_burst),
    FIELD(SKYT_Counters_t, lost_cut),
    FIELD(SKYT_Counters_t, lost_queue),
    FIELD(SKYT_Counters_t, lost_dead),
    FIELD(SKYT_Counters_t, jittered),
    FIELD(SKYT_Counters_t, reordered),
    FIELD(SKYT_Counters_t, duplicated),
    FIELD(SKYT_Counters_t, flipped),
    FIELD(SKYT_Counters_t, damaged),
    FIELD(SKYT_Counters_t, cuts),
    FIELD(SKYT_Counters_t, crashes),
    FIELD(SKYT_Counters_t, pressures),
    FIELD(SKYT_Counters_t, late_clocks),
    FIELD(SKYT_Counters_t, puts),
    FIELD(SKYT_Counters_t, puts_failed),
    FIELD(SKYT_Counters_t, gets),
    FIELD(SKYT_Counters_t, hits),
    FIELD(SKYT_Counters_t, purges),
    FIELD(SKYT_Counters_t, misses),
    FIELD(SKYT_Counters_t, fallback_hits),
    FIELD(SKYT_Counters_t, handovers),
    FIELD(SKYT_Counters_t, migrated_chunks),
    FIELD(SKYT_Counters_t, migrated_bytes),
    FIELD(SKYT_Counters_t, handover_us),
    FIELD(SKYT_Counters_t, handover_most_us),
    FIELD(SKYT_Counters_t, evicted_chunks),
    FIELD(SKYT_Counters_t, expired_parts),
    FIELD(SKYT_Counters_t, stored_chunks),
    FIELD(SKYT_Counters_t, violations),
    FIELD(SKYT_Counters_t, blocks_checked),
    FIELD(SKYT_Counters_t, blocks_misplaced),
};

bool SKYT_Layout(uint32_t index, SKYT_Layout_t *layout)
{
    if (index >= sizeof(layouts) / sizeof(layouts[0]))
    {
        return false;
    }
    *layout = layouts[index];
    return true;
}
