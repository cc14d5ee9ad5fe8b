/* What a window covers, and who takes over from what falls out of it. */
#include "sky_window.h"

#include "check.h"

static SKY_Torus_t     torus;
static SKY_Placement_t placement;

static void lay_out(uint32_t planes, uint32_t slots, SKY_LayoutId_t layout, uint32_t servers)
{
    const SKY_Cell_t origin = {3, 4};

    CHECK(SKY_Torus_Init(&torus, planes, slots, false));
    CHECK(SKY_Placement_Init(&placement, &torus, layout, servers, origin));
    SKY_Placement_AllowSteps(&placement, 1, 1);
}

/* How many satellites a window covers; each of them by all ways around the torus. */
static uint32_t covered(SKY_Cell_t centre)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < (uint32_t)torus.planes * torus.slots; ++i)
    {
        const SKY_Addr_t one = {(uint16_t)(1u + i / torus.slots), (uint16_t)(1u + i % torus.slots)};

        count += SKY_Window_Covers(&placement, centre, one) ? 1u : 0u;
    }
    return count;
}

static void test_servers_are_covered(void)
{
    static const SKY_Cell_t centres[] = {
        {3, 4}, {4, 4}, {-7, 40}, {1000, -1000}, {SKY_PLACEMENT_CELL_MAX, -SKY_PLACEMENT_CELL_MAX}};
    SKY_Addr_t found[SKY_PLACEMENT_SERVERS_MAX];

    for (uint32_t servers = 1; servers <= 95u; ++servers)
    {
        lay_out(5, 19, SKY_LAYOUT_ROTATION_HOP, servers);
        for (uint32_t i = 0; i < sizeof(centres) / sizeof(centres[0]); ++i)
        {
            SKY_Window_Servers(&placement, centres[i], found);
            for (uint32_t server = 0; server < servers; ++server)
            {
                CHECK(SKY_Addr_Equal(found[server], SKY_Placement_Server(&placement, centres[i], server)));
                CHECK(SKY_Window_Covers(&placement, centres[i], found[server]));
            }
            CHECK_EQ(covered(centres[i]), placement.height * placement.width);
        }
    }
}

static void test_what_is_not_covered(void)
{
    static const SKY_Cell_t centre  = {3, 4};
    static const SKY_Addr_t inside  = {2, 2};
    static const SKY_Addr_t north   = {1, 2};
    static const SKY_Addr_t west    = {2, 1};
    static const SKY_Addr_t nowhere = {6, 2};
    static const SKY_Addr_t ground  = {0, 2};

    lay_out(5, 19, SKY_LAYOUT_ROTATION, 10);
    CHECK(SKY_Window_Covers(&placement, centre, inside));
    CHECK(!SKY_Window_Covers(&placement, centre, north));
    CHECK(!SKY_Window_Covers(&placement, centre, west));
    CHECK(!SKY_Window_Covers(&placement, centre, nowhere));
    CHECK(!SKY_Window_Covers(&placement, centre, ground));
    lay_out(5, 19, SKY_LAYOUT_HOP, 10); /* it has no window */
    CHECK_EQ(covered(centre), 0);
}

/* Whoever hands on to its heir at each step brings each share to its server, also over steps at once. */
static void test_heirs_are_the_servers(void)
{
    static const SKY_Cell_t way[] = {{3, 4}, {3, 3}, {3, 2}, {4, 2}, {5, 1}, {5, 0}, {5, -1}, {4, -2}};
    const uint32_t          steps = sizeof(way) / sizeof(way[0]);

    for (uint32_t servers = 1; servers <= 95u; ++servers)
    {
        lay_out(5, 19, SKY_LAYOUT_ROTATION, servers);
        for (uint32_t server = 0; server < servers; ++server)
        {
            SKY_Addr_t at = SKY_Placement_Server(&placement, way[0], server);

            for (uint32_t i = 1; i < steps; ++i)
            {
                const SKY_Addr_t before = SKY_Placement_Server(&placement, way[i - 1u], server);

                at = SKY_Window_Heir(&placement, way[i - 1u], way[i], at);
                CHECK(SKY_Addr_Equal(at, SKY_Placement_Server(&placement, way[i], server)));
                CHECK(SKY_Addr_Equal(SKY_Window_Heir(&placement, way[i - 1u], way[steps - 1u], before),
                                     SKY_Placement_Server(&placement, way[steps - 1u], server)));
            }
        }
    }
}

static void test_who_has_no_heir_is_its_own(void)
{
    static const SKY_Cell_t before  = {3, 4};
    static const SKY_Cell_t after   = {3, 3};
    static const SKY_Addr_t outside = {3, 12};
    static const SKY_Addr_t leaves  = {3, 5};
    static const SKY_Addr_t enters  = {3, 1};
    static const SKY_Addr_t stays   = {3, 4};

    lay_out(5, 19, SKY_LAYOUT_ROTATION, 10);
    CHECK(SKY_Addr_Equal(SKY_Window_Heir(&placement, before, after, outside), outside));
    CHECK(SKY_Addr_Equal(SKY_Window_Heir(&placement, before, after, leaves), enters));
    CHECK(SKY_Addr_Equal(SKY_Window_Heir(&placement, before, after, stays), stays));
    lay_out(5, 19, SKY_LAYOUT_HOP, 10);
    CHECK(SKY_Addr_Equal(SKY_Window_Heir(&placement, before, after, leaves), leaves));
}

int main(void)
{
    RUN(test_servers_are_covered);
    RUN(test_what_is_not_covered);
    RUN(test_heirs_are_the_servers);
    RUN(test_who_has_no_heir_is_its_own);
    return CHECK_RESULT();
}
