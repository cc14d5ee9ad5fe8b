"""C structures of the flight software as ctypes sees them: telemetry, command payloads, tables, headers.

Fields are named as in C, in Python's manner. All are in the byte order of the processor, as cFS telemetry is; x86-64 and
aarch64 are both little-endian. A test holds sizes and offsets against the compiled library.
"""

from ctypes import LittleEndianStructure, c_char, c_int32, c_uint8, c_uint16, c_uint32, c_uint64

KEY_BYTES = 32
SEGMENT_ROWS = 1362
"""rows of one table KVC.Schedule1 .. KVC.Schedule4"""
COMMAND_ROWS = 83
"""rows of one command SCHEDULE_ROWS"""
NEIGHBOURS = ("north", "east", "south", "west")
LINKS = (*NEIGHBOURS, "ground")


class CommandHeader(LittleEndianStructure):
    """CFE_MSG_CommandHeader_t: CCSDS primary header, function code, checksum."""

    _fields_ = (("primary", c_uint8 * 6), ("function_code", c_uint8), ("checksum", c_uint8))


class TelemetryHeader(LittleEndianStructure):
    """CFE_MSG_TelemetryHeader_t: CCSDS primary header, time, spare."""

    _fields_ = (("primary", c_uint8 * 6), ("time", c_uint8 * 6), ("spare", c_uint8 * 4))


class EventPacketId(LittleEndianStructure):
    """CFE_EVS_PacketID_t: who sent the event."""

    app_name: bytes
    event_id: int
    event_type: int
    spacecraft_id: int
    processor_id: int
    _fields_ = (
        ("app_name", c_char * 20),
        ("event_id", c_uint16),
        ("event_type", c_uint16),
        ("spacecraft_id", c_uint32),
        ("processor_id", c_uint32),
    )


class EventPayload(LittleEndianStructure):
    """CFE_EVS_LongEventTlm_Payload_t: an event."""

    packet_id: EventPacketId
    message: bytes
    _fields_ = (("packet_id", EventPacketId), ("message", c_char * 122), ("padding", c_uint8 * 2))


class KvcPurgeBlock(LittleEndianStructure):
    """KVC_PurgeBlock_Payload_t: command to forget one block."""

    _fields_ = (("tenant", c_uint32), ("key", c_uint8 * KEY_BYTES))


class KvcScheduleRow(LittleEndianStructure):
    """KVC_ScheduleRow_t: from `time_ms` after the schedule's epoch on, the window's unrolled centre."""

    time_ms: int
    plane: int
    slot: int
    _fields_ = (("time_ms", c_uint32), ("plane", c_int32), ("slot", c_int32))


class KvcScheduleBegin(LittleEndianStructure):
    """KVC_ScheduleBegin_Payload_t: command that begins the upload of a schedule whose epoch was `age_ms` ago."""

    _fields_ = (
        ("id", c_uint32),
        ("age_ms", c_int32),
        ("planes", c_uint32),
        ("slots", c_uint32),
        ("layout", c_uint32),
        ("servers", c_uint32),
        ("total_rows", c_uint32),
    )


class KvcScheduleRows(LittleEndianStructure):
    """KVC_ScheduleRows_Payload_t: command with `row_count` rows, the first of them number `first_row`, from 1."""

    _fields_ = (("id", c_uint32), ("first_row", c_uint32), ("row_count", c_uint32), ("row", KvcScheduleRow * COMMAND_ROWS))


class KvcScheduleCommit(LittleEndianStructure):
    """KVC_ScheduleCommit_Payload_t: command that ends an upload, with the CRC-32C of all rows as they lie in memory."""

    _fields_ = (("id", c_uint32), ("rows_crc", c_uint32))


class KvcHandover(LittleEndianStructure):
    """KVC_Handover_Payload_t: command to send everything to another satellite."""

    _fields_ = (("plane", c_uint16), ("slot", c_uint16))


class KvcHousekeeping(LittleEndianStructure):
    """KVC_HkTlm_Payload_t: counters of the app kvc and state of its store."""

    command_counter: int
    command_error_counter: int
    serving: int
    slots: int
    slot_bytes: int
    slots_used: int
    slots_partial: int
    blocks: int
    row: int
    rows: int
    store_bytes: int
    bytes: int
    requests: int
    puts: int
    gets: int
    hits: int
    misses: int
    evicted_chunks: int
    expired_parts: int
    migrated_out: int
    migrated_in: int
    handovers: int
    errors: int
    _fields_ = (
        ("command_counter", c_uint8),
        ("command_error_counter", c_uint8),
        ("serving", c_uint8),
        ("spare", c_uint8),
        ("slots", c_uint32),
        ("slot_bytes", c_uint32),
        ("slots_used", c_uint32),
        ("slots_partial", c_uint32),
        ("blocks", c_uint32),
        ("row", c_uint32),
        ("rows", c_uint32),
        ("store_bytes", c_uint64),
        ("bytes", c_uint64),
        ("requests", c_uint64),
        ("puts", c_uint64),
        ("gets", c_uint64),
        ("hits", c_uint64),
        ("misses", c_uint64),
        ("evicted_chunks", c_uint64),
        ("expired_parts", c_uint64),
        ("migrated_out", c_uint64),
        ("migrated_in", c_uint64),
        ("handovers", c_uint64),
        ("errors", c_uint64),
    )


