/**
 * @file
 * Satellites that the host knows, and the pieces of blocks that wait for them.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define HASH_MUL UINT32_C(2654435769) /* 2^32 / golden ratio puts neighbours far apart */

/* ---- numbers of a block ---------------------------------------------------------------------------------------------- */

static uint32_t ShareChunks(const SKY_HostBlock_t *block, uint32_t server)
{
    SKY_ASSERT(server < block->server_count);
    SKY_ASSERT(server < block->stripe.chunk_total);
    return (block->stripe.chunk_total - server - 1u) / block->server_count + 1u;
}

/* Count the chunks of a share that are moved at once: all of a PUT, the data of a GET. They come first in it. */
static uint32_t ShareFirst(const SKY_HostBlock_t *block, uint32_t server)
{
    const SKY_Stripe_t *stripe = &block->stripe;
    const uint32_t      rows   = SKY_Stripe_Rows(stripe);
    SKY_ASSERT(server < stripe->chunk_total);

    if (stripe->code_m == 0u || block->kind == SKY_HOST_PUT)
    {
        return ShareChunks(block, server);
    }
    if (server >= stripe->code_k)
    {
        return 0; /* this server has parity alone */
    }
    return rows - 1u + (server < SKY_Stripe_Row(stripe, rows - 1u).data ? 1u : 0u);
}

static uint32_t PiecesOf(uint32_t chunks)
{
    const uint32_t pieces = chunks / SKY_LIMIT_CHUNK_SET + (chunks % SKY_LIMIT_CHUNK_SET > 0u ? 1u : 0u);
    SKY_ASSERT(pieces <= chunks);
    SKY_ASSERT(pieces > 0u || chunks == 0u);

    return pieces;
}

/* Return true if a server has nothing to do with a PUT, because it holds its share. */
static bool IsLeftOut(const SKY_HostBlock_t *block, uint32_t server)
{
    SKY_ASSERT(server < block->server_count);
    return block->kind == SKY_HOST_PUT && block->holders != NULL && block->holders[server];
}

/* Count the pieces of a share. Those of a GET have either data or parity. */
static uint32_t SharePieces(const SKY_HostBlock_t *block, uint32_t server)
{
    const uint32_t chunks = ShareChunks(block, server);
    const uint32_t first  = ShareFirst(block, server);
    SKY_ASSERT(first <= chunks);

    return IsLeftOut(block, server) ? 0u : PiecesOf(first) + PiecesOf(chunks - first);
}

void SKY_HostPieces_Share(const SKY_Host_t *host, const SKY_HostBlock_t *block, uint32_t base, uint32_t count,
                          SKY_ShareCfg_t *cfg)
{
    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(count <= SKY_LIMIT_CHUNK_SET);
    (void)memset(cfg, 0, sizeof(*cfg));
    cfg->self         = host->self;
    cfg->tenant       = block->tenant;
    cfg->epoch        = block->epoch;
    cfg->content      = block->content;
    cfg->version      = block->block_version;
    cfg->stripe       = block->stripe;
    cfg->base         = base;
    cfg->stride       = block->server_count;
    cfg->count        = count;
    cfg->packet_bytes = host->cfg.packet_bytes;
    (void)memcpy(cfg->key, block->key, SKY_KEY_BYTES);
}

/* Return the fallback rounds of a block. A PUT goes to the servers' own places only. */
static uint32_t Rounds(const SKY_HostBlock_t *block)
{
    return block->kind == SKY_HOST_PUT ? 0u : block->rounds;
}

const SKY_HostPlace_t *SKY_HostPieces_Place(const SKY_HostBlock_t *block, uint32_t server, uint32_t round)
{
    SKY_ASSERT(server < block->server_count);
    SKY_ASSERT(round == 0u || block->fallbacks != NULL);
    return round == 0u ? &block->servers[server] : &block->fallbacks[(size_t)(round - 1u) * block->server_count + server];
}

uint32_t SKY_HostPieces_NextRound(const SKY_HostBlock_t *block, uint32_t server, uint32_t round)
{
    SKY_ASSERT(server < block->server_count);
    SKY_ASSERT(Rounds(block) <= SKY_HOST_ROUNDS);
    for (uint32_t next = round + 1u; next <= Rounds(block); ++next)
    {
        if (SKY_HostPieces_Place(block, server, next)->plane != 0u)
        {
            return next;
        }
    }
    return 0;
}

