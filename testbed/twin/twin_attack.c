/**
 * @file
 * The attacker. It is on every link: it sees each packet, takes some away, holds some back, changes some, sends some again, also from
 * elsewhere, and adds its own. It has no keys. What it has recorded of the first packets to a satellite it sends again after a reboot, in the
 * same order, so that a satellite which began as before would take all of it.
 */
#include <string.h>

#include "twin_priv.h"

#define RECORDS      65536u /* records of packets that were sent again, the oldest of which make room */
#define BOOT_PACKETS 16u    /* packets recorded for a reboot, by satellite */
#define AGAIN_US     UINT64_C(5000000)
#define AGAIN_MIN_US UINT64_C(50000) /* the original has arrived by then, or not */
#define HOLD_US      UINT64_C(300000)
#define STEP_US      UINT64_C(10) /* between two packets after a reboot */
#define FORGED_US    UINT64_C(20000)

/** A packet that a satellite got after its first boot. Its bytes are in @c boot_data. */
typedef struct
{
    uint32_t link, len, record;
    uint16_t host;
} BootPacket_t;

struct SKYT_Attack
{
    uint32_t      numbers;  /**< records made so far; they count from 1 */
    uint8_t      *is_acted; /**< by number modulo RECORDS */
    BootPacket_t *boot;     /**< satellite x BOOT_PACKETS */
    uint8_t      *boot_data;
    uint32_t     *boot_count;
    uint8_t      *scratch;
};

bool SKYT_Attack_Init(SKYT_Twin_t *twin)
{
    const size_t   packets = (size_t)twin->node_count * BOOT_PACKETS;
    SKYT_Attack_t *attack  = SKYT_Take(twin, 1, sizeof(*attack));

    twin->attack = attack;
    if (attack == NULL)
    {
        return false;
    }
    attack->is_acted   = SKYT_Take(twin, RECORDS, sizeof(*attack->is_acted));
    attack->boot       = SKYT_Take(twin, packets, sizeof(*attack->boot));
    attack->boot_data  = SKYT_Take(twin, packets, twin->config.packet_bytes);
    attack->boot_count = SKYT_Take(twin, twin->node_count, sizeof(*attack->boot_count));
    attack->scratch    = SKYT_Take(twin, 1, twin->config.packet_bytes);
    return !twin->is_short;
}

/* ---- records ----------------------------------------------------------------------------------------------------------------- */

/* Return the record of a packet, a new one if it has none. */
static uint32_t record_of(SKYT_Twin_t *twin, SKYT_Packet_t *packet)
{
    SKYT_Attack_t *attack = twin->attack;

    if (packet->mark.record == 0)
    {
        packet->mark.record                             = ++attack->numbers;
        attack->is_acted[packet->mark.record % RECORDS] = 0;
    }
    return packet->mark.record;
}

static bool is_kept(const SKYT_Attack_t *attack, uint32_t record)
{
    return record != 0 && attack->numbers - record < RECORDS;
}

bool SKYT_Attack_WasActed(const SKYT_Twin_t *twin, uint32_t record)
{
    return is_kept(twin->attack, record) && twin->attack->is_acted[record % RECORDS] != 0;
}

void SKYT_Attack_NoteActed(SKYT_Twin_t *twin, uint32_t record)
{
    if (is_kept(twin->attack, record))
    {
        twin->attack->is_acted[record % RECORDS] = 1;
    }
}

/* Record the first packets to a satellite that have a tag. */
static void record_boot(SKYT_Twin_t *twin, SKYT_Packet_t *packet, uint32_t node, const uint8_t *data)
{
    SKYT_Attack_t *attack = twin->attack;
    const uint32_t at     = attack->boot_count[node];
    SKY_Packet_t   pkt;

    if (at == BOOT_PACKETS || SKY_Packet_Decode(data, packet->len, &pkt) != SKY_STATUS_OK || pkt.tag == NULL || !pkt.is_request ||
        SKYT_NodeOf(twin, pkt.dst) != node)
    {
        return;
    }
    BootPacket_t *boot = &attack->boot[(size_t)node * BOOT_PACKETS + at];

    boot->link   = packet->link;
    boot->len    = packet->len;
    boot->host   = packet->host;
    boot->record = record_of(twin, packet);
    (void)memcpy(attack->boot_data + ((size_t)node * BOOT_PACKETS + at) * twin->config.packet_bytes, data, packet->len);
    ++attack->boot_count[node];
}

