/**
 * @file
 * Satellites that ask each other at random: no number is used twice under one key.
 */
#define STEPS        20000u
#define MADE_MAX     (2u * STEPS)
#define MADE_PARTIES 6u /* all satellites of the rig */

#include "made_tags.h"
#include "session_rig.h"

static party_t *parties[MADE_PARTIES];

static bool carry_sent(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, wire_t *wire)
{
    const bool was_sent = carry(pkt, key, wire);

    if (was_sent && key != NULL && key->pair == NULL)
    {
        made_add();
    }
    return was_sent;
}

/* Let one party answer what came, at most: handshakes, requests, and what it does not know. */
static bool react(party_t *party, uint64_t now_us, const SKY_Packet_t *pkt, wire_t *back)
{
    SKY_Association_t *association = NULL;
    SKY_Packet_t       reply;
    SKY_TagKey_t       key;

    if (pkt->security == SKY_SUITE_HANDSHAKE)
    {
        return answer(party, now_us, pkt, back);
    }
    const SKY_Admission_t result = SKY_Security_Admit(&party->security, now_us, pkt, ENDPOINT, &association);

    if (result == SKY_ADMIT_DROP)
    {
        return false;
    }
    SKY_Packet_Reply(pkt, party->addr, result == SKY_ADMIT_OK ? SKY_STATUS_NOT_FOUND : SKY_STATUS_UNAUTHENTICATED, &reply);
    if (result == SKY_ADMIT_OK)
    {
        CHECK_EQ(SKY_Security_Prepare(&party->security, now_us, &reply, association, &key), 1);
        return carry_sent(&reply, &key, back);
    }
    reply.spi      = pkt->spi;
    reply.sequence = pkt->sequence;
    return carry_sent(&reply, NULL, back);
}

/* Note what a party does from now on. Some ask for GMAC, if the library can do it. */
static void watch(uint32_t number)
{
    party_t *party = parties[number];

    made_watch(number, &party->rig);
    for (uint32_t i = 0; i < SESSIONS && number % 2u == 0u && (party->rig.crypto.suites & SKY_SUITES_GMAC) != 0u; ++i)
    {
        party->security.sessions[i].session.wanted = SKY_SUITE_GMAC_HEADER;
    }
}

/*
 * Satellites ask each other at random, more than have room, over a network that loses, repeats and delays, and start again. No number is
 * used twice under one key, whoever made the tag, and all goes on.
 */
static void run_at_random(uint64_t seed)
{
    static wire_t     kept[8]; /* on their way, or recorded */
    SKY_SecurityAsk_t out;
    uint64_t          now_us    = NOW;
    unsigned          delivered = 0;
    unsigned          taken     = 0;
    wire_t            wire;
    wire_t            back;

    (void)memset(kept, 0, sizeof(kept));
    made_count = 0;
    open(PEERS);
    for (uint32_t i = 0; i <= PEERS; ++i)
    {
        parties[i] = i == 0u ? &satellite : &peers[i - 1u];
        watch(i);
    }
    for (uint32_t step = 0; step < STEPS; ++step)
    {
        party_t *from = parties[fx_below(&seed, PEERS + 1u)];
        party_t *to   = parties[fx_below(&seed, PEERS + 1u)];
        bool     goes = false;

        now_us += fx_below(&seed, 2000);
        if (fx_below(&seed, 1000) == 0u)
        {
            const uint32_t number = fx_below(&seed, PEERS + 1u);

            close_party(parties[number]);
            open_satellite(parties[number], 1, (uint16_t)(1u + number));
            watch(number);
        }
        if (fx_below(&seed, 500) == 0u)
        {
            SKY_Security_EndSessions(&from->security);
        }
        switch (fx_below(&seed, 8))
        {
            case 0:
                goes = SKY_Security_NextAsk(&from->security, now_us, &out) && carry_sent(&out.pkt, &out.key, &wire);
                break;
            case 1:
                wire = kept[fx_below(&seed, 8)]; /* an old one again */
                goes = wire.len != 0u;
                break;
            default:
                if (from != to)
                {
                    SKY_Packet_t pkt = a_request(from, to, SKY_OP_GET);
                    SKY_TagKey_t key;

                    goes = SKY_Security_Prepare(&from->security, now_us, &pkt, NULL, &key) == 1 && carry_sent(&pkt, &key, &wire);
                }
                break;
        }
        if (goes)
        {
            CHECK_EQ(SKY_Packet_Decode(wire.bytes, wire.len, &wire.pkt), SKY_STATUS_OK);
            if (fx_below(&seed, 4) == 0u)
            {
                kept[fx_below(&seed, 8)] = wire; /* late, or never */
            }
            party_t *receiver = wire.pkt.dst.slot == 1u ? &satellite : &peers[wire.pkt.dst.slot - 2u];

            if (fx_below(&seed, 10) != 0u && wire.pkt.is_request && react(receiver, now_us, &wire.pkt, &back))
            {
                party_t *asker = back.pkt.dst.slot == 1u ? &satellite : &peers[back.pkt.dst.slot - 2u];

                ++delivered;
                if (fx_below(&seed, 10) != 0u)
                {
                    taken += SKY_Security_AdmitResponse(&asker->security, now_us, &back.pkt) ? 1u : 0u;
                }
            }
        }
    }
    CHECK(delivered > STEPS / 20u);
    CHECK(taken > STEPS / 50u);
    CHECK(made_count > STEPS / 10u);
    CHECK(made_is_none_twice());
    (void)printf("  %zu tags, %u answers, %u taken\n", made_count, delivered, taken);
    close_all(PEERS);
}

static void test_no_number_comes_twice_under_one_key(void)
{
    for (uint64_t seed = 1; seed <= 3; ++seed)
    {
        run_at_random(seed * 7919u);
    }
}

int main(void)
{
    RUN(test_no_number_comes_twice_under_one_key);
    return CHECK_RESULT();
}