bool SKY_HostPieces_HasStandIn(const SKY_HostBlock_t *block, uint32_t server)
{
    bool any = SKY_HostPlace_IsStandIn(&block->servers[server]);
    SKY_ASSERT(server < block->server_count);
    SKY_ASSERT(Rounds(block) <= SKY_HOST_ROUNDS);

    for (uint32_t round = 1; round <= Rounds(block); ++round)
    {
        any |= SKY_HostPlace_IsStandIn(SKY_HostPieces_Place(block, server, round));
    }
    return any;
}

static bool CheckPlaces(const SKY_HostBlock_t *block)
{
    SKY_ASSERT(block->server_count >= 1u);
    SKY_ASSERT(block->servers != NULL);
    for (uint32_t round = 0; round <= Rounds(block); ++round)
    {
        for (uint32_t server = 0; server < block->server_count; ++server)
        {
            const SKY_HostPlace_t *place      = SKY_HostPieces_Place(block, server, round);
            const bool             is_nowhere = round > 0u && place->plane == 0u;

            if ((!is_nowhere && (place->plane == 0u || place->slot == 0u)) ||
                (place->home_plane == 0u) != (place->home_slot == 0u))
            {
                return false;
            }
        }
    }
    return true;
}

bool SKY_HostPieces_Check(const SKY_Host_t *host, const SKY_HostBlock_t *block)
{
    const uint32_t rounds = Rounds(block);
    SKY_ShareCfg_t cfg;

    if (block->kind > SKY_HOST_PUT || block->servers == NULL || block->server_count == 0u || block->deadline_ms == 0u ||
        block->data == NULL)
    {
        return false;
    }
    if (block->stripe.code_m > 0u &&
        (block->parity == NULL || block->rows == NULL || (block->kind == SKY_HOST_GET && block->have == NULL) ||
         block->server_count != (uint32_t)block->stripe.code_k + block->stripe.code_m))
    {
        return false;
    }
    if (rounds > SKY_HOST_ROUNDS || (rounds > 0u && (block->fallbacks == NULL || block->have == NULL)) || !CheckPlaces(block))
    {
        return false;
    }
    SKY_HostPieces_Share(host, block, 0, 1, &cfg);
    return SKY_ShareCfg_Check(&cfg);
}

uint64_t SKY_Host_Pieces(const SKY_Host_t *host, const SKY_HostBlock_t *block)
{
    uint64_t pieces = 0;

    if (!SKY_HostPieces_Check(host, block))
    {
        return 0;
    }
    for (uint32_t server = 0; server < block->server_count && server < block->stripe.chunk_total; ++server)
    {
        pieces += SharePieces(block, server);
    }
    SKY_ASSERT(pieces >= 1u || block->holders != NULL); /* 0: there is nothing to send */
    SKY_ASSERT(pieces <= block->stripe.chunk_total);
    return pieces;
}

SKY_HostWork_t *SKY_HostPieces_WorkOf(const SKY_Host_t *host, const SKY_HostLane_t *lane)
{
    SKY_ASSERT(lane->piece < host->blocks.piece_count);
    SKY_ASSERT(host->blocks.pieces[lane->piece].work < host->blocks.work_count);
    return &host->blocks.works[host->blocks.pieces[lane->piece].work];
}

/* ---- satellites ------------------------------------------------------------------------------------------------------ */

static uint32_t HashOf(SKY_Addr_t addr)
{
    return ((uint32_t)addr.plane << 16 | addr.slot) * HASH_MUL;
}

/* Find a satellite. @return SKY_HOST_NONE if it is unknown */
static uint32_t FindPeer(const SKY_Host_t *host, SKY_Addr_t addr)
{
    uint32_t       step  = 0;
    const uint32_t found = SKY_Index_Find(&host->index, HashOf(addr), &step);

    SKY_ASSERT(found == SKY_INDEX_NONE || SKY_Addr_Equal(host->peers.peers[found].peer.addr, addr)); /* hashes are unique */
    SKY_ASSERT(found == SKY_INDEX_NONE || found < host->peer_used);
    return found;
}

/* Return the satellite that has had nothing to do for the longest time, or SKY_HOST_NONE if all have something to do. One that is being
 * opened stays: its answer would be lost, and it would be asked again before its time. */
