/**
 * @file
 * Limits of the operating system layer: OSAL's defaults.
 */
#ifndef OSCONFIG_H
#define OSCONFIG_H

#define OS_MAX_API_NAME       20 /**< with the terminator */
#define OS_MAX_PATH_LEN       64
#define OS_MAX_FILE_NAME      20
#define OS_MAX_TASKS          64
#define OS_MAX_MUTEXES        20
#define OS_MAX_BIN_SEMAPHORES 20
#define OS_MAX_NUM_OPEN_FILES 50
#define OS_QUEUE_MAX_DEPTH    50 /**< of a pipe; what does not fit is dropped, and the sender is not told */
#define OS_SOCKADDR_MAX_LEN   28

#endif
