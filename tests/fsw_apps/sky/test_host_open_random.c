/**
 * @file
 * Many blocks and questions over a network that loses, doubles and reorders packets, to satellites that begin anew at any time: all of
 * them end, the host never spins, and no nonce is used twice (open_rig.h).
 */
#include "open_rig.h"

#define BLOCKS 8u
#define ASKED  24u
#define ROUNDS 400u

typedef struct
{
    SKY_HostBlock_t block;
    SKY_HostPlace_t places[3], fallbacks[3];
    uint8_t         have[16];
    uint8_t         data[100 * CHUNK];
    uint32_t        number;
    bool            is_busy;
} job_t;

static job_t              jobs[BLOCKS];
static SKY_HostQuestion_t questions[ASKED];
static bool               is_asked[ASKED];
static uint64_t           dice;
static uint32_t           done, got, answered, ended;

/* Straight to a satellite, or through one of three. */
static SKY_HostPlace_t any_way(uint32_t i)
{
    return place_of(i, fx_below(&dice, 2) == 0 ? i : fx_below(&dice, 3));
}

static void begin_block(job_t *job)
{
    const uint32_t number = fx_below(&dice, 12);
    const uint32_t kind   = fx_below(&dice, 2);

    for (uint32_t i = 0; i < 3; ++i)
    {
        job->places[i]    = any_way((number + i) % SATELLITES);
        job->fallbacks[i] = any_way(fx_below(&dice, SATELLITES));
    }
    job->number = number;
    (void)memset(job->data, 0, sizeof(job->data));
    if (kind == SKY_HOST_PUT)
    {
        data_fill(job->data, number, sizeof(job->data));
    }
    block_make(&job->block, kind, number, 4u + 7u * number, job->places, 3, job->data);
    job->block.deadline_ms = 1000u + fx_below(&dice, 4000);
    if (kind == SKY_HOST_GET && fx_below(&dice, 2) == 0)
    {
        (void)memset(job->have, 0, sizeof(job->have));
        job->block.have      = job->have;
        job->block.fallbacks = job->fallbacks;
        job->block.rounds    = 1;
    }
    job->is_busy = SKY_Host_Begin(&net.host, net.now_us, &job->block) == SKY_HOST_BEGUN;
    CHECK(job->is_busy);
}

static void begin_question(uint32_t i)
{
    questions[i]             = ping(0, 0);
    questions[i].place       = any_way(fx_below(&dice, SATELLITES));
    questions[i].deadline_ms = 500u + fx_below(&dice, 4000);
    ask(&questions[i]);
    is_asked[i] = true;
}

/* What has come is what was put. */
static void check_data(const job_t *job)
{
    static uint8_t there[sizeof(jobs[0].data)];

    if (job->block.kind == SKY_HOST_GET && job->block.status == SKY_STATUS_DONE)
    {
        data_fill(there, job->number, sizeof(there));
        CHECK(memcmp(there, job->data, job->block.stripe.block_len) == 0);
        ++got;
    }
}

static void collect(void)
{
    forget_ended();
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        if (jobs[i].is_busy && jobs[i].block.status != SKY_STATUS_RUNNING)
        {
            jobs[i].is_busy = false;
            check_data(&jobs[i]);
            done += jobs[i].block.status == SKY_STATUS_DONE ? 1u : 0u;
            ++ended;
        }
    }
    for (uint32_t i = 0; i < ASKED; ++i)
    {
        if (is_asked[i] && questions[i].status != SKY_STATUS_RUNNING)
        {
            is_asked[i] = false;
            answered += questions[i].status == SKY_STATUS_DONE ? 1u : 0u;
            ++ended;
        }
    }
}

static void check_random(sky_mode_t mode, uint32_t peers, uint64_t seed, uint8_t wanted)
{
    sizes_t  sizes = usual;
    uint32_t deaf  = 0;

    sizes.peers  = peers;
    sizes.wanted = wanted;
    net_open(mode, mode, sizes);
    dice          = seed;
    net.random    = seed + 1u;
    net.loss      = 50;
    net.twice     = 50;
    net.jitter_us = 8000;
    ended         = 0;
    for (uint32_t round = 0; round < ROUNDS; ++round)
    {
        const uint32_t job = fx_below(&dice, BLOCKS);
        const uint32_t one = fx_below(&dice, ASKED);

        if (!jobs[job].is_busy)
        {
            begin_block(&jobs[job]);
        }
        if (!is_asked[one])
        {
            begin_question(one);
        }
        if (fx_below(&dice, 8) == 0)
        {
            const uint32_t sat = fx_below(&dice, SATELLITES);

            net.sats[deaf].is_deaf = false;
            sat_boot(sat, mode);
            deaf                   = fx_below(&dice, SATELLITES);
            net.sats[deaf].is_deaf = fx_below(&dice, 2) == 0;
        }
        if (fx_below(&dice, 40) == 0)
        {
            net_wait(60u * SECOND_US);
        }
        net_run(net.now_us + fx_below(&dice, 200000));
        collect();
    }
    net_run_all();
    collect();
    for (uint32_t i = 0; i < BLOCKS; ++i)
    {
        CHECK(!jobs[i].is_busy);
    }
    for (uint32_t i = 0; i < ASKED; ++i)
    {
        CHECK(!is_asked[i]);
    }
    CHECK(ended > ROUNDS / 2u);
    CHECK(done > ended / 10u); /* most GETs find nothing */
    CHECK(got > 5);
    uint64_t replayed = 0;

    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        replayed += net.sats[i].security.counters.replayed;
    }
    CHECK_EQ(replayed > 0, mode == MODE_KEYED); /* doubled packets are not acted upon */
    CHECK_EQ(net.nonce_count > 0, mode == MODE_KEYED);
    (void)printf("  %u ended, %u blocks done, %u of them came, %u answers, %u nonces\n", ended, done, got, answered,
                 net.nonce_count);
}

/* Enough came through all that. */
static void check_sums(void)
{
    CHECK(done > 500);
    CHECK(got > 200);
    CHECK(answered > 1000);
    done = got = answered = 0;
}

static void test_cookies(void)
{
    for (uint64_t seed = 1; seed <= 6; ++seed)
    {
        check_random(MODE_COOKIE, PEERS_MAX, seed, SKY_SUITE_BLAKE2B_HEADER);
    }
    check_random(MODE_COOKIE, 3, 7, SKY_SUITE_BLAKE2B_HEADER);
    check_sums();
}

static void test_associations(void)
{
    for (uint64_t seed = 11; seed <= 16; ++seed)
    {
        check_random(MODE_KEYED, PEERS_MAX, seed, SKY_SUITE_BLAKE2B_HEADER);
    }
    check_random(MODE_KEYED, 5, 17, SKY_SUITE_BLAKE2B_HEADER);
    check_random(MODE_KEYED, 3, 18, SKY_SUITE_BLAKE2B_HEADER);
    check_random(MODE_KEYED, PEERS_MAX, 19, SKY_SUITE_GMAC_HEADER); /* BLAKE2b where there is no GMAC */
    check_random(MODE_KEYED, PEERS_MAX, 20, SKY_SUITE_GMAC_PACKET);
    check_sums();
}

int main(void)
{
    RUN(test_cookies);
    RUN(test_associations);
    net_close();
    return CHECK_RESULT();
}
