/**
 * @file
 * Gossip (paper, section 3.9): a satellite that evicts its share of a block under memory pressure tells its four neighbours, by a
 * PURGE that nobody answers. A neighbour that held chunks of the block purges them and passes the word on.
 *
 * How far a word goes: the holders of a block are neighbours of each other but for holes, such as a layout's gaps, satellites
 * that evicted it already, or a handover. A word therefore crosses as many satellites without a chunk of the block in a row as
 * its credit says, and a holder gives it its full credit again. A holder is none afterwards, so that happens at most once for
 * each. Words therefore end even where nobody remembers them; to remember those of the last seconds only spares packets.
 *
 * A word about a block with parity says that no more can be decoded. Only a census finds that out (sky_service_census.c); who evicts a
 * share of such a block tells nobody, as one share less leaves the others enough. It means one version, content and stripe: others
 * under the key may be whole. A word about a block without parity means no block that has parity: an old share may lie somewhere under
 * the key of a block that was put with parity since. It means one content, and older versions of the block. No word means what is kept
 * for a row to come, as the other shares of that lie elsewhere.
 *
 * A PUT may evict the blocks of a whole slot. Of so many at once the neighbours are told of the last ones; the rest is left as if its
 * word were lost.
 *
 * What else a word must not destroy: a block that was evicted and is put anew. A word does not say when the share went. So a satellite
 * that may have taken a PUT of the block since ignores it until the PUT's deadline (or the lifetime of parts), and then for as
 * long as a word may be on its way. If the word was about this very incarnation, an incomplete block stays, and is left to the
 * reader, the scrub, or eviction. So is the rest of a block whose word was lost.
 */
#include "sky_service_gossip.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"

#define CREDIT      2u       /* the largest hole in a layout; a handover moves the window by less */
#define TRAVEL_US   1000000u /* longer than any word is on its way */
#define REMEMBER_US 5000000u

/* Return the ISLs that lead to a satellite other than @p but. */
static uint8_t links_but(const SKY_ServiceCore_t *core, SKY_Addr_t but)
{
    uint32_t links = 0;

    for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
    {
        const SKY_Addr_t to = SKY_Torus_Neighbour(&core->cfg.torus, core->cfg.self, (SKY_LinkId_t)i);

        links |= to.plane != 0 && !SKY_Addr_Equal(to, but) ? 1u << i : 0u;
    }
    SKY_ASSERT(links < 1u << SKY_ISL_COUNT);
    return (uint8_t)links;
}

/* Return a word of the last seconds, or NULL. */
static SKY_Word_t *find(SKY_Gossip_t *gossip, uint64_t now_us, const SKY_Word_t *like)
{
    SKY_ASSERT(like->stripe.code_m == 0 || like->stripe.code_k > 0);
    for (uint32_t i = 0; i < SKY_SERVICE_WORDS; ++i)
    {
        SKY_Word_t *word = &gossip->words[i];

        if (now_us < word->until_us && word->tenant == like->tenant && word->version == like->version &&
            word->content == like->content && word->epoch == like->epoch && memcmp(word->key, like->key, SKY_KEY_BYTES) == 0 &&
            SKY_Stripe_Equal(&word->stripe, &like->stripe))
        {
            return word;
        }
    }
    return NULL;
}

/* Return a place for a new word: that of the oldest. */
static SKY_Word_t *take_place(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip)
{
    SKY_Word_t *word = &gossip->words[gossip->next];
    SKY_ASSERT(gossip->next < SKY_SERVICE_WORDS);
    SKY_ASSERT((word->links != 0) == ((gossip->waiting >> gossip->next & 1u) != 0));

    gossip->next = (gossip->next + 1u) % SKY_SERVICE_WORDS;
    SKY_ASSERT(gossip->next < SKY_SERVICE_WORDS);
    core->counters.gossip_lost += word->links != 0 ? 1u : 0u;
    (void)memset(word, 0, sizeof(*word));
    return word;
}

/* Tell @p links of a word, unless it is known and has gone as far already. */
static void spread(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, const SKY_Word_t *said, uint16_t credit,
                   uint8_t links)
{
    SKY_Word_t *word = find(gossip, now_us, said);

    SKY_ASSERT(credit <= CREDIT);
    SKY_ASSERT(links != 0);
    SKY_ASSERT(links >> SKY_ISL_COUNT == 0);
    if (word == NULL)
    {
        word  = take_place(core, gossip);
        *word = *said;
    }
    else if (word->credit >= credit)
    {
        return; /* the earlier word went on as far as this one would */
    }
    word->credit   = credit;
    word->links    = links;
    word->until_us = now_us + REMEMBER_US;
    gossip->waiting |= 1u << (uint32_t)(word - gossip->words);
    SKY_ASSERT(word->until_us > now_us);
}

/* Return the row of the schedule that holds now; 0: none. */
static uint32_t row_of(const SKY_ServiceCore_t *core, uint64_t now_us)
{
    SKY_ASSERT(core->schedule == NULL || core->schedule->count >= 1);
    return core->schedule != NULL ? SKY_Schedule_RowAt(core->schedule, now_us) : SKY_SCHEDULE_NONE;
}

void SKY_Gossip_Begin(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, const SKY_BlockInfo_t *block)
{
    SKY_ASSERT(block->stripe.chunk_total >= 1);
    const uint8_t  links = links_but(core, core->cfg.self);
    const uint32_t row   = row_of(core, now_us);
    SKY_Word_t     word  = {.tenant = block->tenant, .version = block->version, .content = block->content};
    SKY_ASSERT(links >> SKY_ISL_COUNT == 0);

    if (core->cfg.gossip && links != 0)
    {
        (void)memcpy(word.key, block->key, SKY_KEY_BYTES);
        word.epoch = block->epoch > row ? block->epoch : row;
        if (block->stripe.code_m > 0)
        {
            word.stripe = block->stripe;
        }
        spread(core, gossip, now_us, &word, CREDIT, links);
    }
}

