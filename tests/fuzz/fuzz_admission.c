/**
 * @file
 * Fuzz target: whole datagrams -> a node that has keys, with a host, a mission and a neighbour associated with it.
 *
 * Each record of the input is a request of one of the three with a right tag, of which some bytes are changed, checksum and PEC being mended;
 * or any bytes. The truth is what a second library says of the tag, under the key of the one whose association the packet names: without a
 * right tag, or with a number that was seen, nothing changes, and no answer is more than 8 bytes longer. A right packet is dealt with.
 */
#include "../fsw_apps/sky/guard_rig.h"
#include "fuzz_input.h"

#define PARTIES     3u
#define MORE_BYTES  8u
#define NUMBERS     4096u
#define NOW_US      (2u * SECOND_US)
#define CHANGES_MAX 4u

static uint64_t next_us;
static bool     was_used[PARTIES][NUMBERS];

/* All that a request may change on board, but for counters. */
typedef struct
{
    uint32_t                begun, commands;
    SKY_NodeListener_t      listeners[LISTENERS];
    SKY_NodeRelayed_t       relayed[RELAYED];
    uint32_t                map[sizeof(map) / sizeof(map[0])];
    SKY_Hello_t             hello;
    uint32_t                usable;
    SKY_RouterHost_t        grounds[SKY_ROUTER_GROUNDS];
    SKY_AssociationsStats_t stats;
    uint32_t                established;
    uint64_t                memory[sizeof(memory) / sizeof(memory[0])];
} state_t;

static void note_state(state_t *state)
{
    (void)memset(state, 0, sizeof(*state)); /* with what is between the members */
    state->begun    = begun;
    state->commands = commands;
    (void)memcpy(state->listeners, listeners, sizeof(listeners));
    (void)memcpy(state->relayed, relayed, sizeof(relayed));
    (void)memcpy(state->map, map, sizeof(map));
    (void)memcpy(&state->hello, &node.hello, sizeof(node.hello));
    state->usable = node.router.usable;
    (void)memcpy(state->grounds, node.router.grounds, sizeof(node.router.grounds));
    (void)memcpy(&state->stats, &security.associations.stats, sizeof(state->stats));
    state->established = security.associations.established;
    (void)memcpy(state->memory, memory, sizeof(memory));
}

static party_t *party_at(uint32_t i)
{
    party_t *const all[PARTIES] = {&host, &mission, &east};

    return all[i];
}

/* Return true if somebody with keys has made this packet, and it was not here before. @param used  receives where to note that it was; NULL: it
 * may come again */
static bool is_right(const SKY_Packet_t *pkt, bool **used)
{
    for (uint32_t i = 0; i < PARTIES && pkt->security != SKY_SUITE_NONE; ++i)
    {
        const party_t     *party     = party_at(i);
        const bool         is_shaken = pkt->security == SKY_SUITE_HANDSHAKE;
        const SKY_TagKey_t key       = {&theirs.crypto, party->session.place_there, is_shaken ? party->pair : NULL, NULL};

        if (is_shaken ? SKY_Tag_IsRight(pkt, &key)
                      : pkt->spi == party->session.spi && pkt->security == party->session.suite && SKY_Tag_IsRight(pkt, &key))
        {
            if (is_shaken)
            {
                return true;
            }
            ENSURE(pkt->sequence < NUMBERS);
            *used = &was_used[i][pkt->sequence];
            return !**used;
        }
    }
    return false;
}

/* A host with a cookie may use this satellite as its way to others, whose own affair the tag is. */
static bool is_passed_on(const SKY_Packet_t *pkt, uint64_t endpoint)
{
    return !SKY_Addr_Equal(pkt->dst, self) && (SKY_Node_LinkOf(&node, endpoint) != SKY_LINK_GROUND || !pkt->is_request ||
                                               SKY_Security_CookieOf(&security, next_us, endpoint) == pkt->cookie);
}

static void receive(uint8_t *wire, uint32_t len, uint64_t endpoint)
{
    static uint8_t copy[SENT_MAX];
    static state_t before, after;
    uint8_t       *bytes = malloc(len + 1u); /* a heap block of its own: reading beyond is seen */
    SKY_Packet_t   pkt;

    ENSURE(bytes != NULL);
    (void)memcpy(bytes, wire, len);
    (void)memcpy(copy, wire, len);
    (void)memset(&pkt, 0, sizeof(pkt));
    const bool decodes = SKY_Packet_Decode(copy, len, &pkt) == SKY_STATUS_OK;
    bool      *used    = NULL;
    const bool is_ours = decodes && is_right(&pkt, &used);
    const bool may_act = is_ours || (decodes && is_passed_on(&pkt, endpoint));

    note_state(&before);
    come_bytes(next_us, bytes, len, endpoint);
    note_state(&after);
    if (is_ours && used != NULL && memcmp(before.memory, after.memory, sizeof(before.memory)) != 0)
    {
        *used = true; /* else it has not come as far as to the tag, and may come again */
    }
    if (!may_act)
    {
        ENSURE(memcmp(&before, &after, sizeof(before)) == 0);
        ENSURE(sent_count <= 1u && (sent_count == 0u || sent_bytes <= len + MORE_BYTES));
    }
    free(bytes);
    next_us += 1000u;
}

