/* version.h - the version of kubelua. */
#ifndef KL_BASE_VERSION_H
#define KL_BASE_VERSION_H

#define KL_VERSION "0.1.0"
/* The date of the newest commit; man pages show it. */
#define KL_VERSION_DATE "2026-11-25"

#endif
