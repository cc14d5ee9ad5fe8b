/* Options of a satellite: what is taken, and what is said about what is not. */
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
    CHECK_EQ(options.scrub_ms, 0);
    CHECK_EQ(options.handover_ms, 30000);
    CHECK(!options.until_stdin_ends);
    CHECK_EQ(SKYSAT_Address(&options, 3, 10), 0x7F12030A);
}

static void EverythingCanBeSet(void)
{
    CHECK(Parse(PLACE "--network 198.18.0.0 --port 5000 --mtu 1472 --store-mib 32 --seam-cut --gossip --scrub-ms 60000 "
                      "--handover-ms 45000 --until-stdin-ends "
                      "--link north:delay_us=7600,jitter_us=10,rate_kbps=1000,loss_ppm=5,cut=1"));
    CHECK(options.until_stdin_ends);
    CHECK_EQ(SKYSAT_Address(&options, 1, 1), 0xC6120101);
    CHECK_EQ(options.port, 5000);
    CHECK_EQ(options.mtu, 1472);
    CHECK_EQ(options.seam_cut, 1);
    CHECK_EQ(options.gossip, 1);
    CHECK_EQ(options.scrub_ms, 60000);
    CHECK_EQ(options.handover_ms, 45000);
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

int main(void)
{
    RUN(DefaultsAreThePapers);
    RUN(EverythingCanBeSet);
    RUN(MistakesAreNamedWithWhatIsAllowed);
    RUN(MistakesInLinksToo);
    return CHECK_RESULT();
}
