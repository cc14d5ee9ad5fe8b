/**
 * @file
 * Memory of a ground host, and its beginning.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground.h"

#define ALIGNED_BYTES 16u
#define QUEUE_US      2000u /* that large puts may fill queues for */
#define LANES_A_KEPT  4u    /* for so many lanes one more is for small blocks alone */
#define STATS_BYTES   ((size_t)8 * SKY_STATS_KVC_COUNT)

/* Memory that is handed out piece by piece; without any it only counts. */
typedef struct
{
    uint8_t *memory;
    size_t   used;
} Arena_t;

static void *Take(Arena_t *arena, size_t count, size_t bytes)
{
    const size_t all  = (count * bytes + ALIGNED_BYTES - 1u) / ALIGNED_BYTES * ALIGNED_BYTES;
    uint8_t     *from = arena->memory == NULL ? NULL : arena->memory + arena->used;

    SKY_ASSERT(bytes >= 1u);
    SKY_ASSERT(arena->used % ALIGNED_BYTES == 0u);
    arena->used += all;
    return from;
}

static uint32_t SatellitesOf(const SKY_GroundLimits_t *limits)
{
    SKY_ASSERT(limits->torus.planes >= 1u);
    SKY_ASSERT(limits->torus.slots >= 1u);
    return (uint32_t)limits->torus.planes * limits->torus.slots;
}

/* Return the most questions of an inquiry, or an operation: one to each satellite, or those of a look in a small sky. */
static uint32_t InquiryMost(const SKY_GroundLimits_t *limits)
{
    const uint32_t looks = 2u * (limits->servers + 1u) + SKY_HOST_OTHERS;

    SKY_ASSERT(looks > limits->servers);
    SKY_ASSERT(limits->servers <= SatellitesOf(limits));
    return looks > SatellitesOf(limits) ? looks : SatellitesOf(limits);
}

/* Hand out the memory of what the ground knows, and of its inquiries. */
static void TakeKnowledge(Arena_t *arena, const SKY_GroundLimits_t *limits, SKY_Ground_t *ground)
{
    const size_t         satellites = SatellitesOf(limits);
    const size_t         most       = InquiryMost(limits);
    SKY_GroundInquiry_t *inquiry    = &ground->inquiry;
    SKY_Shares_t        *shares     = &ground->shares;

    SKY_ASSERT(most >= satellites);
    ground->late       = Take(arena, satellites, sizeof(*ground->late));
    ground->spares     = Take(arena, satellites, sizeof(*ground->spares));
    ground->placed     = Take(arena, limits->servers, sizeof(*ground->placed));
    ground->entries    = Take(arena, limits->servers, sizeof(*ground->entries));
    ground->away       = Take(arena, satellites, sizeof(*ground->away));
    ground->cells      = Take(arena, satellites, sizeof(*ground->cells));
    ground->aside      = Take(arena, satellites, sizeof(*ground->aside));
    shares->found      = Take(arena, (size_t)limits->servers * SKY_PLACES_MAX, sizeof(*shares->found));
    shares->counts     = Take(arena, limits->servers, sizeof(*shares->counts));
    shares->homes      = Take(arena, limits->servers, sizeof(*shares->homes));
    shares->servers    = ground->placed;
    shares->cells      = ground->cells;
    inquiry->asks      = Take(arena, most, sizeof(*inquiry->asks));
    inquiry->others    = Take(arena, satellites, sizeof(*inquiry->others));
    inquiry->addrs     = Take(arena, most, sizeof(*inquiry->addrs));
    inquiry->questions = Take(arena, most, sizeof(*inquiry->questions));
    inquiry->stats     = Take(arena, satellites, STATS_BYTES);
    inquiry->last_rows = Take(arena, satellites, sizeof(*inquiry->last_rows));
    inquiry->is_spare  = Take(arena, satellites, sizeof(*inquiry->is_spare));
    ground->strays     = Take(arena, satellites, sizeof(*ground->strays));
    ground->hearing    = Take(arena, satellites, sizeof(*ground->hearing));
    SKY_ASSERT((inquiry->is_spare == NULL) == (arena->memory == NULL));
}

/* Hand out the memory of operations. */
static void TakeOperations(Arena_t *arena, const SKY_GroundLimits_t *limits, SKY_Ground_t *ground)
{
    const size_t operations = limits->operations;
    const size_t shares     = operations * limits->servers;

    SKY_ASSERT(operations >= 1u);
    SKY_ASSERT(shares >= operations);
    ground->memory_free    = Take(arena, operations, sizeof(*ground->memory_free));
    ground->places         = Take(arena, shares * (SKY_HOST_ROUNDS + 1u), sizeof(*ground->places));
    ground->questions      = Take(arena, operations * InquiryMost(limits), sizeof(*ground->questions));
    ground->is_held        = Take(arena, shares, sizeof(*ground->is_held));
    ground->slots          = Take(arena, operations * InquiryMost(limits), sizeof(*ground->slots));
    ground->held           = Take(arena, shares, sizeof(*ground->held));
    ground->held_pieces    = Take(arena, shares, sizeof(*ground->held_pieces));
    ground->held_bytes     = Take(arena, shares, (size_t)2 * SKY_CHUNKSET_MAX_BYTES);
    ground->held_addrs     = Take(arena, shares * SKY_PLACES_MAX, 2u * sizeof(*ground->held_addrs));
    ground->queue.accounts = Take(arena, limits->tenants, sizeof(*ground->queue.accounts));
}

