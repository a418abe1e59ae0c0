/* parts.h - the checks of this room by kind; serving.c has the table. Private to core/serving. Pure; any
 * thread. */
#ifndef KL_SERVING_PARTS_H
#define KL_SERVING_PARTS_H

#include "serving/serving.h"

/* Each adds complaints to w->causes. */
void kl__check_api_service(const kl__write *w);
void kl__check_flow_schema(const kl__write *w);
void kl__check_priority_level(const kl__write *w); /* a PriorityLevelConfiguration */
void kl__check_ip_address(const kl__write *w);
void kl__check_service_cidr(const kl__write *w);

/* Each sets the defaults of a spec, which is replaced. */
void kl__flow_schema_fill(const kl_value **spec);
void kl__priority_level_fill(const kl_value **spec);

#endif