static uint32_t FindIdle(const SKY_Host_t *host)
{
    uint32_t best = SKY_HOST_NONE;
    SKY_ASSERT(host->peer_used == host->peers.peer_count); /* every place has been used */

    for (uint32_t i = 0; i < host->peers.peer_count; ++i)
    {
        const SKY_HostPeer_t *peer = &host->peers.peers[i];

        if (peer->active == SKY_HOST_NONE && host->now_us >= peer->opening.keep_us &&
            (best == SKY_HOST_NONE || peer->used < host->peers.peers[best].used))
        {
            best = i;
        }
    }
    SKY_ASSERT(best == SKY_HOST_NONE || host->peers.peers[best].lanes_busy == 0u);
    SKY_ASSERT(best == SKY_HOST_NONE || host->peers.peers[best].piece_first == SKY_HOST_NONE);
    SKY_ASSERT(best == SKY_HOST_NONE || host->peers.peers[best].small_first == SKY_HOST_NONE);
    return best;
}

/* Add a satellite. @return SKY_HOST_NONE if there is no memory */
static uint32_t AddPeer(SKY_Host_t *host, SKY_Addr_t addr)
{
    uint32_t i = host->peer_used;
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);

    if (i < host->peers.peer_count)
    {
        ++host->peer_used;
    }
    else
    {
        i = FindIdle(host);
        if (i == SKY_HOST_NONE)
        {
            return i;
        }
        SKY_Index_Remove(&host->index, HashOf(host->peers.peers[i].peer.addr), i);
        SKY_HostKeys_Forget(host, &host->peers.peers[i]);
    }
    SKY_HostPeer_t *peer = &host->peers.peers[i];
    SKY_ASSERT(i < host->peer_used);

    (void)memset(peer, 0, sizeof(*peer));
    SKY_Peer_Init(&peer->peer, &host->cfg.peer, addr);
    SKY_HostKeys_Init(host, i);
    peer->active      = SKY_HOST_NONE;
    peer->piece_first = SKY_HOST_NONE;
    peer->small_first = SKY_HOST_NONE;
    SKY_Index_Insert(&host->index, HashOf(addr), i);
    SKY_ASSERT(peer->lanes_busy == 0u);
    SKY_ASSERT(peer->peer.outstanding == 0u);
    return i;
}

const SKY_HostPeer_t *SKY_Host_PeerOf(const SKY_Host_t *host, SKY_Addr_t addr)
{
    const uint32_t i = FindPeer(host, addr);
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);

    return i != SKY_HOST_NONE ? &host->peers.peers[i] : NULL;
}

SKY_HostPeer_t *SKY_HostPieces_KnowPeer(SKY_Host_t *host, SKY_Addr_t addr)
{
    uint32_t i = FindPeer(host, addr);
    SKY_ASSERT(host->peer_used <= host->peers.peer_count);

    i = i != SKY_HOST_NONE ? i : AddPeer(host, addr);
    if (i == SKY_HOST_NONE)
    {
        return NULL;
    }
    ++host->used;
    host->peers.peers[i].used = host->used;
    return &host->peers.peers[i];
}

/* Find or add the satellite of a place that gets something to do. @return SKY_HOST_NONE if there is no memory */
static uint32_t UsePeer(SKY_Host_t *host, const SKY_HostPlace_t *place)
{
    const SKY_Addr_t addr = {place->plane, place->slot};
    uint32_t         i    = FindPeer(host, addr);
    SKY_ASSERT(place->plane != 0u); /* the place is a satellite */

    i = i != SKY_HOST_NONE ? i : AddPeer(host, addr);
    if (i == SKY_HOST_NONE)
    {
        return i;
    }
    SKY_HostPeer_t *peer = &host->peers.peers[i];
    SKY_ASSERT(i < host->peer_used);

    if (peer->active == SKY_HOST_NONE)
    {
        peer->silent                           = false;
        peer->active                           = host->active_count;
        host->peers.active[host->active_count] = i;
        ++host->active_count;
        SKY_ASSERT(host->active_count <= host->peer_used);
        host->ways_changed = true;
    }
    ++host->used;
    host->ways_changed = host->ways_changed || peer->endpoint != place->endpoint;
    peer->used         = host->used;
    peer->entry.plane  = place->entry_plane;
    peer->entry.slot   = place->entry_slot;
    peer->endpoint     = place->endpoint;
    SKY_ASSERT(host->peers.active[peer->active] == i);
    SKY_ASSERT(host->active_count >= 1u);
    return i;
}

