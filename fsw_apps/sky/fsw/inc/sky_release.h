/**
 * @file
 * Version of this software. `tools/set_version.py` writes it; pyproject.toml has it first.
 */
#ifndef SKY_RELEASE_H
#define SKY_RELEASE_H

#define SKY_RELEASE "0.2.0"

#endif
