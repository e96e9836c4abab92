/* vigil/vigil.h - all of libvigil: informers for C, against any Kubernetes API server. */
#ifndef VIGIL_VIGIL_H
#define VIGIL_VIGIL_H

#include "base.h"
#include "client.h"
#include "informer.h"
#include "leader.h"
#include "object.h"
#include "recorder.h"
#include "store.h"
#include "workqueue.h"

#endif
