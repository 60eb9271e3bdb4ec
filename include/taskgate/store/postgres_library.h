/*
 * libpq, loaded when it is first needed. Below this header its functions have their usual names,
 * and may be called once postgres_library_load() has returned true.
 */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>

#include "taskgate/core/error.h"

/* Reads files, so that it is not for a loop to call first. Any thread, any number of times. */
bool postgres_library_load(struct error *error);

#define POSTGRES_FUNCTIONS(X)                                                                      \
    X(backendPID)                                                                                  \
    X(clear)                                                                                       \
    X(cmdStatus)                                                                                   \
    X(cmdTuples)                                                                                   \
    X(connectPoll)                                                                                 \
    X(connectStartParams)                                                                          \
    X(connectdbParams)                                                                             \
    X(conninfoFree)                                                                                \
    X(conninfoParse)                                                                               \
    X(consumeInput)                                                                                \
    X(enterPipelineMode)                                                                           \
    X(errorMessage)                                                                                \
    X(exitPipelineMode)                                                                            \
    X(finish)                                                                                      \
    X(flush)                                                                                       \
    X(freemem)                                                                                     \
    X(ftype)                                                                                       \
    X(getResult)                                                                                   \
    X(getisnull)                                                                                   \
    X(getlength)                                                                                   \
    X(getvalue)                                                                                    \
    X(isBusy)                                                                                      \
    X(libVersion)                                                                                  \
    X(nfields)                                                                                     \
    X(notifies)                                                                                    \
    X(ntuples)                                                                                     \
    X(pingParams)                                                                                  \
    X(pipelineSync)                                                                                \
    X(resultErrorField)                                                                            \
    X(resultStatus)                                                                                \
    X(sendFlushRequest)                                                                            \
    X(sendPrepare)                                                                                 \
    X(sendQuery)                                                                                   \
    X(sendQueryParams)                                                                             \
    X(sendQueryPrepared)                                                                           \
    X(serverVersion)                                                                               \
    X(setNoticeReceiver)                                                                           \
    X(setnonblocking)                                                                              \
    X(socket)                                                                                      \
    X(status)

struct postgres_library {
#define POSTGRES_FUNCTION(name) __typeof__(PQ##name) *(name);
    POSTGRES_FUNCTIONS(POSTGRES_FUNCTION)
#undef POSTGRES_FUNCTION
};
extern struct postgres_library postgres_library;

#define PQbackendPID postgres_library.backendPID
#define PQclear postgres_library.clear
#define PQcmdStatus postgres_library.cmdStatus
#define PQcmdTuples postgres_library.cmdTuples
#define PQconnectPoll postgres_library.connectPoll
#define PQconnectStartParams postgres_library.connectStartParams
#define PQconnectdbParams postgres_library.connectdbParams
#define PQconninfoFree postgres_library.conninfoFree
#define PQconninfoParse postgres_library.conninfoParse
#define PQconsumeInput postgres_library.consumeInput
#define PQenterPipelineMode postgres_library.enterPipelineMode
#define PQerrorMessage postgres_library.errorMessage
#define PQexitPipelineMode postgres_library.exitPipelineMode
#define PQfinish postgres_library.finish
#define PQflush postgres_library.flush
#define PQfreemem postgres_library.freemem
#define PQftype postgres_library.ftype
#define PQgetResult postgres_library.getResult
#define PQgetisnull postgres_library.getisnull
#define PQgetlength postgres_library.getlength
#define PQgetvalue postgres_library.getvalue
#define PQisBusy postgres_library.isBusy
#define PQlibVersion postgres_library.libVersion
#define PQnfields postgres_library.nfields
#define PQnotifies postgres_library.notifies
#define PQntuples postgres_library.ntuples
#define PQpingParams postgres_library.pingParams
#define PQpipelineSync postgres_library.pipelineSync
#define PQresultErrorField postgres_library.resultErrorField
#define PQresultStatus postgres_library.resultStatus
#define PQsendFlushRequest postgres_library.sendFlushRequest
#define PQsendPrepare postgres_library.sendPrepare
#define PQsendQuery postgres_library.sendQuery
#define PQsendQueryParams postgres_library.sendQueryParams
#define PQsendQueryPrepared postgres_library.sendQueryPrepared
#define PQserverVersion postgres_library.serverVersion
#define PQsetNoticeReceiver postgres_library.setNoticeReceiver
#define PQsetnonblocking postgres_library.setnonblocking
#define PQsocket postgres_library.socket
#define PQstatus postgres_library.status