void SKYT_Attack_Reboot(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Attack_t *attack = twin->attack;

    if (attack == NULL)
    {
        return;
    }
    for (uint32_t i = 0; i < attack->boot_count[node]; ++i)
    {
        const BootPacket_t *boot = &attack->boot[(size_t)node * BOOT_PACKETS + i];
        const SKYT_Mark_t   mark = {SKYT_PACKET_AGAIN, boot->record};
        const uint8_t      *data = attack->boot_data + ((size_t)node * BOOT_PACKETS + i) * twin->config.packet_bytes;

        /* Records of long ago may have made room. These were acted upon, or are not sent. */
        if (SKYT_Network_Inject(twin, boot->link, boot->host, mark, data, boot->len, twin->now_us + (i + 1u) * STEP_US))
        {
            ++twin->counters.attacks[SKYT_ATTACK_REBOOT];
        }
    }
}

/* ---- links ------------------------------------------------------------------------------------------------------------------- */

static bool is_isl(uint32_t link)
{
    return link % SKYT_LINKS < SKY_ISL_COUNT;
}

static uint32_t far_of(const SKYT_Twin_t *twin, uint32_t link)
{
    return is_isl(link) ? twin->links[link].far : link / SKYT_LINKS;
}

/* Return the link that leads the other way. */
static uint32_t back_of(const SKYT_Twin_t *twin, uint32_t link)
{
    static const uint32_t opposite[SKYT_LINKS] = {SKY_LINK_SOUTH, SKY_LINK_WEST, SKY_LINK_NORTH,
                                                  SKY_LINK_EAST,  SKYT_LINK_UP,  SKYT_LINK_DOWN};

    return far_of(twin, link) * SKYT_LINKS + opposite[link % SKYT_LINKS];
}

/* Send a packet on a link. */
static void add(SKYT_Twin_t *twin, SKYT_AttackKind_t kind, uint32_t link, uint16_t host, uint8_t mark_kind, uint32_t record,
                const uint8_t *data, uint32_t len, uint64_t due_us)
{
    const SKYT_Mark_t mark = {mark_kind, record};

    if (len > 0 && SKYT_Network_Inject(twin, link, host, mark, data, len, due_us))
    {
        ++twin->counters.attacks[kind];
    }
}

/* Send a packet again from elsewhere: from the attacker's own place, from a host's, or as if from a neighbour. */
static void spoof(SKYT_Twin_t *twin, SKYT_Packet_t *packet, const uint8_t *data, uint64_t due_us)
{
    const uint32_t to   = far_of(twin, packet->link);
    const uint32_t isl  = (uint32_t)(SKYT_Random(twin) % SKY_ISL_COUNT);
    uint32_t       link = to * SKYT_LINKS + SKYT_LINK_UP;
    uint16_t       host = (uint16_t)(SKYT_Random(twin) % 2u == 0 ? SKYT_STRANGER : 1u + SKYT_Random(twin) % twin->config.hosts);

    if (packet->link % SKYT_LINKS == SKYT_LINK_DOWN)
    {
        host = packet->host; /* nobody else listens; it comes from another satellite */
        link = (uint32_t)(SKYT_Random(twin) % twin->node_count) * SKYT_LINKS + SKYT_LINK_DOWN;
    }
    else if (SKYT_Random(twin) % 2u == 0 && twin->links[to * SKYT_LINKS + isl].far != SKYT_NONE)
    {
        link = back_of(twin, to * SKYT_LINKS + isl);
    }
    add(twin, SKYT_ATTACK_SPOOF, link, host, SKYT_PACKET_AGAIN, record_of(twin, packet), data, packet->len, due_us);
}

/* ---- packets --------------------------------------------------------------------------------------------------------------------- */

static void alter(SKYT_Twin_t *twin, SKYT_Packet_t *packet, const SKY_Packet_t *seen, uint8_t *data)
{
    SKYT_Forge_Alter(twin, seen, data, packet->len);
    packet->mark.kind   = SKYT_PACKET_FALSE;
    packet->mark.record = 0;
    ++twin->counters.attacks[SKYT_ATTACK_ALTER];
}

