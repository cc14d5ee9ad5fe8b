/**
 * @file
 * The mission: a host on the ground with a role of its own. When a row begins it asks one satellite for its telemetry, and sends a command
 * to another one. A command is obeyed once, and only if the mission has sent it.
 */
#include <string.h>

#include "twin_priv.h"

#define QUESTIONS     16u
#define PATIENCE_MS   3000u
#define COMMAND_BYTES 16u
#define COMMANDS      4096u
#define NUMBER_AT     8u
#define RUNS_MAX      64u /* runs of the host at one time */

/** A command that was sent. */
typedef struct
{
    uint32_t node;
    uint64_t obeyed_us; /**< time at which it was obeyed; 0: it was not */
} Command_t;

/** A question, with the command that it carries. */
typedef struct
{
    SKY_HostQuestion_t core;
    uint8_t            command[COMMAND_BYTES];
    bool               is_asked;
} Question_t;

struct SKYT_Mission
{
    SKYT_Twin_t    *twin;
    SKY_Host_t      core;
    SKY_HostAsked_t asked[QUESTIONS];
    Question_t      questions[QUESTIONS];
    uint8_t         payload[SKY_CHUNKSET_MAX_BYTES];
    uint32_t        next;               /**< question that is asked next */
    uint32_t        numbers;            /**< commands sent so far */
    Command_t       commands[COMMANDS]; /**< by number modulo COMMANDS */
};

/* ---- what the host asks of us -------------------------------------------------------------------------------------------- */

static uint16_t number_of(const SKYT_Twin_t *twin)
{
    return (uint16_t)(twin->config.hosts + 1u);
}

static void send_packet(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const SKYT_Mission_t *mission = context;
    uint8_t               head[SKY_HEAD_MAX];
    uint8_t               tail[SKY_TAIL_MAX];
    const uint32_t        head_len = (uint32_t)SKY_Tag_EncodeAround(pkt, key, NULL, head, tail);
    const SKYT_Parts_t    parts    = {head, pkt->payload, tail, head_len, pkt->length, SKY_Packet_TailBytes(pkt), SKYT_NONE};

    SKYT_Network_Send(mission->twin, now_us, (uint32_t)endpoint, SKYT_LINK_UP, number_of(mission->twin), &parts);
}

static uint8_t *payload(void *context)
{
    return ((SKYT_Mission_t *)context)->payload;
}

static bool count_up(void *context, uint8_t *bytes, size_t count)
{
    SKYT_CountUp(((SKYT_Mission_t *)context)->twin, bytes, count);
    return true;
}

static void take_telemetry(void *context, const SKY_Packet_t *pkt)
{
    (void)pkt;
    ++((SKYT_Mission_t *)context)->core.counters.chunks; /* it has no chunks, so this says what it has taken */
}

/* ---- life ------------------------------------------------------------------------------------------------------------------ */

bool SKYT_Mission_Init(SKYT_Twin_t *twin)
{
    SKYT_Mission_t                *mission   = SKYT_Take(twin, 1, sizeof(*mission));
    const SKY_HostShell_t          shell     = {mission, send_packet, payload, count_up};
    const SKY_HostQuestionMemory_t questions = {mission != NULL ? mission->asked : NULL, QUESTIONS};
    SKY_HostPeerMemory_t           peers;
    SKY_HostCfg_t                  cfg;

    twin->mission = mission;
    if (mission == NULL)
    {
        return false;
    }
    mission->twin    = twin;
    peers.peer_count = twin->node_count;
    peers.peers      = SKYT_Take(twin, twin->node_count, sizeof(*peers.peers));
    peers.active     = SKYT_Take(twin, twin->node_count, sizeof(*peers.active));
    peers.ways       = SKYT_Take(twin, twin->node_count, sizeof(*peers.ways));
    peers.index      = SKYT_Take(twin, 1, SKY_Index_MemoryBytes(twin->node_count));
    (void)memset(&cfg, 0, sizeof(cfg));
    cfg.peer         = SKY_PeerCfg_OfHost(SKY_DEFAULT_WINDOW, twin->config.credit);
    cfg.packet_bytes = twin->config.packet_bytes;
    cfg.number       = number_of(twin);
    cfg.keeps_number = true;
    SKYT_Keys_OfHost(twin, number_of(twin), &cfg.security);
    if (twin->is_short || !SKY_Host_Init(&mission->core, &shell, &cfg, &peers) ||
        !SKY_Host_LendQuestions(&mission->core, &questions))
    {
        return false;
    }
    SKY_Host_Listen(&mission->core, take_telemetry, mission);
    return true;
}

