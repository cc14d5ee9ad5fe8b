/**
 * @file
 * Flight core of SkyMemory: packets, torus, routing, chunk store, service, transfers, link model, cryptography.
 *
 * Sans I/O, instance-based: state lives in structures of the caller; packets, time and randomness come in as arguments. The same
 * object code runs in cFS, in the host executive, in the twin and in Python.
 */
#ifndef SKY_H
#define SKY_H

#include "sky_associations.h"
#include "sky_chunkset.h"
#include "sky_cookie.h"
#include "sky_crc.h"
#include "sky_crypto.h"
#include "sky_defaults.h"
#include "sky_handshake.h"
#include "sky_hello.h"
#include "sky_icd.h"
#include "sky_index.h"
#include "sky_keys.h"
#include "sky_link.h"
#include "sky_map.h"
#include "sky_node.h"
#include "sky_packet.h"
#include "sky_parts.h"
#include "sky_placement.h"
#include "sky_replay.h"
#include "sky_router.h"
#include "sky_schedule.h"
#include "sky_service.h"
#include "sky_session.h"
#include "sky_spread.h"
#include "sky_store.h"
#include "sky_torus.h"
#include "sky_transfer.h"

#endif
