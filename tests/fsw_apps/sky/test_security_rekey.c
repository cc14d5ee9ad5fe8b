/**
 * @file
 * New keys for satellites that talk to each other: nobody loses its links, whatever the order in which the mission gets to them.
 */
#include "rekey_rig.h"
#include "security_rig.h"

#define SLOTS 4u
#define PAGE  6u

static party_t one, two;

/* Send a command. It is counted, whatever becomes of it. */
static SKY_Status_t send_to(party_t *satellite, uint8_t sender, const uint8_t *payload, uint32_t bytes)
{
    const SKY_RekeyState_t *state = &satellite->security.rekey;
    const uint64_t          done = state->done, refused = state->refused;
    const SKY_Status_t      status = SKY_Security_Rekey(&satellite->security, sender, SLOTS, payload, bytes);

    CHECK_EQ(state->done, done + (status == SKY_STATUS_OK ? 1u : 0u));
    CHECK_EQ(state->refused, refused + (status == SKY_STATUS_OK ? 0u : 1u));
    return status;
}

static SKY_Status_t command(party_t *satellite, uint8_t sender, uint8_t what, uint8_t generation)
{
    uint8_t payload[SKY_REKEY_BYTES];

    return send_to(satellite, sender, payload, rekey_command(what, generation, payload));
}

static SKY_Status_t load_master(party_t *satellite)
{
    const rekey_wrap_t wrap = {&satellite->rig.crypto, satellite->addr, 0, master_0, NULL};
    uint8_t            payload[REKEY_LOAD_BYTES];

    return send_to(satellite, 0, payload, rekey_load(&wrap, 1, master_1, payload));
}

static SKY_Status_t load_peers(party_t *satellite, uint8_t under)
{
    const rekey_wrap_t wrap = {&satellite->rig.crypto, satellite->addr, under, under == 0 ? master_0 : master_1, NULL};
    uint8_t            payload[REKEY_MOST_BYTES];

    return send_to(satellite, under, payload, rekey_load_peers(&wrap, 1, 0, PAGE, payload));
}

static void load_all(party_t *satellite)
{
    CHECK_EQ(load_master(satellite), SKY_STATUS_OK);
    CHECK_EQ(load_peers(satellite, 0), SKY_STATUS_OK);
}

static void activate(party_t *satellite)
{
    load_all(satellite);
    CHECK_EQ(command(satellite, 0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
}

static void forget(party_t *satellite)
{
    CHECK_EQ(command(satellite, 1, SKY_REKEY_FORGET, 0), SKY_STATUS_OK);
}

static void open_both(void)
{
    open_satellite(&one, 1, 1);
    open_satellite(&two, 1, 2);
    one.generations = 1; /* the mission's tables have keys of generation 0 */
    two.generations = 1;
}

static void close_both(void)
{
    close_party(&one);
    close_party(&two);
}

static SKY_Session_t *session_of(party_t *asker)
{
    return &asker->security.sessions[0].session;
}

/* Let a satellite ask once. @return true if the other one answers; @p generation  the one that was asked with */
static bool asks(party_t *asker, party_t *other, uint64_t now_us, uint8_t *generation, wire_t *back)
{
    SKY_SecurityAsk_t out;
    wire_t            there;

    want_session(&asker->security, now_us, other->addr);
    CHECK(SKY_Security_NextAsk(&asker->security, now_us, &out));
    *generation = out.payload[1];
    CHECK(carry(&out.pkt, &out.key, &there));
    return answer(other, now_us, &there.pkt, back);
}

/* Let a satellite ask for a session until it has one. @return the generation under which it was granted */
static uint8_t associate_with(party_t *asker, party_t *other, uint64_t *now_us)
{
    wire_t  back;
    uint8_t generation = 99;

    SKY_Security_EndSessions(&asker->security);
    for (uint32_t tries = 0; tries < 4u && session_of(asker)->state != SKY_SESSION_ESTABLISHED; ++tries)
    {
        if (asks(asker, other, *now_us, &generation, &back))
        {
            CHECK(!SKY_Security_AdmitResponse(&asker->security, *now_us, &back.pkt));
        }
        *now_us += RETRY_US;
    }
    CHECK_EQ(session_of(asker)->state, SKY_SESSION_ESTABLISHED);
    return generation;
}

static void test_links_live_through_a_change(void)
{
    uint64_t now_us = 1;

    open_both();
    CHECK_EQ(associate_with(&one, &two, &now_us), 0);
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    load_all(&one);
    CHECK_EQ(associate_with(&one, &two, &now_us), 0); /* keys that wait are for nothing */
    activate(&one);
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ESTABLISHED); /* it goes on */
    CHECK_EQ(one.security.generation, 1);
    CHECK_EQ(associate_with(&one, &two, &now_us), 0); /* all that the other one knows */
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    activate(&two);
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(associate_with(&two, &one, &now_us), 1);
    forget(&one);
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ESTABLISHED); /* it is under the newer key */
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(associate_with(&two, &one, &now_us), 1);
    forget(&two);
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(associate_with(&two, &one, &now_us), 1);
    close_both();
}

