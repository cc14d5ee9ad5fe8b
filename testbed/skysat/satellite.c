/**
 * @file
 * Options become the apps' tables, which the executive offers to CFE_TBL_Load in place of the compiled ones.
 */
#define _GNU_SOURCE
#include "satellite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cfe_evs_msg.h"
#include "isl_msgids.h"
#include "isl_tbl.h"
#include "kvc_msgids.h"
#include "key_file.h"
#include "kvc_tbl.h"
#include "onboard_msgids.h"
#include "sky.h"
#include "sky_lib.h"
#include "sky_wipe.h"

#define START_MS      10000
#define STOP_MS       3000
#define LOG_BYTES_MAX (1u << 20)

void ISL_AppMain(void);
void KVC_AppMain(void);

extern const CFE_TBL_FileDef_t *const EXEC_TableFiles[];

static SKYSAT_Options_t      satellite_options;
static ISL_NeighboursTable_t satellite_neighbours;
static ISL_LinksTable_t      satellite_links;
static KVC_LimitsTable_t     satellite_limits;
static ISL_KeysTable_t       satellite_keys;
static ISL_PeersTable_t      satellite_peers[ISL_PEERS_PAGES];

static const EXEC_Library_t      satellite_libraries[] = {{"SKY", SKY_LibInit}};
static const EXEC_App_t          satellite_apps[]      = {{"KVC", KVC_AppMain}, {"ISL", ISL_AppMain}};
static const CFE_SB_MsgId_Atom_t satellite_wakeups[]   = {KVC_WAKEUP_MID, ISL_WAKEUP_MID};
static const EXEC_Table_t        satellite_tables[]    = {
              {"ISL.Neighbours", &satellite_neighbours, sizeof satellite_neighbours},
              {"ISL.Links", &satellite_links, sizeof satellite_links},
              {"KVC.Limits", &satellite_limits, sizeof satellite_limits},
              {"ISL.Keys", &satellite_keys, sizeof satellite_keys},
              {"ISL.Peers1", &satellite_peers[0], sizeof satellite_peers[0]},
              {"ISL.Peers2", &satellite_peers[1], sizeof satellite_peers[1]},
              {"ISL.Peers3", &satellite_peers[2], sizeof satellite_peers[2]},
              {"ISL.Peers4", &satellite_peers[3], sizeof satellite_peers[3]},
};

CompileTimeAssert(ISL_LINK_COUNT == SKYSAT_LINKS, LinksMatch);
CompileTimeAssert(ISL_PEERS_PAGES == 4, PagesHaveNames);
CompileTimeAssert(KVC_TENANTS == SKYSAT_TENANTS, TenantsMatch);

static void MakeNeighbours(const SKYSAT_Options_t *options)
{
    static const uint32 downlink[] = {ISL_HK_TLM_MID, KVC_HK_TLM_MID, CFE_EVS_LONG_EVENT_MSG_MID, ONBOARD_HEALTH_TLM_MID};
    const SKY_Addr_t    self       = {(uint16)options->plane, (uint16)options->slot};
    SKY_Torus_t         torus;
    (void)memset(&satellite_neighbours, 0, sizeof satellite_neighbours);
    (void)SKY_Torus_Init(&torus, options->planes, options->slots, options->seam_cut != 0); /* the options are in range */

    satellite_neighbours.SelfPlane   = self.plane;
    satellite_neighbours.SelfSlot    = self.slot;
    satellite_neighbours.Planes      = (uint16)options->planes;
    satellite_neighbours.Slots       = (uint16)options->slots;
    satellite_neighbours.LocalIpv4   = SKYSAT_Address(options, options->plane, options->slot);
    satellite_neighbours.LocalPort   = (uint16)options->port;
    satellite_neighbours.HelloS      = (uint16)options->hello_s;
    satellite_neighbours.PacketBytes = options->mtu;
    satellite_neighbours.SeamCut     = (uint8)options->seam_cut;
    /* Other than in the table that flies by default, commands from the ground are admitted: this is a testbed, and whoever
     * reaches its sockets may command it. */
    satellite_neighbours.UplinkFirstMid = KVC_CMD_MID;
    satellite_neighbours.UplinkLastMid  = ONBOARD_LAST_CMD_MID;
    for (uint32 i = 0; i < ISL_NEIGHBOUR_COUNT; ++i)
    {
        const SKY_Addr_t peer = SKY_Torus_Neighbour(&torus, self, (SKY_LinkId_t)i);
        ISL_Neighbour_t *to   = &satellite_neighbours.Neighbour[i];
        if (peer.plane != 0)
        {
            to->Present = 1;
            to->Plane   = peer.plane;
            to->Slot    = peer.slot;
            to->Port    = (uint16)options->port;
            to->Ipv4    = SKYSAT_Address(options, peer.plane, peer.slot);
        }
    }
    (void)memcpy(satellite_neighbours.DownlinkMid, downlink, sizeof downlink);
}