void SKY_HostPieces_Rest(SKY_Host_t *host)
{
    SKY_ASSERT(host->active_count <= host->peer_used);
    for (uint32_t at = host->active_count; at > 0u; --at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at - 1u]];
        SKY_ASSERT(peer->active == at - 1u);

        if (peer->lanes_busy == 0u && peer->piece_first == SKY_HOST_NONE && peer->small_first == SKY_HOST_NONE)
        {
            --host->active_count;
            host->peers.active[at - 1u]                           = host->peers.active[host->active_count];
            host->peers.peers[host->peers.active[at - 1u]].active = at - 1u;
            peer->active                                          = SKY_HOST_NONE; /* written last, because it may be the same */
            host->ways_changed                                    = true;
        }
    }
    host->queue_deadline_us = host->active_count > 0u ? host->queue_deadline_us : UINT64_MAX; /* else all queues are empty */
    SKY_ASSERT(host->active_count <= host->peers.peer_count);
}

void SKY_HostPieces_FindWays(SKY_Host_t *host)
{
    if (!host->ways_changed)
    {
        return;
    }
    host->ways_changed = false;
    host->way_count    = 0;
    for (uint32_t at = 0; at < host->active_count; ++at)
    {
        SKY_HostPeer_t *peer = &host->peers.peers[host->peers.active[at]];
        uint32_t        way  = 0;

        while (way < host->way_count && host->peers.ways[way].endpoint != peer->endpoint)
        {
            ++way;
        }
        if (way == host->way_count)
        {
            host->peers.ways[way].endpoint = peer->endpoint;
            ++host->way_count;
        }
        peer->way = way;
        SKY_ASSERT(host->way_count <= host->active_count);
        SKY_ASSERT(way < host->way_count);
    }
    SKY_ASSERT(host->way_count <= host->active_count);
    SKY_ASSERT(!host->ways_changed);
}

/* ---- pieces ---------------------------------------------------------------------------------------------------------- */

bool SKY_HostPieces_Queue(SKY_Host_t *host, uint32_t piece)
{
    SKY_HostPiece_t      *one   = &host->blocks.pieces[piece];
    const SKY_HostWork_t *work  = &host->blocks.works[one->work];
    const uint32_t        index = UsePeer(host, SKY_HostPieces_Place(work->block, one->server, one->round));

    if (index == SKY_HOST_NONE)
    {
        return false;
    }
    SKY_HostPeer_t *peer = &host->peers.peers[index];
    SKY_ASSERT(peer->active != SKY_HOST_NONE);
    SKY_ASSERT(piece < host->blocks.piece_count);
    SKY_ASSERT(one->count >= 1u);

    uint32_t *first = work->is_small ? &peer->small_first : &peer->piece_first;
    uint32_t *last  = work->is_small ? &peer->small_last : &peer->piece_last;

    one->next = SKY_HOST_NONE;
    if (*first == SKY_HOST_NONE)
    {
        *first = piece;
    }
    else
    {
        host->blocks.pieces[*last].next = piece;
    }
    *last                   = piece;
    host->queue_deadline_us = work->deadline_us < host->queue_deadline_us ? work->deadline_us : host->queue_deadline_us;
    SKY_ASSERT(host->blocks.pieces[*last].next == SKY_HOST_NONE);
    return true;
}

void SKY_HostPieces_Free(SKY_Host_t *host, uint32_t piece)
{
    SKY_HostPiece_t *one  = &host->blocks.pieces[piece];
    SKY_HostWork_t  *work = &host->blocks.works[one->work];
    SKY_ASSERT(piece < host->blocks.piece_count);
    SKY_ASSERT(work->pieces_alive > 0u);
    SKY_ASSERT(host->piece_free_count < host->blocks.piece_count);

    --work->pieces_alive;
    if (work->pieces_alive == 0u && work->block == NULL)
    {
        work->next      = host->work_free;
        host->work_free = one->work;
    }
    one->work        = SKY_HOST_NONE;
    one->next        = host->piece_free;
    host->piece_free = piece;
    ++host->piece_free_count;
    SKY_ASSERT(host->piece_free == piece);
    SKY_ASSERT(host->piece_free_count <= host->blocks.piece_count);
}

