/**
 * @file
 * Values of the function codes of ISL.
 */
#ifndef DEFAULT_ISL_FCNCODE_VALUES_H
#define DEFAULT_ISL_FCNCODE_VALUES_H

#define ISL_CCVAL(x) ISL_FunctionCode_##x

enum ISL_FunctionCode
{
    ISL_FunctionCode_NOOP           = 0,
    ISL_FunctionCode_RESET_COUNTERS = 1,
    ISL_FunctionCode_SET_LINK       = 2
};

#endif
