/* Placement: layouts against the paper's figures and a plain search, and what moves when the window does. */
#include "sky_placement.h"

#include <string.h>

#include "check.h"
#include "fixture.h"

#define SATELLITES_MAX 2048u
#define FAR            SKY_PLACEMENT_CELL_MAX

typedef struct
{
    uint32_t planes, slots;
} Shape_t;

static const Shape_t shapes[] = {{5, 19}, {4, 4}, {1, 7}, {7, 1}, {2, 2}, {2, 3}, {1, 1}, {3, 2}, {1, 2}, {9, 4}, {6, 20}};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static const SKY_LayoutId_t layouts[] = {SKY_LAYOUT_ROTATION, SKY_LAYOUT_HOP, SKY_LAYOUT_ROTATION_HOP, SKY_LAYOUT_ALL_PLANES};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

static const SKY_Cell_t middle = {3, 4};

static SKY_Placement_t placement;
static SKY_Torus_t     torus;

static uint32_t IndexOf(SKY_Addr_t addr)
{
    return (addr.plane - 1u) * torus.slots + addr.slot - 1u;
}

static SKY_Addr_t WrapOf(SKY_Cell_t cell)
{
    const int64_t    plane = ((int64_t)cell.plane - 1) % torus.planes;
    const int64_t    slot  = ((int64_t)cell.slot - 1) % torus.slots;
    const SKY_Addr_t addr  = {(uint16_t)((plane + torus.planes) % torus.planes + 1),
                              (uint16_t)((slot + torus.slots) % torus.slots + 1)};

    return addr;
}

static void Shape(uint32_t planes, uint32_t slots)
{
    CHECK(SKY_Torus_Init(&torus, planes, slots, false));
}

static void CheckServer(SKY_Cell_t centre, uint32_t server, uint32_t plane, uint32_t slot)
{
    const SKY_Addr_t at = SKY_Placement_Server(&placement, centre, server);

    CHECK_EQ(at.plane, plane);
    CHECK_EQ(at.slot, slot);
}

static void Limits(void)
{
    Shape(5, 19);
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION, 1, middle));
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION_HOP, 95, middle));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION, 0, middle));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION, 96, middle));
    CHECK(!SKY_Placement_Init(&placement, &torus, (SKY_LayoutId_t)0, 9, middle));
    CHECK(!SKY_Placement_Init(&placement, &torus, (SKY_LayoutId_t)5, 9, middle));

    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){FAR, FAR}));
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){-FAR, -FAR}));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){FAR + 1, 1}));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){-FAR - 1, 1}));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){1, FAR + 1}));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, 9, (SKY_Cell_t){1, -FAR - 1}));

    Shape(65535, 65535);
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, SKY_PLACEMENT_SERVERS_MAX, middle));
    CHECK(!SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_HOP, SKY_PLACEMENT_SERVERS_MAX + 1u, middle));
}

static void CheckBoxOf(SKY_LayoutId_t layout, uint32_t servers, uint32_t height, uint32_t width)
{
    CHECK(SKY_Placement_Init(&placement, &torus, layout, servers, middle));
    CHECK_EQ(placement.height, height);
    CHECK_EQ(placement.width, width);
}

static void CheckBox(uint32_t servers, uint32_t height, uint32_t width)
{
    CheckBoxOf(SKY_LAYOUT_ROTATION, servers, height, width);
}

static void Boxes(void)
{
    Shape(5, 19);
    CheckBox(1, 1, 1);
    CheckBox(9, 3, 3);
    CheckBox(10, 3, 4);
    CheckBox(13, 4, 4);
    CheckBox(26, 5, 6);
    CheckBox(37, 5, 8); /* seven wide would need six planes */
    CheckBox(95, 5, 19);
    Shape(19, 5);
    CheckBox(37, 8, 5);
}

static void BoxesOverAllPlanes(void)
{
    Shape(5, 19);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 1, 1, 1);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 4, 4, 1); /* each has a plane of its own */
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 5, 5, 1);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 6, 5, 2);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 12, 5, 3); /* four planes would have room */
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 20, 5, 4);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 95, 5, 19);
    Shape(72, 22);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 20, 20, 1);
    CheckBoxOf(SKY_LAYOUT_ALL_PLANES, 144, 72, 2);
}

