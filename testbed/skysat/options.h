/**
 * @file
 * Options of a satellite, for the program skysat and for skymemory.fsw alike.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKYSAT_TENANTS 16 /* tenants with quotas, as many as a satellite has room for */
#define SKYSAT_LINKS   5  /* links north, east, south, west, ground */

typedef struct
{
    uint32_t delay_us, jitter_us, rate_kbps, loss_ppm, cut;
} SKYSAT_Link_t;

/** A tenant's share of the store, in percent of the slots. */
typedef struct
{
    uint32_t tenant, reserved, most;
} SKYSAT_Tenant_t;

/** Window of a sky that does not turn. */
typedef struct
{
    uint32_t servers;     /**< 0: not known */
    uint32_t layout;      /**< SKY_LayoutId_t */
    uint32_t plane, slot; /**< centre */
} SKYSAT_Window_t;

typedef struct
{
    uint32_t        plane, slot, planes, slots;
    uint32_t        network; /**< IPv4 network; satellite (p, s) is at network + p * 256 + s */
    uint32_t        port, mtu, store_mib, slot_bytes, credit, hello_s, scrub_ms, handover_ms;
    uint32_t        seam_cut, gossip;
    SKYSAT_Window_t window;
    const char     *keys; /**< key file; NULL: none */
    bool            help;
    bool            until_stdin_ends, log_json;
    bool            link_given[SKYSAT_LINKS];
    SKYSAT_Link_t   links[SKYSAT_LINKS];
    uint32_t        tenant_count;
    bool            others_given;
    SKYSAT_Tenant_t tenants[SKYSAT_TENANTS];
    SKYSAT_Tenant_t others; /**< all tenants without a quota of their own */
} SKYSAT_Options_t;

/** Print all options and their defaults to standard output. */
void SKYSAT_PrintUsage(void);

/**
 * Parse options.
 * @param why  receives, on failure, the option, its value, and what is allowed
 * @return false if an option is wrong or missing
 */
bool SKYSAT_ParseOptions(int argc, const char *const *argv, SKYSAT_Options_t *options, char *why, size_t why_size);

/** Return the IPv4 address of satellite (plane, slot). */
uint32_t SKYSAT_Address(const SKYSAT_Options_t *options, uint32_t plane, uint32_t slot);

#endif