class KvcLimitsTable(LittleEndianStructure):
    """KVC_LimitsTable_t: the table KVC.Limits."""

    _fields_ = (
        ("store_bytes", c_uint32),
        ("slot_bytes", c_uint32),
        ("block_count", c_uint32),
        ("credit", c_uint32),
        ("part_lifetime_ms", c_uint32),
        ("migrate_all_from_ground", c_uint32),
        ("gossip", c_uint32),
        ("scrub_period_ms", c_uint32),
        ("handover_ms", c_uint32),
    )


class KvcScheduleTable(LittleEndianStructure):
    """KVC_ScheduleTable_t: the tables KVC.Schedule1 .. KVC.Schedule4, a segment of a rotation schedule each."""

    _fields_ = (
        ("epoch_s", c_uint32),
        ("epoch_ms", c_uint16),
        ("clock", c_uint16),
        ("planes", c_uint32),
        ("slots", c_uint32),
        ("layout", c_uint32),
        ("servers", c_uint32),
        ("first_row", c_uint32),
        ("row_count", c_uint32),
        ("total_rows", c_uint32),
        ("rows_crc", c_uint32),
        ("row", KvcScheduleRow * SEGMENT_ROWS),
    )


class IslSetLink(LittleEndianStructure):
    """ISL_SetLink_Payload_t: command to cut a link (index in LINKS) for 1 .. 3600 seconds, or with 0 to restore it."""

    _fields_ = (("link", c_uint16), ("cut_s", c_uint16))


class IslHousekeepingLink(LittleEndianStructure):
    """ISL_HkLink_t: one link."""

    present: int
    up: int
    plane: int
    slot: int
    queue_depth: int
    last_heard_ms: int
    delay_requested_us: int
    delay_mean_us: int
    delay_min_us: int
    tx_packets: int
    tx_bytes: int
    rx_packets: int
    rx_bytes: int
    drop_queue: int
    drop_loss: int
    drop_cut: int
    drop_error: int
    _fields_ = (
        ("present", c_uint8),
        ("up", c_uint8),
        ("plane", c_uint16),
        ("slot", c_uint16),
        ("queue_depth", c_uint16),
        ("last_heard_ms", c_uint32),
        ("delay_requested_us", c_uint32),
        ("delay_mean_us", c_uint32),
        ("delay_min_us", c_uint32),
        ("tx_packets", c_uint64),
        ("tx_bytes", c_uint64),
        ("rx_packets", c_uint64),
        ("rx_bytes", c_uint64),
        ("drop_queue", c_uint64),
        ("drop_loss", c_uint64),
        ("drop_cut", c_uint64),
        ("drop_error", c_uint64),
    )


class IslHousekeeping(LittleEndianStructure):
    """ISL_HkTlm_Payload_t: counters of the app isl and its links, in the order of LINKS."""

    command_counter: int
    command_error_counter: int
    listeners: int
    plane: int
    slot: int
    relayed_up: int
    relayed_down: int
    relay_errors: int
    io_errors: int
    delivered: int
    forwarded: int
    to_ground: int
    dropped: int
    _fields_ = (
        ("command_counter", c_uint8),
        ("command_error_counter", c_uint8),
        ("listeners", c_uint8),
        ("spare", c_uint8),
        ("plane", c_uint16),
        ("slot", c_uint16),
        ("relayed_up", c_uint32),
        ("relayed_down", c_uint32),
        ("relay_errors", c_uint32),
        ("io_errors", c_uint32),
        ("delivered", c_uint64),
        ("forwarded", c_uint64),
        ("to_ground", c_uint64),
        ("dropped", c_uint64),
        ("link", IslHousekeepingLink * len(LINKS)),
    )

    def links(self) -> dict[str, IslHousekeepingLink]:
        """The links by name."""
        return dict(zip(LINKS, self.link, strict=True))


class IslLinkEntry(LittleEndianStructure):
    """ISL_LinkEntry_t: model of one link."""

    _fields_ = (
        ("delay_us", c_uint32),
        ("jitter_us", c_uint32),
        ("rate_kbps", c_uint32),
        ("loss_ppm", c_uint32),
        ("cut", c_uint8),
        ("spare", c_uint8 * 3),
    )


class IslLinksTable(LittleEndianStructure):
    """ISL_LinksTable_t: the table ISL.Links, in the order of LINKS."""

    _fields_ = (("link", IslLinkEntry * len(LINKS)),)


C_NAMES: dict[type[LittleEndianStructure], str] = {
    CommandHeader: "CFE_MSG_CommandHeader_t",
    TelemetryHeader: "CFE_MSG_TelemetryHeader_t",
    EventPacketId: "CFE_EVS_PacketID_t",
    EventPayload: "CFE_EVS_LongEventTlm_Payload_t",
    KvcPurgeBlock: "KVC_PurgeBlock_Payload_t",
    KvcScheduleRow: "KVC_ScheduleRow_t",
    KvcScheduleBegin: "KVC_ScheduleBegin_Payload_t",
    KvcScheduleRows: "KVC_ScheduleRows_Payload_t",
    KvcScheduleCommit: "KVC_ScheduleCommit_Payload_t",
    KvcHandover: "KVC_Handover_Payload_t",
    KvcHousekeeping: "KVC_HkTlm_Payload_t",
    KvcLimitsTable: "KVC_LimitsTable_t",
    KvcScheduleTable: "KVC_ScheduleTable_t",
    IslSetLink: "ISL_SetLink_Payload_t",
    IslHousekeepingLink: "ISL_HkLink_t",
    IslHousekeeping: "ISL_HkTlm_Payload_t",
    IslLinkEntry: "ISL_LinkEntry_t",
    IslLinksTable: "ISL_LinksTable_t",
}
"""the C structure that each class mirrors"""