/* Check that no plane has more servers than ceil(servers / planes), wherever the centre went, and that jumps to other planes move
 * nothing once each plane has a server. */
static void CheckPlanes(uint32_t servers, SKY_Cell_t centre, SKY_Cell_t after)
{
    uint32_t in_plane[64] = {0};

    for (uint32_t i = 0; i < servers; ++i)
    {
        const SKY_Addr_t at = SKY_Placement_Server(&placement, after, i);

        ++in_plane[at.plane - 1u];
        CHECK(servers < torus.planes || at.plane == SKY_Placement_Server(&placement, centre, i).plane);
    }
    for (uint32_t plane = 0; plane < torus.planes; ++plane)
    {
        CHECK(in_plane[plane] <= (servers + torus.planes - 1u) / torus.planes);
    }
}

static void APlaneHasFewServers(void)
{
    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        Shape(shapes[s].planes, shapes[s].slots);
        for (uint32_t servers = 1; servers <= shapes[s].planes * shapes[s].slots; ++servers)
        {
            CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ALL_PLANES, servers, middle));
            SKY_Placement_AllowSteps(&placement, torus.planes / 2, 1);
            for (int32_t plane = -6; plane <= 6; ++plane)
            {
                CheckPlanes(servers, middle, (SKY_Cell_t){plane, plane * 3});
            }
        }
    }
}

/* Two servers of parity are where the box of ten has room, so the others are where ten are, wherever the window is. */
static void TenOfTwelveAreWhereTenAre(void)
{
    static SKY_Placement_t twelve;

    Shape(5, 19);
    for (uint32_t layout = SKY_LAYOUT_ROTATION; layout <= SKY_LAYOUT_ROTATION_HOP; ++layout)
    {
        CHECK(SKY_Placement_Init(&placement, &torus, (SKY_LayoutId_t)layout, 10, middle));
        CHECK(SKY_Placement_Init(&twelve, &torus, (SKY_LayoutId_t)layout, 12, middle));
        for (int32_t step = 0; step < 12; ++step)
        {
            const SKY_Cell_t centre = {middle.plane + step % 3, middle.slot - step};

            for (uint32_t i = 0; i < 10u; ++i)
            {
                CHECK(SKY_Addr_Equal(SKY_Placement_Server(&placement, centre, i), SKY_Placement_Server(&twelve, centre, i)));
            }
        }
    }
}

static void CheckLayout(SKY_LayoutId_t layout, const uint16_t expected[][2], uint32_t servers)
{
    CHECK(SKY_Placement_Init(&placement, &torus, layout, servers, middle));
    for (uint32_t i = 0; i < servers; ++i)
    {
        CheckServer(middle, i, expected[i][0], expected[i][1]);
    }
    CheckServer(middle, servers, expected[0][0], expected[0][1]); /* modulo */
}

static void ThePapersFigures(void)
{
    static const uint16_t figure_4[][2] = {{2, 3}, {2, 4}, {2, 5}, {3, 3}, {3, 4}, {3, 5}, {4, 3}, {4, 4}, {4, 5}};
    static const uint16_t figure_6[][2] = {{3, 4}, {2, 4}, {3, 5}, {4, 4}, {3, 3}, {1, 4}, {2, 5}, {2, 3}};
    static const uint16_t figure_7[][2] = {{3, 4}, {2, 4}, {3, 5}, {4, 4}, {3, 3}, {2, 5}, {2, 3}, {4, 5}, {4, 3}};

    Shape(5, 19);
    CheckLayout(SKY_LAYOUT_ROTATION, figure_4, 9);
    CheckLayout(SKY_LAYOUT_HOP, figure_6, 8);
    CheckLayout(SKY_LAYOUT_ROTATION_HOP, figure_7, 9);
    /* Figure 8: a slot further west, chunks 6, 3 and 8 (from 1) go from slot 5 to slot 2. */
    for (uint32_t i = 0; i < 9u; ++i)
    {
        CheckServer((SKY_Cell_t){3, 3}, i, figure_7[i][0], figure_7[i][1] == 5u ? 2u : figure_7[i][1]);
    }
}

