/**
 * @file
 * Events of ISL.
 */
#ifndef ISL_EVENTIDS_H
#define ISL_EVENTIDS_H

#define ISL_INIT_INF_EID      1  /**< started */
#define ISL_NOOP_INF_EID      2  /**< NOOP */
#define ISL_RESET_INF_EID     3  /**< RESET_COUNTERS */
#define ISL_SET_LINK_INF_EID  4  /**< SET_LINK */
#define ISL_LINKS_INF_EID     5  /**< links that are up have changed */
#define ISL_NODE_INF_EID      6  /**< which satellite this is, from the table */
#define ISL_LINES_INF_EID     7  /**< links are emulated: how many packets they hold */
#define ISL_MAP_INF_EID       8  /**< the constellation is larger than the map of links */
#define ISL_SECURITY_INF_EID  9  /**< whether links are secured */
#define ISL_MID_ERR_EID       20 /**< message id not ours */
#define ISL_CC_ERR_EID        21 /**< function code unknown */
#define ISL_LEN_ERR_EID       22 /**< wrong length of a command */
#define ISL_PIPE_ERR_EID      23 /**< pipe could not be set up or read: the app ends */
#define ISL_TBL_ERR_EID       24 /**< table could not be registered, loaded or read */
#define ISL_TBL_VALUE_ERR_EID 25 /**< value of a table out of range */
#define ISL_SOCKET_ERR_EID    26 /**< socket could not be opened */
#define ISL_TASK_ERR_EID      27 /**< I/O task or its lock could not be made */
#define ISL_DROP_ERR_EID      28 /**< packets dropped, by cause; not for each packet */
#define ISL_LINK_ERR_EID      29 /**< SET_LINK: no such link, too long, or the last link that is up */
#define ISL_SERVICE_ERR_EID   30 /**< a service cannot serve this satellite */
#define ISL_RESTART_INF_EID   31 /**< a table value takes effect at the next start */
#define ISL_ASSERT_ERR_EID    32 /**< an assertion of sky failed, and where; one event until RESET_COUNTERS */
#define ISL_SECURITY_ERR_EID \
    33 /**< there is a key, and no library that works or no random bytes: the app ends, as it would serve everybody */
#define ISL_REFUSED_ERR_EID 34 /**< packets that security did not act upon, by reason; not for each packet */

#endif
