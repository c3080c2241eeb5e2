/* net/sources.h - where clients come from: how many connections each address has, and how often somebody there has
 * failed to say who he is.
 *
 * A source is an IPv4 address, or the first 64 bits of an IPv6 one: who has one of those has them all. The Unix
 * sockets have none.
 *
 * A failed login fills the source's bucket by a part, and the bucket leaks a minute's worth in a minute. As long as
 * it is full, whoever comes from there is not looked at, with a right password or a wrong one: so guessing goes at that
 * rate, however many connections are used for it, and costs next to nothing. All sources together have a bucket that is
 * SOURCES_CROWD times as large; while that one is full the same goes for every source that has failed lately.
 *
 * Owns     an entry for every source that is connected, and for SOURCES_KEPT that have failed and gone.
 * Threads  any. An entry is held by the connections it counts; a shard's word is held for a look at a few entries.
 * Never    blocks. Without memory a source is not watched.
 */
#ifndef NOH_NET_SOURCES_H
#define NOH_NET_SOURCES_H

#include "core/atomic.h"

#include <stdbool.h>
#include <stdint.h>

#define SOURCES_SHARDS 1024                /* a power of two                               */
#define SOURCES_KEPT 8192
#define SOURCES_CROWD 100

struct source;
struct source_shard { atomic_u32 held; struct source *first; };
struct bucket { uint64_t level_us, seen_ms; };         /* of a minute; as it was when it was seen */

struct sources {
	struct source_shard *shards;       /* NULL: nobody is watched                      */
	uint64_t             seed;
	atomic_u32           kept;         /* entries without a connection                 */
	struct { atomic_u32 held; struct bucket failures; } crowd;
};

bool sources_open(struct sources *s);
void sources_close(struct sources *s);

/* Whose socket it is; false: nobody's that is watched. */
#define SOURCE_ADDRESS 16
bool source_address(int fd, uint8_t address[SOURCE_ADDRESS]);

/* A connection comes from there. full: it has `most` already (0: as many as it likes), turn it away. NULL without that: it
 * is not watched. */
struct source *source_enter(struct sources *s, const uint8_t address[SOURCE_ADDRESS], uint32_t most, uint64_t now_ms,
			    bool *full);
void source_leave(struct sources *s, struct source *from, uint64_t now_ms);      /* NULL is fine */

/* How long until the next login from there is looked at; 0: now. per_minute: failed logins that are. */
uint64_t source_waits_ms(struct sources *s, struct source *from, uint32_t per_minute, uint64_t now_ms);
/* True: it has to wait from now on, and had not to for a minute. */
bool source_failed(struct sources *s, struct source *from, uint32_t per_minute, uint64_t now_ms);

#define SOURCE_TEXT_MAX 48
void source_text(const struct source *from, char text[SOURCE_TEXT_MAX]);

#endif
