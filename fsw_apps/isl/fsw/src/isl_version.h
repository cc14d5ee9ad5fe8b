/**
 * @file
 * Version of ISL.
 */
#ifndef ISL_VERSION_H
#define ISL_VERSION_H

#define ISL_VERSION "0.1.0"

#endif