/* Memory of the parts that have an interface of their own. */
typedef struct
{
    SKY_HostPeerMemory_t     peers;
    SKY_HostBlockMemory_t    blocks;
    SKY_HostQuestionMemory_t questions;
    SKY_ReachSatellite_t    *reach;
    SKY_Addr_t              *lost;
    SKY_PresenceSatellite_t *presence;
} Parts_t;

static void TakeParts(Arena_t *arena, const SKY_GroundLimits_t *limits, Parts_t *parts)
{
    const uint32_t satellites = SatellitesOf(limits);

    parts->peers.peer_count   = satellites;
    parts->peers.peers        = Take(arena, satellites, sizeof(*parts->peers.peers));
    parts->peers.active       = Take(arena, satellites, sizeof(*parts->peers.active));
    parts->peers.ways         = Take(arena, satellites, sizeof(*parts->peers.ways));
    parts->peers.index        = Take(arena, 1, SKY_Index_MemoryBytes(satellites));
    parts->blocks.work_count  = limits->works;
    parts->blocks.piece_count = limits->pieces;
    parts->blocks.lanes_kept =
        limits->lanes / LANES_A_KEPT + 1u; /* besides: what is kept for small blocks is not taken from others */
    parts->blocks.lane_count = limits->lanes + parts->blocks.lanes_kept;
    parts->blocks.works      = Take(arena, limits->works, sizeof(*parts->blocks.works));
    parts->blocks.pieces     = Take(arena, limits->pieces, sizeof(*parts->blocks.pieces));
    parts->blocks.lanes      = Take(arena, parts->blocks.lane_count, sizeof(*parts->blocks.lanes));
    parts->questions.count   = limits->questions;
    parts->questions.asked   = Take(arena, parts->questions.count, sizeof(*parts->questions.asked));
    parts->reach             = Take(arena, satellites, sizeof(*parts->reach));
    parts->lost              = Take(arena, satellites, sizeof(*parts->lost));
    parts->presence          = Take(arena, satellites, sizeof(*parts->presence));
    SKY_ASSERT(parts->questions.count >= 1u);
    SKY_ASSERT((parts->presence == NULL) == (arena->memory == NULL));
}

uint32_t SKY_Ground_QuestionsMost(const SKY_GroundLimits_t *limits)
{
    const uint64_t most = (uint64_t)InquiryMost(limits) * (limits->operations + 2u); /* one more for strays */

    SKY_ASSERT(most > limits->operations);
    return most < SKY_HOST_QUESTIONS_MAX ? (uint32_t)most : SKY_HOST_QUESTIONS_MAX;
}

size_t SKY_Ground_MemoryBytes(const SKY_GroundLimits_t *limits)
{
    Arena_t      arena = {NULL, 0};
    SKY_Ground_t ground;
    Parts_t      parts;

    SKY_ASSERT(limits->operations >= 1u);
    SKY_ASSERT(limits->servers >= 1u);
    TakeKnowledge(&arena, limits, &ground);
    TakeOperations(&arena, limits, &ground);
    TakeParts(&arena, limits, &parts);
    SKY_ASSERT(arena.used >= limits->operations * sizeof(SKY_HostQuestion_t));
    return arena.used;
}

bool SKY_Ground_Init(SKY_Ground_t *ground, const SKY_GroundLimits_t *limits, const SKY_GroundShell_t *shell,
                     const SKY_HostCfg_t *cfg, const SKY_ReachCfg_t *times, void *memory)
{
    Arena_t        arena = {memory, 0};
    Parts_t        parts;
    SKY_ChunkSet_t any;

    SKY_ASSERT(memory != NULL);
    SKY_ASSERT(shell->EndpointOf != NULL);
    (void)memset(ground, 0, sizeof(*ground));
    ground->shell  = *shell;
    ground->limits = *limits;
    TakeKnowledge(&arena, limits, ground);
    TakeOperations(&arena, limits, ground);
    TakeParts(&arena, limits, &parts);
    SKY_ASSERT(arena.used == SKY_Ground_MemoryBytes(limits));
    ground->asks_most = InquiryMost(limits);
    (void)SKY_ChunkSet_Init(&any, 0, 1, 1); /* one chunk makes a sound set */
    SKY_ChunkSet_Add(&any, 0);
    ground->any_bytes = (uint32_t)SKY_ChunkSet_Encode(&any, ground->any, sizeof(ground->any));
    for (uint32_t i = 0; i < limits->operations; ++i)
    {
        ground->memory_free[i] = limits->operations - 1u - i;
    }
    if (!SKY_Host_Init(&ground->host, &shell->host, cfg, &parts.peers) || !SKY_Host_Lend(&ground->host, &parts.blocks) ||
        !SKY_Host_LendQuestions(&ground->host, &parts.questions))
    {
        return false;
    }
    SKY_Host_SetQueue(&ground->host, QUEUE_US);
    SKY_Reach_Init(&ground->reach, times, &limits->torus, parts.reach, parts.lost);
    SKY_Handovers_Init(&ground->handovers);
    SKY_Presence_Init(&ground->presence, &limits->torus, parts.presence);
    ground->queue.expires_us = UINT64_MAX;
    ground->late_first       = 1;
    return true;
}
