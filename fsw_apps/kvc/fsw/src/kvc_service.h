/**
 * @file
 * The service of KVC: its store, its lock, and the functions that `isl` calls through the registry of `sky`.
 */
#ifndef KVC_SERVICE_H
#define KVC_SERVICE_H

#include "cfe.h"
#include "kvc_tbl.h"
#include "sky_lib.h"

/** Make the lock. */
CFE_Status_t KVC_Service_Open(void);
/** Offer the service to `isl`; the store must be set up. */
CFE_Status_t KVC_Service_Offer(void);
/** Take the service back; afterwards nobody is in it. */
void KVC_Service_Close(void);

/** How a store by @p limits would be cut: as many slots as fit. @return false if none does */
bool KVC_Service_PlanStore(const KVC_LimitsTable_t *limits, SKY_StoreCfg_t *cfg);
/** Take limits over. The store is emptied if its cut changes. */
CFE_Status_t KVC_Service_SetLimits(const KVC_LimitsTable_t *limits);

/** @return false if there is no store yet, or no lock. */
bool KVC_Service_Clear(void);
bool KVC_Service_Purge(uint32 tenant, const uint8 *key, uint32 *chunks);
void KVC_Service_ResetCounters(void);
/** The constellation. @return false: not known yet */
bool KVC_Service_Torus(SKY_Torus_t *torus);
/**
 * Follow the schedule that @p segments tables have together, or none (0); they have been validated.
 * @return false: it cannot be followed, and nothing is; without segments: there was none before
 */
bool KVC_Service_Follow(const KVC_ScheduleTable_t *const *segment, uint32 segments);
/** Send everything to another satellite. @return false: the service does not run; else @p status says what became of it */
bool KVC_Service_Evacuate(SKY_Addr_t target, SKY_Status_t *status);
/** Once a second: forget parts whose time is over, follow the satellite's clock. */
void KVC_Service_Age(void);

#endif
