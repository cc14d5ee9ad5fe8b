/**
 * @file
 * Version of KVC.
 */
#ifndef KVC_VERSION_H
#define KVC_VERSION_H

#define KVC_VERSION "0.1.0"

#endif