static void test_who_has_the_old_key_alone_is_shut_out_at_last(void)
{
    uint64_t now_us = 1;
    uint8_t  generation;
    wire_t   back;

    open_both();
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    activate(&one);
    CHECK_EQ(one.security.associations.half_open, 1);
    forget(&one);
    CHECK_EQ(one.security.associations.half_open, 0);
    SKY_Security_EndSessions(&two.security);
    for (uint32_t tries = 0; tries < 4u; ++tries)
    {
        CHECK(!asks(&two, &one, now_us, &generation, &back));
        now_us += RETRY_US;
        CHECK(!asks(&one, &two, now_us, &generation, &back));
        CHECK_EQ(generation, 1);
        now_us += RETRY_US;
    }
    close_both();
}

static void test_without_new_ones_the_keys_of_the_tables_stay(void)
{
    uint64_t now_us = 1;

    open_both();
    CHECK_EQ(load_master(&one), SKY_STATUS_OK);
    CHECK_EQ(command(&one, 0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_OK);
    CHECK_EQ(one.security.generation, 0);
    CHECK_EQ(associate_with(&one, &two, &now_us), 0);
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    forget(&one);
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ESTABLISHED); /* nothing about the other one has changed */
    CHECK(one.security.associations.half_open > 0u);
    CHECK_EQ(associate_with(&one, &two, &now_us), 0);
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    CHECK_EQ(load_peers(&one, 1), SKY_STATUS_OK); /* late; wrapped under the key of the same generation */
    CHECK_EQ(one.security.generation, 1);
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_NONE); /* the key of before would be refused now */
    CHECK_EQ(one.security.associations.half_open, 0);
    activate(&two);
    CHECK_EQ(load_peers(&two, 1), SKY_STATUS_OK); /* once more */
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(associate_with(&two, &one, &now_us), 1);
    close_both();
}

/* Tables of the mission may bring keys with others before the master key. */
static void test_keys_of_the_tables_come_in_any_order(void)
{
    uint64_t now_us = 1;

    open_both();
    one.generations = 7;
    two.generations = 3;
    CHECK(SKY_Security_SetMaster(&one.security, 1, master_1));
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    forget(&one);
    SKY_Security_EndSessions(&two.security);
    for (uint32_t tries = 0; tries < 4u; ++tries)
    {
        uint8_t generation;
        wire_t  back;

        CHECK(tries != 2u || SKY_Security_SetMaster(&one.security, 2, master_2)); /* and another one */
        CHECK(!asks(&two, &one, now_us, &generation, &back));                     /* a newer one is there */
        now_us += RETRY_US;
    }
    close_both();
}