static void act(SKYT_Twin_t *twin, SKYT_Packet_t *packet, SKYT_AttackKind_t kind, const SKY_Packet_t *seen, uint8_t *data)
{
    SKYT_Attack_t *attack    = twin->attack;
    const bool     has_ends  = is_isl(packet->link) && far_of(twin, packet->link) != SKYT_NONE;
    const uint64_t again_us  = twin->now_us + AGAIN_MIN_US + SKYT_Random(twin) % AGAIN_US;
    const uint64_t forged_us = twin->now_us + SKYT_Random(twin) % FORGED_US;

    switch (kind)
    {
        case SKYT_ATTACK_REPLAY:
            add(twin, kind, packet->link, packet->host, SKYT_PACKET_AGAIN, record_of(twin, packet), data, packet->len, again_us);
            break;
        case SKYT_ATTACK_SPOOF:
            spoof(twin, packet, data, again_us);
            break;
        case SKYT_ATTACK_STRIP:
            if (seen->security != SKY_SUITE_NONE)
            {
                add(twin, kind, packet->link, packet->host, SKYT_PACKET_FALSE, 0, attack->scratch,
                    SKYT_Forge_Strip(twin, seen, attack->scratch), forged_us);
            }
            break;
        case SKYT_ATTACK_FORGE:
            if (seen->is_request)
            {
                const uint16_t from = SKYT_Random(twin) % 2u == 0 && !is_isl(packet->link) ? SKYT_STRANGER : packet->host;

                add(twin, kind, packet->link, from, SKYT_PACKET_FALSE, 0, attack->scratch,
                    SKYT_Forge_Request(twin, seen, has_ends ? packet->link / SKYT_LINKS : SKYT_NONE,
                                       has_ends ? far_of(twin, packet->link) : SKYT_NONE, attack->scratch),
                    forged_us);
            }
            break;
        case SKYT_ATTACK_ANSWER:
            if (seen->is_request)
            {
                add(twin, kind, back_of(twin, packet->link), packet->host, SKYT_PACKET_FALSE, 0, attack->scratch,
                    SKYT_Forge_Answer(twin, seen, attack->scratch), forged_us);
            }
            break;
        default:
            alter(twin, packet, seen, data);
            break;
    }
}

bool SKYT_Attack_Sees(SKYT_Twin_t *twin, uint32_t id, uint32_t ppm, uint64_t *due_us)
{
    SKYT_Packet_t *packet = &twin->packets[id];
    uint8_t       *data   = SKYT_Network_DataOf(twin, id);
    SKY_Packet_t   seen;

    if (packet->mark.kind != SKYT_PACKET_SOUND || !SKYT_Chance(twin, ppm) || far_of(twin, packet->link) == SKYT_NONE ||
        SKY_Packet_Decode(data, packet->len, &seen) != SKY_STATUS_OK)
    {
        return true;
    }
    const SKYT_AttackKind_t kind = (SKYT_AttackKind_t)(SKYT_Random(twin) % SKYT_ATTACK_REBOOT);

    switch (kind)
    {
        case SKYT_ATTACK_DROP:
            ++twin->counters.attacks[kind];
            return false;
        case SKYT_ATTACK_HOLD:
            *due_us += SKYT_Random(twin) % HOLD_US;
            ++twin->counters.attacks[kind];
            break;
        default:
            act(twin, packet, kind, &seen, data);
            break;
    }
    return true;
}

/* A packet that nobody has acted upon would be none that is sent again, but the first to come. */
bool SKYT_Attack_Arrives(SKYT_Twin_t *twin, uint32_t id)
{
    SKYT_Packet_t *packet = &twin->packets[id];
    const uint32_t to     = far_of(twin, packet->link);

    if (packet->mark.kind == SKYT_PACKET_SOUND)
    {
        if (packet->link % SKYT_LINKS != SKYT_LINK_DOWN && to != SKYT_NONE)
        {
            record_boot(twin, packet, to, SKYT_Network_DataOf(twin, id));
        }
        return true;
    }
    return packet->mark.kind != SKYT_PACKET_AGAIN || SKYT_Attack_WasActed(twin, packet->mark.record);
}
