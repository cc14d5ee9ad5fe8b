/**
 * @file
 * Private to the service: the survey (sky_service_survey.c).
 */
#ifndef SKY_SERVICE_SURVEY_H
#define SKY_SERVICE_SURVEY_H

#include "sky_service_state.h"

/** Begin anew, because the schedule has changed: findings by the one before do not count. */
void SKY_Survey_Reset(SKY_Survey_t *survey);
/**
 * Return true if nothing was on its way to where the row has it, at @p at_us and since. If that is not known, a survey begins
 * with the next Poll. There is a schedule.
 */
bool SKY_Survey_IsSettled(SKY_Survey_t *survey, uint32_t row, uint64_t at_us);
/** Begin with the next satellites when it is time. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Survey_OnTime(SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us);
/** Make the next question. */
bool SKY_Survey_Next(SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us, SKY_Out_t *out);
/** Act on a response. @return false if it belongs to no question of the survey */
bool SKY_Survey_Response(const SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us, const SKY_Packet_t *pkt);
/** Note that there is no way to @p dst: if it was asked, nothing is known. */
void SKY_Survey_Unreachable(const SKY_ServiceCore_t *core, SKY_Survey_t *survey, SKY_Addr_t dst);

#endif
