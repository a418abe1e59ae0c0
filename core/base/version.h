/* version.h - which kubelua this is. */
#ifndef KL_BASE_VERSION_H
#define KL_BASE_VERSION_H

#define KL_VERSION "0.1.0"

#endif