static SKY_Packet_t a_packet(input_t *in)
{
    static const uint8_t ops[] = {SKY_OP_PING, SKY_OP_STATS, SKY_OP_RELAY,   SKY_OP_HELLO, SKY_OP_PUT,
                                  SKY_OP_GET,  SKY_OP_HAS,   SKY_OP_MIGRATE, SKY_OP_PURGE, SKY_OP_ASSOCIATE};
    const uint8_t        op    = ops[take(in) % sizeof(ops)];
    const uint8_t        where = take(in);
    SKY_Packet_t         pkt   = request_of(SKY_APID_ISL, op);

    pkt.apid    = (where & 3u) == 0u ? SKY_APID_ISL : (where & 3u) == 1u ? SKY_APID_KVC : APID;
    pkt.dst     = (where & 28u) == 4u ? in_the_east : self;
    pkt.flags   = (where & 0x60u) == 0x20u ? take(in) : 0u;
    pkt.tenant  = (where & 0x80u) != 0u ? take32(in) : 7u;
    pkt.key[0]  = take(in);
    pkt.payload = body;
    pkt.length  = take(in) % 80u;
    pkt.cookie  = SKY_Security_CookieOf(&security, next_us, host.endpoint);
    return pkt;
}

/* Let one of the three send a packet, of which bytes were changed on the way. */
static void changed_packet(input_t *in)
{
    static uint8_t wire[PARTY_WIRE];
    const uint8_t  how   = take(in);
    party_t       *party = party_at(how % PARTIES);
    SKY_Packet_t   pkt   = a_packet(in);
    uint32_t       len;

    if (party->session.sequence + 1u >= NUMBERS)
    {
        return;
    }
    len = party_request(party, &pkt, wire);
    for (uint32_t i = 0; i < (how >> 4u) % CHANGES_MAX; ++i)
    {
        const uint32_t at = (uint32_t)(take(in) << 8 | take(in)) % len;

        wire[at] = (uint8_t)(wire[at] ^ take(in));
    }
    const bool is_whole = (how >> 4u) % CHANGES_MAX == 0u && (how & 0x80u) == 0u;

    mend(wire, len);
    receive(wire, len, (how & 0x80u) != 0u ? endpoint_of(SKY_LINK_WEST) : party->endpoint);
    /* What nobody has touched counts; a PUT has no chunk's lengths here, and says more than it has. */
    ENSURE(!is_whole || pkt.op == SKY_OP_PUT || !SKY_Addr_Equal(pkt.dst, self) || was_used[how % PARTIES][pkt.sequence]);
    if ((how & 0x40u) != 0u) /* and it comes a second time */
    {
        receive(wire, len, party->endpoint);
    }
}

static void any_bytes(input_t *in)
{
    static uint8_t wire[PARTY_WIRE];
    const uint8_t  how = take(in);
    const uint32_t len = SKY_REQUEST_BYTES + take(in);

    ENSURE(len <= sizeof(wire));
    for (uint32_t i = 0; i < len; ++i)
    {
        wire[i] = take(in);
    }
    if ((how & 1u) != 0u)
    {
        wire[4] = (uint8_t)((len - 7u) >> 8);
        wire[5] = (uint8_t)((len - 7u) & 0xFFu);
        mend(wire, len);
    }
    receive(wire, len, (how & 2u) != 0u ? endpoint_of(SKY_LINK_EAST) : GROUND + (how >> 2u));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = {data, size};

    (void)memset(was_used, 0, sizeof(was_used));
    secure(true, 0);
    next_us = NOW_US;
    for (uint32_t i = 0; i < PARTIES; ++i)
    {
        SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

        ENSURE(associate(1, party_at(i)));
        ask(1, party_at(i), &pkt); /* what is established stays */
        was_used[i][1] = true;
    }
    ENSURE(security.associations.established == PARTIES);
    while (in.left > 0)
    {
        if (take(&in) % 4u == 0u)
        {
            any_bytes(&in);
        }
        else
        {
            changed_packet(&in);
        }
    }
    end();
    return 0;
}
