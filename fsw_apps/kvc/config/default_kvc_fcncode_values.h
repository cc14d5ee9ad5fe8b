/**
 * @file
 * Values of the function codes of KVC.
 */
#ifndef DEFAULT_KVC_FCNCODE_VALUES_H
#define DEFAULT_KVC_FCNCODE_VALUES_H

#define KVC_CCVAL(x) KVC_FunctionCode_##x

enum KVC_FunctionCode
{
    KVC_FunctionCode_NOOP            = 0,
    KVC_FunctionCode_RESET_COUNTERS  = 1,
    KVC_FunctionCode_CLEAR_STORE     = 2,
    KVC_FunctionCode_PURGE_BLOCK     = 3,
    KVC_FunctionCode_SCHEDULE_BEGIN  = 4,
    KVC_FunctionCode_SCHEDULE_ROWS   = 5,
    KVC_FunctionCode_SCHEDULE_COMMIT = 6,
    KVC_FunctionCode_HANDOVER        = 7
};

#endif