/* The satellites of the window around @p centre, cell by cell. */
static void Window(SKY_Cell_t centre, bool *inside)
{
    (void)memset(inside, 0, SATELLITES_MAX * sizeof(*inside));
    for (int32_t plane = 0; plane < placement.height; ++plane)
    {
        for (int32_t slot = 0; slot < placement.width; ++slot)
        {
            const SKY_Cell_t cell = {centre.plane - placement.height / 2 + plane, centre.slot - placement.width / 2 + slot};

            inside[IndexOf(WrapOf(cell))] = true;
        }
    }
}

/* Rings as a search over neighbours finds them. @return how many */
static uint32_t Search(SKY_Cell_t centre, bool boxed, SKY_Addr_t *found)
{
    static bool seen[SATELLITES_MAX], inside[SATELLITES_MAX];
    uint32_t    count = 0;

    Window(centre, inside);
    (void)memset(seen, 0, sizeof(seen));
    found[count++]          = WrapOf(centre);
    seen[IndexOf(found[0])] = true;
    for (uint32_t from = 0; from < count; ++from)
    {
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            const SKY_Addr_t next = SKY_Torus_Neighbour(&torus, found[from], (SKY_LinkId_t)link);

            if (next.plane != 0u && !seen[IndexOf(next)] && (!boxed || inside[IndexOf(next)]))
            {
                seen[IndexOf(next)] = true;
                found[count++]      = next;
            }
        }
    }
    return count;
}

static void CheckRings(SKY_Cell_t centre, uint32_t servers)
{
    static SKY_Addr_t found[SATELLITES_MAX];

    for (uint32_t boxed = 0; boxed < 2u; ++boxed)
    {
        CHECK(SKY_Placement_Init(&placement, &torus, boxed ? SKY_LAYOUT_ROTATION_HOP : SKY_LAYOUT_HOP, servers, centre));
        CHECK(Search(centre, boxed != 0u, found) >= servers);
        for (uint32_t i = 0; i < servers; ++i)
        {
            CheckServer(centre, i, found[i].plane, found[i].slot);
        }
    }
}

static void RingsAreThoseOfASearch(void)
{
    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        Shape(shapes[s].planes, shapes[s].slots);
        for (uint32_t servers = 1; servers <= shapes[s].planes * shapes[s].slots; ++servers)
        {
            CheckRings(middle, servers);
            CheckRings((SKY_Cell_t){-20, 40}, servers);
        }
    }
    Shape(72, 22);
    CheckRings(middle, SKY_PLACEMENT_SERVERS_MAX);
}

static void CheckDistinct(SKY_Cell_t centre)
{
    static bool taken[SATELLITES_MAX], inside[SATELLITES_MAX];

    Window(centre, inside);
    (void)memset(taken, 0, sizeof(taken));
    for (uint32_t i = 0; i < placement.servers; ++i)
    {
        const SKY_Addr_t at = SKY_Placement_Server(&placement, centre, i);

        CHECK(SKY_Torus_Contains(&torus, at));
        CHECK(!taken[IndexOf(at)]);
        taken[IndexOf(at)] = true;
        CHECK(inside[IndexOf(at)] || placement.layout == SKY_LAYOUT_HOP);
    }
}

/* Only what falls out of the window moves, to what has come in; a step along a plane (slot) moves within planes (slots) only. */
static void CheckStep(SKY_Cell_t before, SKY_Cell_t after)
{
    static bool inside_before[SATELLITES_MAX], inside_after[SATELLITES_MAX];

    Window(before, inside_before);
    Window(after, inside_after);
    for (uint32_t i = 0; i < placement.servers; ++i)
    {
        const SKY_Addr_t from  = SKY_Placement_Server(&placement, before, i);
        const SKY_Addr_t to    = SKY_Placement_Server(&placement, after, i);
        const bool       stays = SKY_Addr_Equal(from, to);

        CHECK_EQ(stays, placement.layout == SKY_LAYOUT_HOP || inside_after[IndexOf(from)]);
        CHECK(stays || !inside_before[IndexOf(to)]);
        CHECK(before.plane != after.plane || from.plane == to.plane);
        CHECK(before.slot != after.slot || from.slot == to.slot);
    }
    CheckDistinct(after);
}