static void test_a_change_is_given_up(void)
{
    uint64_t now_us = 1;

    open_both();
    activate(&one);
    activate(&two);
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    CHECK_EQ(command(&one, 0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    CHECK_EQ(one.security.generation, 0);
    CHECK(!SKY_RekeyPeers_Has(&one.security.rekey, 1));
    CHECK_EQ(associate_with(&one, &two, &now_us), 0);
    CHECK_EQ(associate_with(&two, &one, &now_us), 0);
    close_both();
}

static void test_a_change_is_given_up_before_it_begins(void)
{
    open_both();
    load_all(&one);
    CHECK_EQ(command(&one, 0, SKY_REKEY_ACTIVATE, 9), SKY_STATUS_NOT_FOUND);
    CHECK(SKY_RekeyPeers_Has(&one.security.rekey, 1));
    CHECK_EQ(command(&one, 0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK);
    CHECK(!SKY_RekeyPeers_Has(&one.security.rekey, 1));
    CHECK_EQ(command(&one, 0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);
    close_both();
}

/* Also over keys that came over the air, active ones and those that wait. So has a new place, of which those keys are not. */
static void test_a_table_has_the_last_word(void)
{
    SKY_MasterKey_t masters[SKY_MASTER_KEYS] = {{.is_set = true, .generation = 0}, {.is_set = true, .generation = 1}};
    uint64_t        now_us                   = 1;

    open_both();
    (void)memcpy(masters[0].key, master_0, SKY_CRYPTO_KEY_BYTES);
    (void)memcpy(masters[1].key, master_1, SKY_CRYPTO_KEY_BYTES);
    activate(&one);
    activate(&two);
    CHECK_EQ(associate_with(&one, &two, &now_us), 1);
    SKY_Security_TakeMasters(&one.security, masters);
    CHECK(!SKY_RekeyPeers_Has(&one.security.rekey, 1));
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_NONE); /* it began under such a key */
    close_both();

    open_both();
    load_all(&one);
    SKY_Security_Move(&one.security, (SKY_Addr_t){2, 2});
    CHECK(!SKY_RekeyPeers_Has(&one.security.rekey, 1));
    CHECK_EQ(command(&one, 0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);
    close_both();
}

static void test_a_late_answer_to_the_question_of_before_counts(void)
{
    uint64_t now_us = 1;
    uint8_t  generation;
    wire_t   first, second;

    open_both();
    activate(&one);
    activate(&two);
    CHECK(asks(&one, &two, now_us, &generation, &first));
    CHECK_EQ(generation, 1);
    now_us += RETRY_US;
    CHECK(asks(&one, &two, now_us, &generation, &second));
    CHECK_EQ(generation, 0);
    CHECK(!SKY_Security_AdmitResponse(&one.security, now_us, &first.pkt));
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(one.security.counters.unauthenticated, 0);

    SKY_Security_EndSessions(&one.security);
    CHECK(asks(&one, &two, now_us, &generation, &first));
    first.bytes[first.len - 3u] = (uint8_t)(first.bytes[first.len - 3u] ^ 1u); /* of the tag */
    CHECK(!SKY_Security_AdmitResponse(&one.security, now_us, &first.pkt));
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ASKING);
    CHECK_EQ(one.security.counters.unauthenticated, 1);
    close_both();
}

static void test_what_is_refused_changes_nothing(void)
{
    uint8_t  payload[SKY_REKEY_BYTES];
    uint64_t now_us = 1;

    open_both();
    CHECK_EQ(associate_with(&one, &two, &now_us), 0);
    CHECK_EQ(command(&one, 0, 9, 1), SKY_STATUS_BAD_OP);
    CHECK_EQ(send_to(&one, 0, payload, 0), SKY_STATUS_BAD_OP);
    CHECK_EQ(command(&one, 0, SKY_REKEY_FORGET, 0), SKY_STATUS_BAD_KEY);
    CHECK_EQ(command(&one, 0, SKY_REKEY_FORGET, 1), SKY_STATUS_OK); /* it is not there */
    CHECK_EQ(load_peers(&one, 0), SKY_STATUS_OK);
    CHECK_EQ(command(&one, 0, SKY_REKEY_ACTIVATE, 1), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(session_of(&one)->state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(one.security.generation, 0);
    close_both();
}

int main(void)
{
    RUN(test_links_live_through_a_change);
    RUN(test_who_has_the_old_key_alone_is_shut_out_at_last);
    RUN(test_without_new_ones_the_keys_of_the_tables_stay);
    RUN(test_keys_of_the_tables_come_in_any_order);
    RUN(test_a_change_is_given_up);
    RUN(test_a_change_is_given_up_before_it_begins);
    RUN(test_a_table_has_the_last_word);
    RUN(test_a_late_answer_to_the_question_of_before_counts);
    RUN(test_what_is_refused_changes_nothing);
    return CHECK_RESULT();
}
