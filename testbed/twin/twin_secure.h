/**
 * @file
 * Private to the twin: keys of satellites and hosts, the mission, and the attacker.
 *
 *     twin_keys.c     keys, and the check that no nonce is used twice
 *     twin_mission.c  the host with the mission's role: telemetry and commands
 *     twin_attack.c   what the attacker does to packets       twin_forge.c  packets that it makes
 *     twin_judge.c    whether anything came of that
 */
#ifndef TWIN_SECURE_H
#define TWIN_SECURE_H

#include "sky.h"
#include "sky_crypto_library.h"
#include "sky_host.h"
#include "twin.h"

#define SKYT_KEY_GENERATION 1u
#define SKYT_STRANGER       60000u /**< number of the attacker's own place on the ground */

/* ---- keys ------------------------------------------------------------------------------------------------------------- */

/** A place for a session key. */
typedef struct
{
    uint8_t  key[SKY_CRYPTO_KEY_BYTES];
    uint8_t  suite; /**< SKY_SUITE_NONE: it is empty */
    uint32_t used;  /**< index among the keys that have sealed; SKYT_NONE: it has not sealed since it was loaded */
} SKYT_KeyPlace_t;

/** A key that has sealed packets, whoever held it. */
typedef struct
{
    uint64_t name[2]; /**< bytes of the key; 0, 0: the entry is free */
    uint64_t last;    /**< highest sequence number that was sealed */
} SKYT_KeyUse_t;

/** The cryptographic library of one satellite or host, as the core calls it. */
typedef struct
{
    SKYT_Twin_t     *twin;
    SKY_Crypto_t     crypto;
    SKYT_KeyPlace_t *places;
    uint32_t         node; /**< the satellite; SKYT_NONE: a host */
    uint32_t asking_count; /**< places of sessions that this one asked for; those of others' associations are behind them */
    bool     is_watched;   /**< not at a start, when the library is tested under keys that everybody knows */
} SKYT_Vault_t;

typedef struct SKYT_Keys SKYT_Keys_t; /**< all keys: private to twin_keys.c */

/** Make all keys. @return false if there is not enough memory */
bool SKYT_Keys_Init(SKYT_Twin_t *twin);
void SKYT_Keys_Free(SKYT_Twin_t *twin);
/** Begin the security of a satellite, at each of its boots. @return false if a number is out of range */
bool SKYT_Keys_Boot(SKYT_Twin_t *twin, uint32_t node);
/**
 * Give a host its keyring.
 * @param host      its number, from 1; hosts + 1 is the mission
 * @param security  receives it
 */
void SKYT_Keys_OfHost(SKYT_Twin_t *twin, uint32_t host, SKY_HostSecurity_t *security);
/** Count what was sealed. */
void SKYT_Keys_Count(const SKYT_Twin_t *twin, SKYT_Counters_t *counters);

/* ---- the mission ------------------------------------------------------------------------------------------------------- */

typedef struct SKYT_Mission SKYT_Mission_t; /**< private to twin_mission.c */

bool SKYT_Mission_Init(SKYT_Twin_t *twin);
/** Ask a satellite for its telemetry, and send a command to another one. */
void SKYT_Mission_Row(SKYT_Twin_t *twin, uint32_t node);
/** Take in a packet that satellite @p node sent. */
void SKYT_Mission_Receive(SKYT_Twin_t *twin, uint32_t node, const uint8_t *data, uint32_t len);
/** Run the mission's host, and set the time of its next event. */
void SKYT_Mission_Run(SKYT_Twin_t *twin);
/** Take in a command that a satellite is about to obey. */
void SKYT_Mission_Obeyed(SKYT_Twin_t *twin, uint32_t node, const uint8_t *message, uint32_t len);
/** Return the host, to be judged; NULL without keys. */
SKY_Host_t *SKYT_Mission_Host(const SKYT_Twin_t *twin);

/* ---- the attacker ------------------------------------------------------------------------------------------------------ */

/** What a packet on its way is to the receiver. */
typedef enum
{
    SKYT_PACKET_SOUND = 0, /**< as it was sent */
    SKYT_PACKET_AGAIN,     /**< a recorded one, sent again */
    SKYT_PACKET_FALSE      /**< changed or forged */
} SKYT_PacketKind_t;

/** Mark of a packet on its way. */
typedef struct
{
    uint8_t  kind;   /**< SKYT_PacketKind_t */
    uint32_t record; /**< number of the attacker's record of it; 0: it has none */
} SKYT_Mark_t;

typedef struct SKYT_Attack SKYT_Attack_t; /**< private to twin_attack.c */

bool SKYT_Attack_Init(SKYT_Twin_t *twin);
/**
 * Let the attacker see a packet that was put on a link.
 * @param ppm     share of packets of which it does something to
 * @param due_us  when it arrives; the attacker may hold it back
 * @return false if it takes the packet away
 */
bool SKYT_Attack_Sees(SKYT_Twin_t *twin, uint32_t packet, uint32_t ppm, uint64_t *due_us);
/** Let it see a packet that arrives. @return false if it takes the packet away */
bool SKYT_Attack_Arrives(SKYT_Twin_t *twin, uint32_t packet);
/** Let it send to a satellite that has come back what it recorded before the crash. */
void SKYT_Attack_Reboot(SKYT_Twin_t *twin, uint32_t node);
/** Return true if a recorded packet has been acted upon. */
bool SKYT_Attack_WasActed(const SKYT_Twin_t *twin, uint32_t record);
void SKYT_Attack_NoteActed(SKYT_Twin_t *twin, uint32_t record);

/**
 * Forge a request, after one that was seen.
 * @param from, to  the ends of its link, if that is an ISL; else SKYT_NONE
 * @return its length in @p out
 */
uint32_t SKYT_Forge_Request(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint32_t from, uint32_t to, uint8_t *out);
/** Forge an answer to a request that was seen. @return its length in @p out */
uint32_t SKYT_Forge_Answer(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *out);
/** Write a packet without its tag. @return its length in @p out */
uint32_t SKYT_Forge_Strip(const SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *out);
/** Change a bit that the tag covers, and mend checksum and PEC. @param seen  the packet, decoded from @p data */
void SKYT_Forge_Alter(SKYT_Twin_t *twin, const SKY_Packet_t *seen, uint8_t *data, uint32_t len);

/* ---- the judge --------------------------------------------------------------------------------------------------------- */

/** What a satellite or host had done and knew before it looked at a packet. */
typedef struct
{
    uint64_t    unauthenticated, replayed, no_cookie, refused, undecoded, delivered, granted;
    uint64_t    heard_us[SKY_ISL_COUNT];
    uint64_t    digest;
    uint64_t    lease_us;
    uint64_t    obeyed, chunks, untrusted, stale;
    uint32_t    usable;
    uint32_t    sessions;
    const void *ended; /**< a host's question that ended last */
} SKYT_Sight_t;

/** Return true if what comes of this packet is to be looked at. */
bool SKYT_Judge_IsOf(const SKYT_Twin_t *twin, uint32_t packet);
void SKYT_Judge_SeeNode(SKYT_Twin_t *twin, uint32_t index, SKYT_Sight_t *sight);
void SKYT_Judge_SeeHost(const SKY_Host_t *host, SKYT_Sight_t *sight);
/** Judge a satellite that has looked at the packet. @param before  what was there before */
void SKYT_Judge_Node(SKYT_Twin_t *twin, uint32_t node, uint32_t packet, const SKYT_Sight_t *before);
void SKYT_Judge_Host(SKYT_Twin_t *twin, const SKY_Host_t *host, uint32_t packet, const SKYT_Sight_t *before);

#endif