static void CheckWalk(SKY_LayoutId_t layout, uint32_t servers, int32_t reach_planes, int32_t reach_slots, uint64_t *random)
{
    SKY_Cell_t centre = middle;

    CHECK(SKY_Placement_Init(&placement, &torus, layout, servers, centre));
    SKY_Placement_AllowSteps(&placement, (uint32_t)reach_planes, (uint32_t)reach_slots);
    CHECK(placement.height <= torus.planes && placement.width <= torus.slots);
    CheckDistinct(centre);
    for (uint32_t i = 0; i < 8u; ++i)
    {
        SKY_Cell_t after = centre;

        after.plane += (int32_t)fx_below(random, 2u * (uint32_t)reach_planes + 1u) - reach_planes;
        after.slot += (int32_t)fx_below(random, 2u * (uint32_t)reach_slots + 1u) - reach_slots;
        CheckStep(centre, after);
        centre = after;
    }
}

static void OnlyWhatFallsOutMoves(void)
{
    uint64_t random = 7;

    for (uint32_t s = 0; s < SHAPES; ++s)
    {
        Shape(shapes[s].planes, shapes[s].slots);
        for (uint32_t servers = 1; servers <= shapes[s].planes * shapes[s].slots; ++servers)
        {
            for (uint32_t i = 0; i < LAYOUTS; ++i)
            {
                CheckWalk(layouts[i], servers, 0, 1, &random);
                CheckWalk(layouts[i], servers, 1, 1, &random);
                CheckWalk(layouts[i], servers, torus.planes / 2, torus.slots / 2, &random);
            }
        }
    }
}

static void FarJumps(void)
{
    Shape(4, 20);
    CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION, 9, middle));
    SKY_Placement_AllowSteps(&placement, 1, 17);
    CHECK_EQ(placement.height, 3);
    CHECK_EQ(placement.width, 3);
    /* Three of four planes, and a jump over two: plane 2 would stay and have to take another's share. */
    SKY_Placement_AllowSteps(&placement, 2, 18);
    CHECK_EQ(placement.height, 4);
    CHECK_EQ(placement.width, 20);
    CheckStep(middle, (SKY_Cell_t){5, 5});
    CheckServer(middle, 0, 2, 3);
    CheckServer((SKY_Cell_t){5, -5}, 0, 2, 3);
    SKY_Placement_AllowSteps(&placement, UINT32_MAX, UINT32_MAX);
    CHECK_EQ(placement.height, 4);
}

/* As far from each other as coordinates go: nothing overflows (the sanitizer looks on). */
static void FarAway(void)
{
    static const SKY_Cell_t corners[] = {{-FAR, -FAR}, {-FAR, FAR}, {FAR, -FAR}, {FAR, FAR}};

    Shape(5, 19);
    for (uint32_t i = 0; i < 4u; ++i)
    {
        CHECK(SKY_Placement_Init(&placement, &torus, SKY_LAYOUT_ROTATION_HOP, 10, corners[i]));
        SKY_Placement_AllowSteps(&placement, 2, 9);
        for (uint32_t k = 0; k < 4u; ++k)
        {
            CheckDistinct(corners[k]);
        }
    }
}

int main(void)
{
    RUN(Limits);
    RUN(Boxes);
    RUN(BoxesOverAllPlanes);
    RUN(APlaneHasFewServers);
    RUN(TenOfTwelveAreWhereTenAre);
    RUN(ThePapersFigures);
    RUN(RingsAreThoseOfASearch);
    RUN(OnlyWhatFallsOutMoves);
    RUN(FarJumps);
    RUN(FarAway);
    return CHECK_RESULT();
}
