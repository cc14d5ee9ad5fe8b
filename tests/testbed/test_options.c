/* Options of a satellite: what is taken, and what is said about what is not. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "options.h"

#define WORDS_MAX 32

static SKYSAT_Options_t options;
static char             why[256];

/* Parse the words of @p line after the program's name. */
static bool Parse(const char *line)
{
    static char text[512];
    const char *words[WORDS_MAX] = {"skysat"};
    int         count            = 1;
    char       *rest             = text;
    (void)strncpy(text, line, sizeof text - 1);
    for (char *word = strtok_r(text, " ", &rest); word != NULL && count < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
    {
        words[count++] = word;
    }
    return SKYSAT_ParseOptions(count, words, &options, why, sizeof why);
}

static void Refused(const char *line, const char *reason)
{
    CHECK(!Parse(line));
    if (strcmp(why, reason) != 0)
    {
        (void)printf("said: %s\n", why);
    }
    CHECK(strcmp(why, reason) == 0);
}

#define PLACE "--plane 3 --slot 10 --planes 5 --slots 19 "

static void DefaultsAreThePapers(void)
{
    CHECK(Parse(PLACE));
    CHECK_EQ(options.plane, 3);
    CHECK_EQ(options.slot, 10);
    CHECK_EQ(options.port, 4919);
    CHECK_EQ(options.mtu, 65507);
    CHECK_EQ(options.store_mib, 16);
    CHECK_EQ(options.slot_bytes, 6144);
    CHECK_EQ(options.credit, 20);
    CHECK_EQ(options.hello_s, 10);
    CHECK_EQ(options.seam_cut, 0);
    CHECK_EQ(options.gossip, 0);
    CHECK_EQ(options.scrub_ms, 600000);
    CHECK_EQ(options.window.servers, 0);
    CHECK_EQ(options.handover_ms, 30000);
    CHECK(!options.until_stdin_ends);
    CHECK(!options.log_json);
    CHECK_EQ(SKYSAT_Address(&options, 3, 10), 0x7F12030A);
}

static void EverythingCanBeSet(void)
{
    CHECK(Parse(PLACE "--network 198.18.0.0 --port 5000 --mtu 1472 --store-mib 32 --seam-cut --gossip --scrub-ms 60000 "
                      "--handover-ms 45000 --until-stdin-ends --log-json --window all_planes:20:3:10 "
                      "--link north:delay_us=7600,jitter_us=10,rate_kbps=1000,loss_ppm=5,cut=1"));
    CHECK(options.until_stdin_ends);
    CHECK(options.log_json);
    CHECK_EQ(SKYSAT_Address(&options, 1, 1), 0xC6120101);
    CHECK_EQ(options.port, 5000);
    CHECK_EQ(options.mtu, 1472);
    CHECK_EQ(options.seam_cut, 1);
    CHECK_EQ(options.gossip, 1);
    CHECK_EQ(options.scrub_ms, 60000);
    CHECK_EQ(options.handover_ms, 45000);
    CHECK_EQ(options.window.layout, 4);
    CHECK_EQ(options.window.servers, 20);
    CHECK_EQ(options.window.plane, 3);
    CHECK_EQ(options.window.slot, 10);
    CHECK_EQ(options.links[0].delay_us, 7600);
    CHECK_EQ(options.links[0].jitter_us, 10);
    CHECK_EQ(options.links[0].rate_kbps, 1000);
    CHECK_EQ(options.links[0].loss_ppm, 5);
    CHECK_EQ(options.links[0].cut, 1);
    CHECK_EQ(options.links[1].delay_us, 0);
    CHECK(Parse(PLACE "--link ground:loss_ppm=1000000 --link west:cut=1"));
    CHECK_EQ(options.links[4].loss_ppm, 1000000);
    CHECK_EQ(options.links[3].cut, 1);
    CHECK(Parse("--help"));
    CHECK(options.help);
}

static void MistakesAreNamedWithWhatIsAllowed(void)
{
    Refused("--plane 3 --slot 10 --planes 5", "--slots is missing; see --help");
    Refused("--plane 6 --slot 10 --planes 5 --slots 19", "--plane 6: allowed are 1 .. 5 (--planes)");
    Refused("--plane 5 --slot 20 --planes 5 --slots 19", "--slot 20: allowed are 1 .. 19 (--slots)");
    Refused(PLACE "--port 0", "--port 0: allowed are 1 .. 65535");
    Refused(PLACE "--port 65536", "--port 65536: allowed are 1 .. 65535");
    Refused(PLACE "--port 12x", "--port 12x: allowed are 1 .. 65535");
    Refused(PLACE "--port -1", "--port -1: allowed are 1 .. 65535");
    Refused(PLACE "--port 99999999999999999999", "--port 99999999999999999999: allowed are 1 .. 65535");
    Refused(PLACE "--store-mib 513", "--store-mib 513: allowed are 1 .. 512");
    Refused(PLACE "--colour red", "--colour: no such option; see --help");
    Refused(PLACE "--port", "--port: a value is missing, or there is no such option; see --help");
    Refused(PLACE "--network 127.18.3.0", "--network 127.18.3.0: allowed is an IPv4 network A.B.0.0");
    Refused(PLACE "--network moon", "--network moon: allowed is an IPv4 network A.B.0.0");
}

static void MistakesInLinksToo(void)
{
    Refused(PLACE "--link up:delay_us=1",
            "--link up:delay_us=1: allowed are north:, east:, south:, west: or ground: and then KEY=VALUE");
    Refused(PLACE "--link north", "--link north: allowed are north:, east:, south:, west: or ground: and then KEY=VALUE");
    Refused(PLACE "--link north:delay_us=1,speed=2", "--link north:delay_us=1,speed=2: 'speed=2': allowed are delay_us=, "
                                                     "jitter_us=, rate_kbps=, loss_ppm=, cut= with a number");
    Refused(PLACE "--link north:",
            "--link north:: '': allowed are delay_us=, jitter_us=, rate_kbps=, loss_ppm=, cut= with a number");
    Refused(PLACE "--link north:loss_ppm=1000001", "--link north:loss_ppm=1000001: loss_ppm=1000001: allowed are 0 .. 1000000");
    Refused(PLACE "--link north:cut=", "--link north:cut=: cut=: allowed are 0 .. 1");
    Refused(PLACE "--link north:cut=1 --link north:cut=0", "--link north:cut=0: north is given twice");
}

static void MistakesInTheWindow(void)
{
    static const char *const wrong[] = {"rotation",           "rotation:12",    "rotation:12:3",    "rotation:12:3:10:1",
                                        "rotation:0:3:10",    "square:12:3:10", "rotation:12:0:10", "rot:12:3:10",
                                        "rotation:1025:3:10", ":12:3:10",       "rotation:12:3:",   "rotation:12:3:256"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
    {
        char line[256];
        char reason[256];
        (void)snprintf(line, sizeof line, "%s--window %s", PLACE, wrong[i]);
        (void)snprintf(
            reason, sizeof reason,
            "--window %s: allowed is LAYOUT:SERVERS:PLANE:SLOT with rotation, hop, rotation_hop or all_planes, 1 .. 1024 "
            "servers, and a centre",
            wrong[i]);
        Refused(line, reason);
    }
}

static void QuotasOfTenants(void)
{
    CHECK(Parse(PLACE));
    CHECK_EQ(options.tenant_count, 0);
    CHECK_EQ(options.others.most, 100);
    CHECK(Parse(PLACE "--tenant 7:25:50 --tenant others:10:30 --tenant 4294967295:0:0"));
    CHECK_EQ(options.tenant_count, 2);
    CHECK_EQ(options.tenants[0].tenant, 7);
    CHECK_EQ(options.tenants[0].reserved, 25);
    CHECK_EQ(options.tenants[0].most, 50);
    CHECK_EQ(options.tenants[1].tenant, 4294967295u);
    CHECK_EQ(options.tenants[1].most, 0);
    CHECK_EQ(options.others.reserved, 10);
    CHECK_EQ(options.others.most, 30);
    static const char *const wrong[] = {"7",       "7:1",   "7:1:2:3",        "7:1:",   ":1:2",     "7:2:1",
                                        "7:0:101", "x:0:1", "4294967296:0:1", "others", "others:1", "others:1:2:3"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i)
    {
        char line[256];
        char reason[256];
        (void)snprintf(line, sizeof line, "%s--tenant %s", PLACE, wrong[i]);
        (void)snprintf(
            reason, sizeof reason,
            "--tenant %s: allowed are NUMBER:RESERVED:MOST and others:RESERVED:MOST, in percent of the slots, 0 .. 100, "
            "MOST not below RESERVED",
            wrong[i]);
        Refused(line, reason);
    }
    Refused(PLACE "--tenant 7:0:1 --tenant 7:0:2", "--tenant 7:0:2: allowed is one for each tenant");
    Refused(PLACE "--tenant others:0:1 --tenant others:0:2", "--tenant others:0:2: allowed is one for each tenant");
    Refused(PLACE "--tenant others:0:1", "--tenant others: allowed is this beside the quota of a tenant");
    Refused(PLACE "--tenant 7:60:60 --tenant 8:41:60", "--tenant: 101 percent are reserved in all; allowed are 0 .. 100");
    Refused(PLACE "--tenant 7:60:60 --tenant others:41:60", "--tenant: 101 percent are reserved in all; allowed are 0 .. 100");

    const char *words[9 + 2 * 17] = {"skysat", "--plane", "3", "--slot", "10", "--planes", "5", "--slots", "19"};
    char        quotas[17][16];
    for (int i = 0; i < 17; ++i)
    {
        (void)snprintf(quotas[i], sizeof quotas[i], "%d:0:100", i);
        words[9 + 2 * i]  = "--tenant";
        words[10 + 2 * i] = quotas[i];
    }
    CHECK(SKYSAT_ParseOptions(9 + 2 * 16, words, &options, why, sizeof why));
    CHECK(!SKYSAT_ParseOptions(9 + 2 * 17, words, &options, why, sizeof why));
    CHECK(strcmp(why, "--tenant 16:0:100: allowed are 16 tenants") == 0);
}

int main(void)
{
    RUN(DefaultsAreThePapers);
    RUN(EverythingCanBeSet);
    RUN(MistakesAreNamedWithWhatIsAllowed);
    RUN(MistakesInLinksToo);
    RUN(MistakesInTheWindow);
    RUN(QuotasOfTenants);
    return CHECK_RESULT();
}
