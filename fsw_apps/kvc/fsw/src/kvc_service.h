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
/** Withdraw the service; afterwards nobody is in it. */
void KVC_Service_Close(void);

/** Plan a store by @p limits: as many slots as fit. @return false if none does */
bool KVC_Service_PlanStore(const KVC_LimitsTable_t *limits, SKY_StoreCfg_t *cfg);
/** Take limits over. The store is emptied if its division changes. */
CFE_Status_t KVC_Service_SetLimits(const KVC_LimitsTable_t *limits);

/** Purge a block. @return false if there is no store yet, or no lock */
bool KVC_Service_Clear(void);
bool KVC_Service_Purge(uint32 tenant, const uint8 *key, uint32 *chunks);
void KVC_Service_ResetCounters(void);
/** Get the constellation. @return false if it is not known yet */
bool KVC_Service_Torus(SKY_Torus_t *torus);
/**
 * Follow the schedule that @p segments tables have together, or none (0); they have been validated.
 * @return false if the schedule cannot be followed, and none is; without segments if there was none before
 */
bool KVC_Service_Follow(const KVC_ScheduleTable_t *const *segment, uint32 segments);
/** Send everything to another satellite. @return false if the service does not run; else @p status has the result */
bool KVC_Service_Evacuate(SKY_Addr_t target, SKY_Status_t *status);
/** Forget parts whose time is over, and follow the satellite's clock. Called once a second. */
void KVC_Service_Age(void);

#endif
