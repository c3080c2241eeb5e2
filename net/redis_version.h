/* net/redis_version.h - the version of Redis whose wording and handshake the server follows, for clients that
 * ask for one. noh's own is NOH_VERSION. */
#ifndef NOH_NET_REDIS_VERSION_H
#define NOH_NET_REDIS_VERSION_H

#define REDIS_VERSION "7.2.0"

#endif
