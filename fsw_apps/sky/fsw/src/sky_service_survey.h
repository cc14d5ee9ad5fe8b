/**
 * @file
 * Private to the service: the survey (sky_service_survey.c).
 */
#ifndef SKY_SERVICE_SURVEY_H
#define SKY_SERVICE_SURVEY_H

#include "sky_service.h"

/** The schedule has changed: what was found out before does not count. */
void SKY_Service_SurveyReset(SKY_Service_t *svc);
/**
 * Was nothing on its way to where the row has it, at @p at_us and since? If that is not known, a survey begins with the next Poll.
 * There is a schedule.
 */
bool SKY_Service_SurveyIsSettled(SKY_Service_t *svc, uint32_t row, uint64_t at_us);
/** Begin with the next satellites when it is time. @return when to call again, UINT64_MAX if never */
uint64_t SKY_Service_SurveyOnTime(SKY_Service_t *svc, uint64_t now_us);
/** The next question. */
bool SKY_Service_SurveyNext(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/** @return false if the response belongs to no question of the survey */
bool SKY_Service_SurveyResponse(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
/** There is no way to @p dst: if it was asked, nothing is known. */
void SKY_Service_SurveyUnreachable(SKY_Service_t *svc, SKY_Addr_t dst);

#endif