/* Take a free piece, and give it chunks of a share from @p from to before @p end, as many as it takes. There is a free one. */
static uint32_t TakePiece(SKY_Host_t *host, uint32_t work, uint32_t server, uint32_t from, uint32_t end)
{
    const uint32_t   behind = end - from;
    const uint32_t   number = host->piece_free;
    SKY_HostPiece_t *piece  = &host->blocks.pieces[number];
    SKY_ASSERT(host->piece_free_count > 0u);
    SKY_ASSERT(number < host->blocks.piece_count);
    SKY_ASSERT(from < end);

    host->piece_free = piece->next;
    --host->piece_free_count;
    (void)memset(piece, 0, sizeof(*piece));
    piece->work   = work;
    piece->server = server;
    piece->from   = from;
    piece->count  = behind < SKY_LIMIT_CHUNK_SET ? behind : SKY_LIMIT_CHUNK_SET;
    piece->lane   = SKY_HOST_NONE;
    piece->twin   = SKY_HOST_NONE;
    ++host->blocks.works[work].pieces_left;
    ++host->blocks.works[work].pieces_alive;
    SKY_ASSERT(host->blocks.works[work].pieces_left <= host->blocks.works[work].pieces_alive);
    SKY_ASSERT(piece->count >= 1u);
    return number;
}

/* Make the pieces of one server's first chunks, or of the parity behind them. */
static bool MakeShare(SKY_Host_t *host, uint32_t work, uint32_t server, bool is_parity)
{
    SKY_HostWork_t        *one   = &host->blocks.works[work];
    const SKY_HostBlock_t *block = one->block;
    const uint32_t         first = ShareFirst(block, server);
    const uint32_t         end   = is_parity ? ShareChunks(block, server) : first;
    const bool             holds = is_parity && !host->cfg.asks_all && host->now_us >= host->lossy_until_us;

    for (uint32_t from = is_parity ? first : 0u; from < end; from += SKY_LIMIT_CHUNK_SET)
    {
        const uint32_t piece = TakePiece(host, work, server, from, end);

        if (holds)
        {
            host->blocks.pieces[piece].next = one->held;
            one->held                       = piece;
        }
        else if (!SKY_HostPieces_Queue(host, piece))
        {
            SKY_HostPieces_Free(host, piece);
            return false;
        }
    }
    one->shares += !is_parity && first > 0u ? 1u : 0u;
    SKY_ASSERT(one->pieces_alive >= one->pieces_left);
    SKY_ASSERT(one->shares <= block->server_count);
    return true;
}

uint32_t SKY_HostPieces_Copy(SKY_Host_t *host, uint32_t piece, uint32_t round)
{
    const SKY_HostPiece_t one = host->blocks.pieces[piece];
    SKY_ASSERT(piece < host->blocks.piece_count);
    SKY_ASSERT(host->blocks.works[one.work].block != NULL);

    if (host->piece_free == SKY_HOST_NONE)
    {
        return SKY_HOST_NONE;
    }
    const uint32_t copy = TakePiece(host, one.work, one.server, one.from, one.from + one.count);

    host->blocks.pieces[copy].round = round;
    if (!SKY_HostPieces_Queue(host, copy))
    {
        --host->blocks.works[one.work].pieces_left;
        SKY_HostPieces_Free(host, copy);
        return SKY_HOST_NONE;
    }
    SKY_ASSERT(host->blocks.pieces[copy].count == one.count);
    return copy;
}

bool SKY_HostPieces_Make(SKY_Host_t *host, uint32_t work)
{
    const SKY_HostBlock_t *block = host->blocks.works[work].block;
    const uint32_t count = block->server_count < block->stripe.chunk_total ? block->server_count : block->stripe.chunk_total;
    SKY_ASSERT(host->blocks.works[work].pieces_left == 0u);

    host->blocks.works[work].held = SKY_HOST_NONE;
    for (uint32_t pass = 0; pass < 2u; ++pass) /* data goes first */
    {
        for (uint32_t server = 0; server < count; ++server)
        {
            if (!IsLeftOut(block, server) && !MakeShare(host, work, server, pass == 1u))
            {
                return false;
            }
        }
    }
    SKY_ASSERT(host->blocks.works[work].pieces_left >= 1u);
    SKY_ASSERT(host->blocks.works[work].pieces_alive >= 1u);
    return true;
}

uint32_t SKY_HostPieces_TakeHeld(SKY_Host_t *host, uint32_t work)
{
    SKY_HostWork_t *one   = &host->blocks.works[work];
    const uint32_t  piece = one->held;
    SKY_ASSERT(work < host->blocks.work_count);
    SKY_ASSERT(piece == SKY_HOST_NONE || host->blocks.pieces[piece].work == work);

    one->held = piece != SKY_HOST_NONE ? host->blocks.pieces[piece].next : SKY_HOST_NONE;
    return piece;
}