SKY_Host_t *SKYT_Mission_Host(const SKYT_Twin_t *twin)
{
    return twin->mission != NULL ? &twin->mission->core : NULL;
}

/* ---- telemetry and commands -------------------------------------------------------------------------------------------------- */

static void write_command(uint32_t number, uint8_t *command)
{
    (void)memset(command, 0, COMMAND_BYTES);
    command[NUMBER_AT]     = (uint8_t)(number >> 8 & 0xFFu);
    command[NUMBER_AT + 1] = (uint8_t)(number & 0xFFu);
}

/* Ask a satellite. Without a free question nothing is asked: it has asked often, and nobody has answered yet. */
static void ask(SKYT_Twin_t *twin, uint32_t node, bool is_command)
{
    SKYT_Mission_t  *mission  = twin->mission;
    Question_t      *question = &mission->questions[mission->next];
    const SKY_Addr_t addr     = SKYT_AddrOf(twin, node);

    if (question->is_asked && question->core.status == SKY_STATUS_RUNNING)
    {
        return;
    }
    mission->next = (mission->next + 1u) % QUESTIONS;
    (void)memset(question, 0, sizeof(*question));
    question->core.place       = (SKY_HostPlace_t){addr.plane, addr.slot, addr.plane, addr.slot, node, 0, 0};
    question->core.apid        = SKY_APID_ISL;
    question->core.op          = SKY_OP_RELAY;
    question->core.deadline_ms = PATIENCE_MS;
    if (is_command)
    {
        ++mission->numbers;
        write_command(mission->numbers, question->command);
        mission->commands[mission->numbers % COMMANDS] = (Command_t){node, 0};
        question->core.payload                         = question->command;
        question->core.payload_bytes                   = COMMAND_BYTES;
    }
    else
    {
        question->core.flags = SKY_FLAG_TLM;
    }
    question->is_asked = SKY_Host_Ask(&mission->core, twin->now_us, &question->core) == SKY_HOST_BEGUN;
}

void SKYT_Mission_Row(SKYT_Twin_t *twin, uint32_t node)
{
    ask(twin, node, false);
    ask(twin, (uint32_t)(SKYT_Random(twin) % twin->node_count), true);
    SKYT_Mission_Run(twin);
}

void SKYT_Mission_Run(SKYT_Twin_t *twin)
{
    SKY_Host_t *core   = &twin->mission->core;
    uint64_t    due_us = twin->now_us;

    for (uint32_t runs = 0; due_us <= twin->now_us && runs < RUNS_MAX; ++runs)
    {
        due_us = SKY_Host_Run(core, twin->now_us, true);
        while (SKY_Host_NextAnswered(core) != NULL)
        {
            due_us = twin->now_us; /* another one may be asked */
        }
    }
    if (due_us == UINT64_MAX)
    {
        SKYT_Queue_Remove(&twin->queue, SKYT_EventOfMission(twin));
    }
    else
    {
        SKYT_Queue_Set(&twin->queue, SKYT_EventOfMission(twin), due_us);
    }
}

void SKYT_Mission_Receive(SKYT_Twin_t *twin, uint32_t node, const uint8_t *data, uint32_t len)
{
    SKY_Host_t    *core      = &twin->mission->core;
    const uint64_t undecoded = core->counters.undecoded;

    SKY_Host_Receive(core, twin->now_us, node, data, len);
    twin->counters.damaged += core->counters.undecoded - undecoded;
}

void SKYT_Mission_Obeyed(SKYT_Twin_t *twin, uint32_t node, const uint8_t *message, uint32_t len)
{
    SKYT_Mission_t *mission = twin->mission;
    uint8_t         sent[COMMAND_BYTES];

    for (uint32_t back = 0; back < COMMANDS && back < mission->numbers; ++back)
    {
        Command_t *command = &mission->commands[(mission->numbers - back) % COMMANDS];

        write_command(mission->numbers - back, sent);
        if (command->node == node && len == COMMAND_BYTES && memcmp(sent, message, len) == 0 &&
            (command->obeyed_us == 0 || command->obeyed_us < twin->nodes[node].up_us)) /* who begins anew has forgotten it */
        {
            twin->counters.commands += command->obeyed_us == 0 ? 1u : 0u;
            command->obeyed_us = twin->now_us;
            return;
        }
    }
    SKYT_Check_Fail(twin, SKYT_INVARIANT_AUTHENTIC, node, SKYT_NONE, SKYT_NONE, SKYT_NONE,
                    "a satellite obeys a command that the mission has not sent to it, or not again");
}