static void MakeTables(const SKYSAT_Options_t *options)
{
    MakeNeighbours(options);
    (void)memset(&satellite_links, 0, sizeof satellite_links);
    for (uint32 i = 0; i < ISL_LINK_COUNT; ++i)
    {
        const SKYSAT_Link_t *model       = &options->links[i];
        satellite_links.Link[i].DelayUs  = model->delay_us;
        satellite_links.Link[i].JitterUs = model->jitter_us;
        satellite_links.Link[i].RateKbps = model->rate_kbps;
        satellite_links.Link[i].LossPpm  = model->loss_ppm;
        satellite_links.Link[i].Cut      = (uint8)model->cut;
    }
    (void)memset(&satellite_limits, 0, sizeof satellite_limits);
    satellite_limits.StoreBytes     = options->store_mib * 1024u * 1024u;
    satellite_limits.SlotBytes      = options->slot_bytes;
    satellite_limits.Credit         = options->credit;
    satellite_limits.PartLifetimeMs = SKY_DEFAULT_PART_LIFETIME_MS;
    satellite_limits.Gossip         = options->gossip;
    satellite_limits.ScrubPeriodMs  = options->scrub_ms;
    satellite_limits.HandoverMs     = options->handover_ms;
    satellite_limits.WindowServers  = (uint16)options->window.servers;
    satellite_limits.WindowLayout   = (uint16)options->window.layout;
    satellite_limits.WindowPlane    = (uint16)options->window.plane;
    satellite_limits.WindowSlot     = (uint16)options->window.slot;

    satellite_limits.TenantCount = options->tenant_count;
    if (options->tenant_count > 0)
    {
        satellite_limits.OthersReservedPercent = (uint16)options->others.reserved;
        satellite_limits.OthersMostPercent     = (uint16)options->others.most;
    }
    for (uint32 i = 0; i < options->tenant_count; ++i)
    {
        satellite_limits.Tenant[i].Tenant          = options->tenants[i].tenant;
        satellite_limits.Tenant[i].ReservedPercent = (uint16)options->tenants[i].reserved;
        satellite_limits.Tenant[i].MostPercent     = (uint16)options->tenants[i].most;
    }
}

void SATELLITE_Endpoint(char *text, size_t size)
{
    const uint32 a = satellite_neighbours.LocalIpv4;
    (void)snprintf(text, size, "%u.%u.%u.%u:%u", (unsigned)(a >> 24), (unsigned)(a >> 16) & 0xFFu, (unsigned)(a >> 8) & 0xFFu,
                   (unsigned)a & 0xFFu, (unsigned)satellite_neighbours.LocalPort);
}

/* Bind the port once without SO_REUSEADDR. OSAL sets it, so isl would take the packets of whoever has the address already. */
static bool AddressIsFree(char *why, size_t why_size)
{
    char               endpoint[32];
    struct sockaddr_in address;
    (void)memset(&address, 0, sizeof address);
    address.sin_family      = AF_INET;
    address.sin_addr.s_addr = htonl(satellite_neighbours.LocalIpv4);
    address.sin_port        = htons(satellite_neighbours.LocalPort);
    SATELLITE_Endpoint(endpoint, sizeof endpoint);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
    {
        (void)snprintf(why, why_size, "no UDP socket: %s", strerror(errno));
        return false;
    }
    const int rc    = bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address);
    const int error = errno;
    (void)close(fd);
    if (rc != 0 && error == EADDRINUSE)
    {
        (void)snprintf(why, why_size, "%s is in use by another process: stop it, or choose another --port or --network",
                       endpoint);
    }
    else if (rc != 0)
    {
        (void)snprintf(why, why_size, "%s cannot be bound: %s; --network must be one of this machine's", endpoint,
                       strerror(error));
    }
    return rc == 0;
}

/* Erase the images with keys, which the app has taken over. */
static void ForgetKeys(void)
{
    SKY_Wipe(&satellite_keys, sizeof satellite_keys);
    SKY_Wipe(satellite_peers, sizeof satellite_peers);
}

bool SATELLITE_Init(const SKYSAT_Options_t *options, bool quiet, char *why, size_t why_size)
{
    EXEC_Config_t config;
    satellite_options = *options;
    MakeTables(&satellite_options);
    why[0] = '\0';
    ForgetKeys(); /* the program may have run another one before */
    if ((options->keys != NULL && !SKYSAT_ReadKeyFile(options, &satellite_keys, satellite_peers, why, why_size)) ||
        !AddressIsFree(why, why_size))
    {
        ForgetKeys();
        return false;
    }
    (void)memset(&config, 0, sizeof config);
    config.spacecraft_id = options->plane * 1000u + options->slot; /* 3010 is satellite (3, 10) */
    config.processor_id  = 1;
    config.libraries     = satellite_libraries;
    config.library_count = sizeof satellite_libraries / sizeof satellite_libraries[0];
    config.apps          = satellite_apps;
    config.app_count     = sizeof satellite_apps / sizeof satellite_apps[0];
    config.table_files   = EXEC_TableFiles;
    config.tables        = satellite_tables;
    config.table_count   = sizeof satellite_tables / sizeof satellite_tables[0];
    config.wakeups       = satellite_wakeups;
    config.wakeup_count  = sizeof satellite_wakeups / sizeof satellite_wakeups[0];
    config.quiet         = quiet;
    config.log_json      = options->log_json;
    config.log_bytes_max = options->until_stdin_ends ? LOG_BYTES_MAX : 0; /* who holds its leash made the log for it alone */
    if (!EXEC_Init(&config))
    {
        ForgetKeys();
        (void)snprintf(why, why_size, "the executive cannot start: it runs already in this process, or there is no memory");
        return false;
    }
    return true;
}

bool SATELLITE_Start(char *why, size_t why_size)
{
    const bool ok = EXEC_Start(START_MS, why, why_size);
    ForgetKeys();
    return ok;
}

bool SATELLITE_Stop(void)
{
    return EXEC_Stop(STOP_MS);
}