/* Return true if a word is about a block: without parity, about one of its key that has none and is within the bounds. Of a block with
 * parity that waits for a later row the others may lie where that row has them, and who began the word has not asked there. */
static bool is_about(const SKY_Word_t *word, const SKY_StoreBounds_t *bounds, const SKY_BlockInfo_t *info, uint32_t row)
{
    SKY_ASSERT(info->held > 0);
    SKY_ASSERT(bounds->version == word->version);
    if (!SKY_StoreBounds_Hold(bounds, info->version, info->content, info->epoch))
    {
        return false;
    }
    if (word->stripe.code_m == 0)
    {
        return info->stripe.code_m == 0;
    }
    return info->epoch <= row && info->version == word->version && info->content == word->content &&
           SKY_Stripe_Equal(&info->stripe, &word->stripe);
}

/* Return true if the word may be passed on, with @p credit. */
static bool take_in(SKY_ServiceCore_t *core, uint64_t now_us, const SKY_Word_t *word, uint16_t *credit)
{
    const SKY_StoreBounds_t bounds = {word->version, word->content, word->epoch};
    SKY_BlockInfo_t         info;

    /* Who holds another block under the key holds no share of the one that the word is about. */
    if (SKY_Store_Block(core->store, SKY_Store_Find(core->store, word->tenant, word->key), &info) != SKY_STATUS_OK ||
        !is_about(word, &bounds, &info, row_of(core, now_us)))
    {
        const uint16_t left = word->credit < CREDIT ? word->credit : CREDIT;

        *credit = (uint16_t)(left - 1u);
        return left > 0;
    }
    SKY_ASSERT(info.held > 0);
    if (now_us < info.put_until_us + TRAVEL_US)
    {
        return false; /* the block may have been put since */
    }
    core->counters.gossip_purged += SKY_Store_Purge(core->store, word->tenant, word->key, &bounds);
    *credit = CREDIT;
    return true;
}

/* Get the word of a packet. @return false if there can be no such block */
static bool word_of(const SKY_Packet_t *pkt, SKY_Word_t *word)
{
    SKY_ASSERT((pkt->flags & SKY_FLAG_GOSSIP) != 0);
    SKY_ASSERT(pkt->op == SKY_OP_PURGE);
    const bool is_coded = pkt->code_k > 0 || pkt->code_m > 0;

    (void)memset(word, 0, sizeof(*word));
    word->tenant  = pkt->tenant;
    word->version = pkt->block_version;
    word->credit  = pkt->credit;
    word->content = pkt->content;
    word->epoch   = pkt->epoch;
    (void)memcpy(word->key, pkt->key, SKY_KEY_BYTES);
    return !is_coded || SKY_Stripe_OfPacket(&word->stripe, pkt);
}

void SKY_Gossip_Hear(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    const uint8_t all    = links_but(core, core->cfg.self);
    const uint8_t links  = links_but(core, pkt->src); /* all links, unless the word comes from a neighbour */
    uint16_t      credit = 0;
    SKY_Word_t    word;
    SKY_ASSERT((links & (uint32_t)~all) == 0);

    if (!core->cfg.gossip || links == all || !word_of(pkt, &word))
    {
        SKY_ServiceCore_CountError(core, SKY_STATUS_REFUSED);
        return;
    }
    if (take_in(core, now_us, &word, &credit) && links != 0)
    {
        spread(core, gossip, now_us, &word, credit, links);
    }
}

static uint32_t lowest_bit(uint32_t bits)
{
    const uint32_t bounded = bits | 1u << 31; /* the search ends, even if there are no bits */
    uint32_t       index   = 0;

    SKY_ASSERT(bits != 0);
    while ((bounded >> index & 1u) == 0)
    {
        ++index;
    }
    SKY_ASSERT((bits & 1u << index) != 0);
    return index;
}

bool SKY_Gossip_Next(SKY_ServiceCore_t *core, SKY_Gossip_t *gossip, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t pkt;

    if (gossip->waiting == 0)
    {
        return false;
    }
    const uint32_t index = lowest_bit(gossip->waiting);
    SKY_Word_t    *word  = &gossip->words[index];
    SKY_ASSERT(word->links != 0); /* a word that waits has links to go over */
    SKY_ASSERT(word->credit <= CREDIT);
    const uint32_t link = lowest_bit(word->links);
    SKY_ASSERT(index < SKY_SERVICE_WORDS);
    SKY_ASSERT(link < SKY_ISL_COUNT);

    word->links = (uint8_t)(word->links & ~(1u << link));
    if (word->links == 0)
    {
        gossip->waiting &= ~(1u << index);
    }
    SKY_ServiceCore_Request(core, SKY_OP_PURGE, SKY_Torus_Neighbour(&core->cfg.torus, core->cfg.self, (SKY_LinkId_t)link),
                            SKY_ServiceCore_TakeIds(core), &pkt);
    (void)memcpy(pkt.key, word->key, SKY_KEY_BYTES);
    pkt.flags         = SKY_FLAG_GOSSIP;
    pkt.credit        = word->credit;
    pkt.tenant        = word->tenant;
    pkt.block_version = word->version;
    pkt.content       = word->content;
    pkt.epoch         = word->epoch;
    if (word->stripe.code_m > 0)
    {
        SKY_Stripe_ToPacket(&word->stripe, &pkt);
    }
    ++core->counters.gossip_tx;
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    return true;
}
