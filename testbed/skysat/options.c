/**
 * @file
 * Options of a satellite: a table of names and ranges, and the others, which are not plain numbers.
 */
#include "options.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sky_defaults.h"
#include "sky_icd.h"
#include "sky_placement.h"

typedef struct
{
    const char *name;
    uint32_t    least, most;
    size_t      at; /* offset of the uint32_t in the options */
} Number_t;

#define OPTION(field) offsetof(SKYSAT_Options_t, field)
static const Number_t option_numbers[] = {
    {"--plane", 1, SKY_MOST_PLANES, OPTION(plane)},
    {"--slot", 1, SKY_MOST_SLOTS, OPTION(slot)},
    {"--planes", 1, SKY_MOST_PLANES, OPTION(planes)},
    {"--slots", 1, SKY_MOST_SLOTS, OPTION(slots)},
    {"--port", 1, 65535, OPTION(port)},
    {"--mtu", SKY_LEAST_PACKET_BYTES, SKY_LIMIT_PACKET_BYTES, OPTION(mtu)},
    {"--store-mib", 1, SKY_MOST_STORE_MIB, OPTION(store_mib)},
    {"--slot-bytes", 1, SKY_LIMIT_CHUNK_BYTES, OPTION(slot_bytes)},
    {"--credit", 1, SKY_LIMIT_CHUNK_SET, OPTION(credit)},
    {"--hello-s", 0, SKY_MOST_HELLO_S, OPTION(hello_s)},
    {"--scrub-ms", 0, SKY_MOST_SCRUB_MS, OPTION(scrub_ms)},
    {"--handover-ms", 0, SKY_MOST_HANDOVER_MS, OPTION(handover_ms)},
};
#undef OPTION

#define FIELD(field) offsetof(SKYSAT_Link_t, field)
static const Number_t option_link_numbers[] = {
    {"delay_us", 0, SKY_MOST_DELAY_US, FIELD(delay_us)},
    {"jitter_us", 0, SKY_MOST_DELAY_US, FIELD(jitter_us)},
    {"rate_kbps", 0, UINT32_MAX, FIELD(rate_kbps)},
    {"loss_ppm", 0, 1000000, FIELD(loss_ppm)},
    {"cut", 0, 1, FIELD(cut)},
};
#undef FIELD

/* In the order of SKY_LayoutId_t. */
static const char *const option_layouts[] = {"rotation", "hop", "rotation_hop", "all_planes"};

