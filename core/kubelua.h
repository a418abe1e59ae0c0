/* kubelua.h - the C API of kubelua: a Kubernetes client, caches, and a controller runtime.
 *
 *   kl_config_load        where the cluster is and who we are            auth/config.h
 *   kl_client_new         requests, discovery, streams                   client/client.h
 *   kl_web_do             requests to other servers than the API server     client/web.h
 *   kl_session_start      logs, exec, attach, ports of pods              session/session.h, session/forward.h
 *   kl_informers_new      shared informers without a manager             informers/informers.h
 *   kl_manager_new        caches, queues, workers, election, metrics     manager/manager.h
 *   kl_program_of_function  a controller made of one C function           run/function.h
 *   kl_program_ops        the same with many keys in flight per worker   run/reconciler.h
 *   kl_server_start       the embedded API server                        server/server.h
 *   kl_value_*            immutable JSON values, shared by reference     value/value.h
 *   kl_value_to_cjson     values as cJSON trees and back                 value/json.h
 *
 * A function's verb tells who owns its result: new/free, init/fini, ref/unref; lookup gives a reference, get
 * borrows. Functions that can fail return a kl_status and describe the failure in a kl_err. Every header says
 * which threads may call it. The library never prints, never exits and installs no signal handlers; it logs
 * through a sink (base/log.h). An example is spec/programs/embed.c. */
#ifndef KUBELUA_H
#define KUBELUA_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pairfile.h"
#include "base/shelf.h"
#include "base/version.h"
#include "base/x509_request.h"
#include "cache/informer.h"
#include "cache/ttl.h"
#include "model/object.h"
#include "value/json.h"
#include "value/patch.h"
#include "value/path.h"
#include "model/quantity.h"
#include "model/resource.h"
#include "model/schema.h"
#include "model/selector.h"
#include "model/time.h"
#include "value/value.h"
#include "yaml/yaml.h"
#include "client/client.h"
#include "client/web.h"
#include "auth/config.h"
#include "session/forward.h"
#include "session/session.h"
#include "queue/workqueue.h"
#include "run/function.h"
#include "informers/informers.h"
#include "manager/manager.h"
#include "run/reconciler.h"
#include "server/server.h"

#endif
