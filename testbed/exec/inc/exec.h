/**
 * @file
 * Interface of the host executive for its hosts: skysat, the library behind skymemory.fsw, tests. Apps never include this.
 *
 * One executive per process: cFE's functions take no instance. It can be started again after EXEC_Stop.
 */
#ifndef EXEC_H
#define EXEC_H

#include "cfe.h"
#include "cfe_tbl_filedef.h"

typedef struct
{
    const char *name;
    int32 (*entry)(void);
} EXEC_Library_t;

typedef struct
{
    const char               *name; /**< name of the app; its tables are "name.Table" */
    CFE_ES_TaskEntryFuncPtr_t entry;
} EXEC_App_t;

/** A table image that CFE_TBL_Load finds instead of the compiled one. */
typedef struct
{
    const char *name; /**< "APP.Table" */
    const void *data;
    size_t      size;
} EXEC_Table_t;

/** Configuration. Everything that it points to must live until EXEC_Stop. */
typedef struct
{
    uint32                          spacecraft_id, processor_id;
    const EXEC_Library_t           *libraries; /**< libraries, entered in this order, before any app */
    uint32                          library_count;
    const EXEC_App_t               *apps;
    uint32                          app_count;
    const CFE_TBL_FileDef_t *const *table_files; /**< compiled tables, the last entry NULL; may be NULL */
    const EXEC_Table_t             *tables;
    uint32                          table_count;
    const CFE_SB_MsgId_Atom_t      *wakeups; /**< commands sent once a second, as a scheduler app would */
    uint32                          wakeup_count;
    bool                            quiet;         /**< print neither events nor the system log */
    bool                            log_json;      /**< print each line of these as a JSON object */
    uint32                          log_bytes_max; /**< a log that is a file begins again then; 0: it may grow */
} EXEC_Config_t;

/** Messages that the Software Bus dropped, or could not send. */
typedef struct
{
    uint32 no_subscribers;
    uint32 message_limit; /**< messages to a subscription that held as many as it may */
    uint32 pipe_overflow; /**< messages to a full pipe */
    uint32 pool_empty;
} EXEC_SbCounters_t;

#define EXEC_LOGGER_BYTES  (OS_MAX_API_NAME + 40)
#define EXEC_MESSAGE_BYTES 256
#define EXEC_LINE_BYTES    768

/** Write a line as the log has it, with the time, into EXEC_LINE_BYTES.
 * @param json    as a JSON object, else as text
 * @param logger  who says it, in less than EXEC_LOGGER_BYTES without what JSON escapes
 * @param message text of less than EXEC_MESSAGE_BYTES, without the end of the line */
void EXEC_FormatLine(bool json, CFE_EVS_EventType_Enum_t level, const char *logger, const char *message, char *line);

/** Start the services, but no app: host apps can subscribe before the first event. @return false if an executive runs already */
bool EXEC_Init(const EXEC_Config_t *config);
/**
 * Enter the libraries, start the apps, wait until all are in their run loops, start the scheduler.
 * @param why  names the app that did not come up, if false is returned; EXEC_Stop is still needed
 */
bool EXEC_Start(uint32 timeout_ms, char *why, size_t why_size);
/** Ask all apps to exit, wait, and end the others. Afterwards no thread of the executive is alive. @return false if one had to be ended */
bool EXEC_Stop(uint32 timeout_ms);
/** Return the number of apps of the configuration that are in their run loops. */
uint32 EXEC_AppsRunning(void);

/** Give threads of the host a name on the bus. Each call of a cFE function needs EXEC_Enter before, EXEC_Leave after. */
CFE_Status_t EXEC_HostAppCreate(CFE_ES_AppId_t *app, const char *name);
/** Delete a host app and its pipes; a thread that waits on one gets CFE_SB_PIPE_RD_ERR. */
CFE_Status_t EXEC_HostAppDelete(CFE_ES_AppId_t app);
CFE_Status_t EXEC_Enter(CFE_ES_AppId_t app);
void         EXEC_Leave(void);

/**
 * Receive as CFE_SB_ReceiveBuffer does, for threads of the host: a copy, so that another thread may close the app or stop the
 * executive meanwhile.
 * @param message  room for CFE_MISSION_SB_MAX_SB_MSG_SIZE bytes
 */
CFE_Status_t EXEC_Receive(void *message, size_t *size, CFE_SB_PipeId_t pipe_id, int32 timeout_ms);
/** Load a table from the ground: the owner's next CFE_TBL_Manage validates and takes it. @return CFE_TBL_ERR_* if it cannot be one */
CFE_Status_t EXEC_TableLoad(const char *name, const void *data, size_t size);
/** Dump the current contents of a table to the ground. @return CFE_TBL_ERR_* if there is no such table of this size */
CFE_Status_t EXEC_TableRead(const char *name, void *data, size_t size);
void         EXEC_SbCounters(EXEC_SbCounters_t *counters);

#endif