static const char *const option_links[SKYSAT_LINKS] = {"north", "east", "south", "west", "ground"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Read a number. @return false unless the @p length characters at @p text are a decimal number in range */
static bool Number(const char *text, size_t length, const Number_t *number, void *base)
{
    uint64_t value = 0;
    if (length == 0 || length > 10)
    {
        return false;
    }
    for (size_t i = 0; i < length; ++i)
    {
        if (text[i] < '0' || text[i] > '9')
        {
            return false;
        }
        value = value * 10u + (uint64_t)(text[i] - '0');
    }
    if (value < number->least || value > number->most)
    {
        return false;
    }
    const uint32_t result = (uint32_t)value;
    (void)memcpy((uint8_t *)base + number->at, &result, sizeof result);
    return true;
}

static bool SetLinkField(const char *text, size_t length, SKYSAT_Link_t *link, const char *whole, char *why, size_t why_size)
{
    const char  *equals = memchr(text, '=', length);
    const size_t key    = equals != NULL ? (size_t)(equals - text) : length;
    for (size_t i = 0; i < COUNT(option_link_numbers); ++i)
    {
        const Number_t *number = &option_link_numbers[i];
        if (equals != NULL && strlen(number->name) == key && memcmp(number->name, text, key) == 0)
        {
            if (Number(equals + 1, length - key - 1, number, link))
            {
                return true;
            }
            (void)snprintf(why, why_size, "--link %s: %.*s: allowed are %" PRIu32 " .. %" PRIu32, whole, (int)length, text,
                           number->least, number->most);
            return false;
        }
    }
    (void)snprintf(why, why_size,
                   "--link %s: '%.*s': allowed are delay_us=, jitter_us=, rate_kbps=, loss_ppm=, cut= with a number", whole,
                   (int)length, text);
    return false;
}

static bool SetLink(const char *value, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    const char *colon = strchr(value, ':');
    size_t      link  = 0;
    while (link < SKYSAT_LINKS && (colon == NULL || strlen(option_links[link]) != (size_t)(colon - value) ||
                                   memcmp(option_links[link], value, (size_t)(colon - value)) != 0))
    {
        ++link;
    }
    if (link == SKYSAT_LINKS)
    {
        (void)snprintf(why, why_size, "--link %s: allowed are north:, east:, south:, west: or ground: and then KEY=VALUE", value);
        return false;
    }
    if (options->link_given[link])
    {
        (void)snprintf(why, why_size, "--link %s: %s is given twice", value, option_links[link]);
        return false;
    }
    options->link_given[link] = true;
    const char *at            = colon + 1;
    for (;;)
    {
        const size_t length = strcspn(at, ",");
        if (!SetLinkField(at, length, &options->links[link], value, why, why_size))
        {
            return false;
        }
        if (at[length] == '\0')
        {
            return true;
        }
        at += length + 1;
    }
}

static bool TenantFields(const char *value, SKYSAT_Tenant_t *tenant)
{
    static const Number_t fields[] = {
        {"number", 0, UINT32_MAX, offsetof(SKYSAT_Tenant_t, tenant)},
        {"reserved", 0, 100, offsetof(SKYSAT_Tenant_t, reserved)},
        {"most", 0, 100, offsetof(SKYSAT_Tenant_t, most)},
    };
    for (size_t i = strncmp(value, "others:", 7) == 0 ? 1 : 0; i < COUNT(fields); ++i)
    {
        value += i == 1 && strncmp(value, "others:", 7) == 0 ? 7 : 0;
        const size_t length = strcspn(value, ":");
        if (!Number(value, length, &fields[i], tenant) || value[length] != (i + 1 < COUNT(fields) ? ':' : '\0'))
        {
            return false;
        }
        value += length + 1;
    }
    return tenant->reserved <= tenant->most;
}

static bool SetTenant(const char *value, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    SKYSAT_Tenant_t tenant   = {0, 0, 0};
    const bool      is_other = strncmp(value, "others:", 7) == 0;
    if (!TenantFields(value, &tenant))
    {
        (void)snprintf(
            why, why_size,
            "--tenant %s: allowed are NUMBER:RESERVED:MOST and others:RESERVED:MOST, in percent of the slots, 0 .. 100, "
            "MOST not below RESERVED",
            value);
        return false;
    }
    bool twice = is_other && options->others_given;
    for (uint32_t i = 0; !is_other && i < options->tenant_count; ++i)
    {
        twice = twice || options->tenants[i].tenant == tenant.tenant;
    }
    if (twice)
    {
        (void)snprintf(why, why_size, "--tenant %s: allowed is one for each tenant", value);
        return false;
    }
    if (!is_other && options->tenant_count == SKYSAT_TENANTS)
    {
        (void)snprintf(why, why_size, "--tenant %s: allowed are %d tenants", value, SKYSAT_TENANTS);
        return false;
    }
    if (is_other)
    {
        options->others       = tenant;
        options->others_given = true;
    }
    else
    {
        options->tenants[options->tenant_count++] = tenant;
    }
    return true;
}

static bool WindowFields(const char *value, SKYSAT_Window_t *window)
{
    static const Number_t fields[] = {
        {"servers", 1, SKY_PLACEMENT_SERVERS_MAX, offsetof(SKYSAT_Window_t, servers)},
        {"plane", 1, SKY_MOST_PLANES, offsetof(SKYSAT_Window_t, plane)},
        {"slot", 1, SKY_MOST_SLOTS, offsetof(SKYSAT_Window_t, slot)},
    };
    const char  *colon  = strchr(value, ':');
    const size_t name   = colon != NULL ? (size_t)(colon - value) : 0;
    uint32_t     layout = 0;
    while (layout < COUNT(option_layouts) &&
           (strlen(option_layouts[layout]) != name || memcmp(option_layouts[layout], value, name) != 0))
    {
        ++layout;
    }
    if (layout == COUNT(option_layouts) || colon == NULL)
    {
        return false;
    }
    window->layout = layout + SKY_LAYOUT_ROTATION;
    value          = colon + 1;
    for (size_t i = 0; i < COUNT(fields); ++i)
    {
        const size_t length = strcspn(value, ":");
        if (!Number(value, length, &fields[i], window) || value[length] != (i + 1 < COUNT(fields) ? ':' : '\0'))
        {
            return false;
        }
        value += length + 1;
    }
    return true;
}

static bool SetWindow(const char *value, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    SKYSAT_Window_t window = {0, 0, 0, 0};
    if (!WindowFields(value, &window))
    {
        (void)snprintf(
            why, why_size,
            "--window %s: allowed is LAYOUT:SERVERS:PLANE:SLOT with rotation, hop, rotation_hop or all_planes, 1 .. %u "
            "servers, and a centre",
            value, SKY_PLACEMENT_SERVERS_MAX);
        return false;
    }
    options->window = window;
    return true;
}

static bool SetNetwork(const char *value, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    struct in_addr address;
    if (inet_pton(AF_INET, value, &address) != 1 || (ntohl(address.s_addr) & 0xFFFFu) != 0 || address.s_addr == 0)
    {
        (void)snprintf(why, why_size, "--network %s: allowed is an IPv4 network A.B.0.0", value);
        return false;
    }
    options->network = ntohl(address.s_addr);
    return true;
}

static bool SetOption(const char *name, const char *value, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    if (strcmp(name, "--link") == 0)
    {
        return SetLink(value, options, why, why_size);
    }
    if (strcmp(name, "--tenant") == 0)
    {
        return SetTenant(value, options, why, why_size);
    }
    if (strcmp(name, "--window") == 0)
    {
        return SetWindow(value, options, why, why_size);
    }
    if (strcmp(name, "--keys") == 0)
    {
        options->keys = value;
        return true;
    }
    if (strcmp(name, "--network") == 0)
    {
        return SetNetwork(value, options, why, why_size);
    }
    for (size_t i = 0; i < COUNT(option_numbers); ++i)
    {
        if (strcmp(name, option_numbers[i].name) == 0)
        {
            if (Number(value, strlen(value), &option_numbers[i], options))
            {
                return true;
            }
            (void)snprintf(why, why_size, "%s %s: allowed are %" PRIu32 " .. %" PRIu32, name, value, option_numbers[i].least,
                           option_numbers[i].most);
            return false;
        }
    }
    (void)snprintf(why, why_size, "%s: no such option; see --help", name);
    return false;
}

static bool Complete(const SKYSAT_Options_t *options, char *why, size_t why_size)
{
    const struct
    {
        const char *name;
        uint32_t    value;
    } needed[] = {
        {"--plane", options->plane}, {"--slot", options->slot}, {"--planes", options->planes}, {"--slots", options->slots}};
    for (size_t i = 0; i < COUNT(needed); ++i)
    {
        if (needed[i].value == 0)
        {
            (void)snprintf(why, why_size, "%s is missing; see --help", needed[i].name);
            return false;
        }
    }
    if (options->plane > options->planes)
    {
        (void)snprintf(why, why_size, "--plane %" PRIu32 ": allowed are 1 .. %" PRIu32 " (--planes)", options->plane,
                       options->planes);
        return false;
    }
    if (options->slot > options->slots)
    {
        (void)snprintf(why, why_size, "--slot %" PRIu32 ": allowed are 1 .. %" PRIu32 " (--slots)", options->slot,
                       options->slots);
        return false;
    }
    return true;
}

static bool TenantsFit(const SKYSAT_Options_t *options, char *why, size_t why_size)
{
    uint32_t reserved = options->others.reserved;
    for (uint32_t i = 0; i < options->tenant_count; ++i)
    {
        reserved += options->tenants[i].reserved;
    }
    if (reserved > 100)
    {
        (void)snprintf(why, why_size, "--tenant: %" PRIu32 " percent are reserved in all; allowed are 0 .. 100", reserved);
        return false;
    }
    if (options->others_given && options->tenant_count == 0)
    {
        (void)snprintf(why, why_size, "--tenant others: allowed is this beside the quota of a tenant");
        return false;
    }
    return true;
}

void SKYSAT_PrintUsage(void)
{
    (void)printf(
        "usage: skysat --plane P --slot S --planes N --slots M [options]\n"
        "\n"
        "One satellite of SkyMemory: cFS apps isl (links, routing) and kvc (chunk store) on the host executive.\n"
        "Satellite (p, s) has the address NETWORK + p * 256 + s. Planes and slots count from 1.\n"
        "\n"
        "  --network A.B.0.0    network of all satellites (%u.%u.0.0)\n"
        "  --port PORT          UDP port of all satellites (%u)\n"
        "  --mtu BYTES          largest packet of the links, %u .. %u (%u)\n"
        "  --store-mib MIB      memory of the chunk store (%u)\n"
        "  --slot-bytes BYTES   largest chunk (%u)\n"
        "  --credit CHUNKS      chunks of one burst (%u)\n"
        "  --hello-s SECONDS    time between two hellos over a link, 0: none (%u)\n"
        "  --scrub-ms MS        look for incomplete blocks once in this time; repair or purge them; 0: do not (%u)\n"
        "  --handover-ms MS     log a handover that takes longer, 0: only one that takes longer than its row (%u)\n"
        "  --window LAYOUT:SERVERS:PLANE:SLOT\n"
        "                       window of a sky that does not turn, around its centre; without a schedule blocks with parity\n"
        "                       are repaired there. LAYOUT is rotation, hop, rotation_hop or all_planes\n"
        "  --keys FILE          key file of this satellite, from `skymem keys`: who has no keyring is not served\n"
        "  --gossip             tell neighbours of evicted blocks, purge what they tell of\n"
        "  --tenant NUMBER:RESERVED:MOST\n"
        "                       quota of a tenant, in percent of the slots; others:RESERVED:MOST is that of all tenants without\n"
        "                       one (others:0:100); without any, all tenants share the store\n"
        "  --log-json           log one JSON object in each line\n"
        "  --seam-cut           no links between the last plane and the first\n"
        "  --link NAME:KEY=VALUE[,KEY=VALUE]...\n"
        "                       model of what this satellite sends over north, east, south, west or ground:\n"
        "                       delay_us, jitter_us, rate_kbps (0: unlimited), loss_ppm, cut (0 or 1)\n"
        "  --until-stdin-ends   end when standard input ends, too, unless a byte came over it: a satellite ends with whoever\n"
        "                       holds the other end of that pipe, and a byte lets it go on alone\n"
        "\n"
        "Prints one line when it is up; ends with SIGTERM or SIGINT.\n",
        SKY_DEFAULT_NETWORK_IPV4 >> 24, SKY_DEFAULT_NETWORK_IPV4 >> 16 & 0xFFu, SKY_UDP_PORT, SKY_LEAST_PACKET_BYTES,
        SKY_LIMIT_PACKET_BYTES, SKY_LIMIT_PACKET_BYTES, SKY_DEFAULT_STORE_MIB, SKY_DEFAULT_SLOT_BYTES, SKY_DEFAULT_CREDIT,
        SKY_DEFAULT_HELLO_S, SKY_DEFAULT_SCRUB_MS, SKY_DEFAULT_HANDOVER_MS);
}

bool SKYSAT_ParseOptions(int argc, const char *const *argv, SKYSAT_Options_t *options, char *why, size_t why_size)
{
    (void)memset(options, 0, sizeof *options);
    options->network     = SKY_DEFAULT_NETWORK_IPV4;
    options->port        = SKY_UDP_PORT;
    options->mtu         = SKY_LIMIT_PACKET_BYTES;
    options->store_mib   = SKY_DEFAULT_STORE_MIB;
    options->slot_bytes  = SKY_DEFAULT_SLOT_BYTES;
    options->credit      = SKY_DEFAULT_CREDIT;
    options->hello_s     = SKY_DEFAULT_HELLO_S;
    options->scrub_ms    = SKY_DEFAULT_SCRUB_MS;
    options->handover_ms = SKY_DEFAULT_HANDOVER_MS;
    options->others.most = 100;
    why[0]               = '\0';
    for (int i = 1; i < argc; ++i)
    {
        if (strcmp(argv[i], "--help") == 0)
        {
            options->help = true;
            return true;
        }
        if (strcmp(argv[i], "--seam-cut") == 0)
        {
            options->seam_cut = 1;
        }
        else if (strcmp(argv[i], "--gossip") == 0)
        {
            options->gossip = 1;
        }
        else if (strcmp(argv[i], "--log-json") == 0)
        {
            options->log_json = true;
        }
        else if (strcmp(argv[i], "--until-stdin-ends") == 0)
        {
            options->until_stdin_ends = true;
        }
        else if (i + 1 == argc)
        {
            (void)snprintf(why, why_size, "%s: a value is missing, or there is no such option; see --help", argv[i]);
            return false;
        }
        else if (!SetOption(argv[i], argv[i + 1], options, why, why_size))
        {
            return false;
        }
        else
        {
            ++i;
        }
    }
    return Complete(options, why, why_size) && TenantsFit(options, why, why_size);
}

uint32_t SKYSAT_Address(const SKYSAT_Options_t *options, uint32_t plane, uint32_t slot)
{
    return options->network + plane * 256u + slot;
}
